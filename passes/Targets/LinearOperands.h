//===- LinearOperands.h - What operands of matmuls are cast to --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TARGETS_LINEAROPERANDS_H
#define ACCEL_PASSES_TARGETS_LINEAROPERANDS_H

#include "passes/Targets/Target.h"

namespace accel {

/// What a library casts the operands of linear layers' matmuls to. Router and
/// head stay in the dtype of computation.
enum class LinearOperands {
  Computed, // they are not cast
  Fp8,      // 8 bits, with a scale for each tensor
  Mxfp8,    // 8 bits, with a scale of a byte for each 32 elements
  Nvfp4     // 4 bits, with a scale of a byte for each 16 elements
};

/// Bytes of an element in one order, with its scale; 0 for Computed.
constexpr double bytesOfOperand(LinearOperands operands) {
  switch (operands) {
  case LinearOperands::Computed:
    return 0;
  case LinearOperands::Fp8:
    return 1;
  case LinearOperands::Mxfp8:
    return 1 + 1.0 / 32;
  case LinearOperands::Nvfp4:
    return 0.5 + 1.0 / 16;
  }
  return 0;
}

/// The rate of 16-bit matmuls whose operands are cast; null where they are not,
/// or the device has none.
const ComputeRate *rateOfOperands(const Target &target,
                                  LinearOperands operands);

} // namespace accel

#endif // ACCEL_PASSES_TARGETS_LINEAROPERANDS_H
