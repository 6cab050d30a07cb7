//===- InsertFrees.h - insert-frees -----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_INSERTFREES_H
#define ACCEL_PASSES_SCHEDULE_INSERTFREES_H

#include "dialects/Schedule/Schedule.h"

namespace accel::schedule {
/// Gives up every activation at its last use: to the call that reads it last
/// where the function `drops` it, else by a schedule.free right after. What
/// nothing reads is freed after the call that makes it. Frees of activations
/// that are there already are replaced; the batch and the loss are kept.
void insertFrees(ProgramOp program,
                 llvm::function_ref<bool(CallOp, size_t)> drops);
} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_INSERTFREES_H
