//===- SeparateEval.h - Functions for evaluation ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RANDOM_SEPARATEEVAL_H
#define ACCEL_PASSES_RANDOM_SEPARATEEVAL_H

#include "llvm/ADT/StringRef.h"

namespace accel {

/// Asks for evaluations that return the place of the largest logit of each row;
/// it has no value.
inline constexpr llvm::StringLiteral predictionsRequest = "predictions";

} // namespace accel

#endif // ACCEL_PASSES_RANDOM_SEPARATEEVAL_H
