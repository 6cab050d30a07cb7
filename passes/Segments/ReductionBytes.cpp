//===- ReductionBytes.cpp - What a CUDA reduction shares ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Segments/ReductionBytes.h"

#include <algorithm>
#include <bit>

namespace accel {

namespace {

constexpr int64_t mostThreads = 512, warp = 32;
constexpr int64_t leastValues = 16, mostValues = 256; // of a thread

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t lastPowerOf2(int64_t n) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n)));
}

/// maxThreadsPerMultiProcessor (CUDA C++ programming guide, table of compute
/// capabilities).
int64_t threadsOf(double capability) {
  if (capability == 7.5)
    return 1024;
  const bool consumer = capability == 8.6 || capability == 8.7 ||
                        capability == 8.9 || capability >= 12.0;
  return consumer ? 1536 : 2048;
}

} // namespace

std::vector<int64_t> reductionBytes(const std::vector<int64_t> &shape,
                                    const std::vector<bool> &reduced,
                                    int64_t accumulator,
                                    const CudaDevice &device) {
  int64_t outputs = 1, inputs = 1, last = 1;
  int reductions = 0; // dimensions, once neighbours are one
  bool before = false, fastest = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1)
      continue;
    (reduced[i] ? inputs : outputs) *= shape[i];
    reductions += reduced[i] && !before;
    // What is kept last is one dimension with what is kept before it.
    last = reduced[i] || (before && !reduced[i]) ? shape[i] : last * shape[i];
    before = fastest = reduced[i];
  }
  if (device.multiprocessors <= 0 || inputs <= 1 || outputs < 1)
    return {};

  int64_t vector = 1; // results of a thread
  int64_t dim0 = outputs, dim1 = inputs;
  if (fastest) {
    std::swap(dim0, dim1);
    if (reductions == 1 && dim0 >= 128)
      dim0 /= 4;
  } else {
    for (vector = 4; last % vector != 0; vector /= 2) {
    }
    dim0 /= vector;
  }
  const int64_t most = mostThreads / vector;
  const int64_t wide = std::min(lastPowerOf2(std::max<int64_t>(dim0, 1)), most),
                high = std::min(lastPowerOf2(dim1), most);
  int64_t width = std::min(wide, warp);
  const int64_t height = std::min(high, most / width);
  width = std::min(wide, most / height);

  int64_t inputStep = fastest ? width : 1, outputStep = fastest ? 1 : width;
  const bool acrossWarps =
      divideUp(inputs, inputStep) >= std::min(height * leastValues, mostValues);
  (acrossWarps ? inputStep : outputStep) *= height;
  const int64_t values = divideUp(inputs, inputStep);
  const int64_t wanted = device.multiprocessors *
                         (threadsOf(device.capability) / (width * height));
  const int64_t grid = divideUp(outputs / vector, outputStep);
  if (!acrossWarps || values < mostValues || grid > wanted)
    return {};
  const int64_t blocks =
      std::clamp(divideUp(wanted, grid), divideUp(values, mostValues),
                 divideUp(values, leastValues));
  if (blocks <= 1)
    return {};
  return {accumulator * outputs * blocks * (fastest ? 1 : width * vector),
          4 * grid};
}

} // namespace accel
