//===- ReductionBytes.h - What a CUDA reduction shares ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SEGMENTS_REDUCTIONBYTES_H
#define ACCEL_PASSES_SEGMENTS_REDUCTIONBYTES_H

#include <cstdint>
#include <vector>

namespace accel {

/// What blocks of threads are spread over.
struct CudaDevice {
  double capability = 0;       // 9.0 for Hopper
  int64_t multiprocessors = 0; // 0: not known
};

/// What ATen's reduction kernel allocates to share among blocks that reduce
/// parts of one result: the partial results of all threads, and a counter for
/// each block's results; nothing where one block reduces each. `shape`, in
/// row-major order, is reduced along the dimensions that `reduced` marks, its
/// elements accumulated in `accumulator` bytes (setReduceConfig and
/// global_memory_size of ATen/native/cuda/Reduce.cuh, torch 2.15). The sum of
/// [8192, 4096] over its rows shares 138,412,032 bytes on 132 multiprocessors.
std::vector<int64_t> reductionBytes(const std::vector<int64_t> &shape,
                                    const std::vector<bool> &reduced,
                                    int64_t accumulator,
                                    const CudaDevice &device);

} // namespace accel

#endif // ACCEL_PASSES_SEGMENTS_REDUCTIONBYTES_H
