//===- InnerBytes.h - What CUDA operators need inside -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SEGMENTS_INNERBYTES_H
#define ACCEL_PASSES_SEGMENTS_INNERBYTES_H

#include "passes/Segments/ReductionBytes.h"
#include "runtime/plan/Plan.h"

namespace accel {

/// What an operator allocates inside and drops before it returns: cuBLAS's
/// workspace, partial gradients of attention, results that nobody uses.
struct InnerBytes {
  std::vector<int64_t> before; // its results are made
  /// Once they are made, in order; -i drops the i-th of these, and the
  /// operator's end those that are left.
  std::vector<int64_t> after;
};
/// cuBLAS's, by at::cuda::getChosenWorkspaceSize; `capability` is the target's.
int64_t gemmWorkspace(double capability);
/// The workspace of the library that multiplies; 0 where none does.
int64_t libraryWorkspace(const plan::Function &function,
                         const plan::Instruction &instruction,
                         const CudaDevice &device);
/// With workspaces of matmuls.
InnerBytes innerBytesOfAll(const plan::Function &function,
                           const plan::Instruction &instruction,
                           const CudaDevice &device);
/// Without them, for executors of which those are counted with the device's
/// context.
InnerBytes innerBytes(const plan::Function &function,
                      const plan::Instruction &instruction,
                      const CudaDevice &device);
/// Bytes at most, beside the results.
int64_t peakOf(const InnerBytes &inner);

} // namespace accel

#endif // ACCEL_PASSES_SEGMENTS_INNERBYTES_H
