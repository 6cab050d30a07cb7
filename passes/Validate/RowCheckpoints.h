//===- RowCheckpoints.h - What a measured run recomputed --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_ROWCHECKPOINTS_H
#define ACCEL_PASSES_VALIDATE_ROWCHECKPOINTS_H

#include "passes/Validate/FineTuning.h"
#include "passes/Validate/RowWords.h"

namespace accel::validate {

/// Reads the column of checkpointing into `run`, whose trainer is known. Why
/// the row is not modelled, or "".
std::string readCheckpointing(const RunRow &row, const RowText &text, Run &run);

/// Adds what the other columns say of activations on the host to `run`, whose
/// recomputation is known. Why the row is not modelled, or "".
std::string readOffloadedActivations(const OffloadWords &words, Run &run);

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_ROWCHECKPOINTS_H
