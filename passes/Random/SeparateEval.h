//===- SeparateEval.h - Functions for evaluation ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RANDOM_SEPARATEEVAL_H
#define ACCEL_PASSES_RANDOM_SEPARATEEVAL_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `separate-eval`: gives each function that draws random numbers a copy
/// `.eval` that does not, for the evaluation program (`aten.eval` names it).
/// Fails where two operations of a function draw by the same key.
std::unique_ptr<mlir::Pass> createSeparateEvalPass();
} // namespace accel

#endif // ACCEL_PASSES_RANDOM_SEPARATEEVAL_H
