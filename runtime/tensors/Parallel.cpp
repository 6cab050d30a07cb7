//===- Parallel.cpp - Loops on torch's threads ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/tensors/Parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <exception>

namespace accel::run {

namespace {

/// What GCC makes of `#pragma omp parallel`; LLVM's library has it too.
struct OpenMp {
  void (*parallel)(void (*body)(void *), void *data, unsigned threads,
                   unsigned flags) = nullptr;
  int (*threads)() = nullptr;
  int (*thread)() = nullptr;

  OpenMp() {
    auto find = [](auto &into, const char *name) {
      into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(
          dlsym(RTLD_DEFAULT, name));
    };
    find(parallel, "GOMP_parallel");
    find(threads, "omp_get_num_threads");
    find(thread, "omp_get_thread_num");
  }
  bool loaded() const { return parallel && threads && thread; }
};

const OpenMp &openMp() {
  static const OpenMp library;
  return library;
}

struct Loop {
  const int64_t begin, end, grain;
  const c10::function_ref<void(int64_t, int64_t)> body;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  std::exception_ptr error;

  /// One thread's piece: at::internal::invoke_parallel.
  void run() {
    int64_t threads = openMp().threads();
    if (grain > 0)
      threads = std::min(threads, at::divup(end - begin, grain));
    const int64_t thread = openMp().thread();
    const int64_t length = at::divup(end - begin, threads);
    const int64_t from = begin + thread * length;
    if (from >= end)
      return;
    try {
      at::internal::ThreadIdGuard number(static_cast<int>(thread));
      c10::ParallelGuard guard(true);
      body(from, std::min(end, from + length));
    } catch (...) {
      if (!failed.test_and_set())
        error = std::current_exception();
    }
  }
};

} // namespace

void parallelFor(int64_t begin, int64_t end, int64_t grain,
                 c10::function_ref<void(int64_t, int64_t)> body) {
  if (begin >= end)
    return;
  at::internal::lazy_init_num_threads();
  const int64_t count = end - begin;
  if (count <= grain || count == 1 || at::in_parallel_region() ||
      at::get_num_threads() <= 1 || !openMp().loaded()) {
    at::internal::ThreadIdGuard number(0);
    c10::ParallelGuard guard(true);
    body(begin, end);
    return;
  }
  Loop loop{begin, end, grain, body, {}, nullptr};
  openMp().parallel([](void *data) { static_cast<Loop *>(data)->run(); }, &loop,
                    0, 0);
  if (loop.error)
    std::rethrow_exception(loop.error);
}

} // namespace accel::run
