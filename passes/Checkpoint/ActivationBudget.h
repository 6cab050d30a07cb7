//===- ActivationBudget.h - What each layer may keep ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_CHECKPOINT_ACTIVATIONBUDGET_H
#define ACCEL_PASSES_CHECKPOINT_ACTIVATIONBUDGET_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `activation-budget`: shares the bytes of the request "checkpoint" {mode =
/// "budget", bytes} among the calls that activation-checkpointing marked
/// `budget`, so that least is recomputed. Runs on joint functions.
std::unique_ptr<mlir::Pass> createActivationBudgetPass();
} // namespace accel

#endif // ACCEL_PASSES_CHECKPOINT_ACTIVATIONBUDGET_H
