//===- kernel_threads.cpp - The runtime's loops by threads ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// kernel-threads [THREADS]: GB/s of accel-run's own loops over 16 million
// values on one thread and on so many (default: as torch takes), in turn, best
// of 40 of each.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/Operators.h"
#include "runtime/tensors/Kernels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

using namespace accel::run;

static double secondsOf(const std::function<void()> &loop) {
  const auto begin = std::chrono::steady_clock::now();
  loop();
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  return took.count();
}

int main(int argc, char **argv) {
  registerOperators();
  const int threads = argc > 1 ? std::atoi(argv[1]) : at::get_num_threads();
  const int64_t n = 16 << 20;
  at::Tensor a = at::ones({n}), b = at::ones({n}), half = b.to(at::kBFloat16);
  at::Tensor sum = at::zeros({}, at::kDouble);
  const at::Tensor one = at::full({}, 1.0000001, at::kDouble);
  auto dropout = [&] {
    torch::jit::Stack stack = {a, 0.1, std::vector<int64_t>{5, 7}};
    c10::Dispatcher::singleton()
        .findSchemaOrThrow("accel::dropout", "")
        .callBoxed(stack);
  };
  const struct {
    const char *name;
    double bytes; // read and written
    std::function<void()> loop;
  } loops[] = {
      {"sum of two slices, fp32", 12.0 * n,
       [&] { sumSlices(a, {a, b}, false); }},
      {"added bf16 to fp32", 10.0 * n, [&] { sumSlices(a, {half}, true); }},
      {"squares, fp32", 4.0 * n, [&] { addSquares(b, sum); }},
      {"scale, fp32", 8.0 * n, [&] { scaleBy(b, one); }},
      {"dropout, fp32", 8.0 * n, dropout}};
  for (const auto &[name, bytes, loop] : loops) {
    double alone = 1e9, together = 1e9;
    for (int i = 0; i < 40; ++i) {
      at::set_num_threads(1);
      alone = std::min(alone, secondsOf(loop));
      at::set_num_threads(threads);
      together = std::min(together, secondsOf(loop));
    }
    std::printf("%-26s %6.1f GB/s on one thread, %6.1f on %d: %.2f times\n",
                name, bytes / alone * 1e-9, bytes / together * 1e-9, threads,
                alone / together);
  }
}
