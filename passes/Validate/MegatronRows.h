//===- MegatronRows.h - What a run of Megatron's kin did --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_MEGATRONROWS_H
#define ACCEL_PASSES_VALIDATE_MEGATRONROWS_H

#include "passes/Validate/FineTuning.h"

namespace accel::validate {

/// Completes `run`, whose mesh and target are known, by what Megatron-LM's
/// arguments are where a row does not say, and by what NeMo's and
/// Megatron-Bridge's recipes write. `attends`: the row names its attention.
/// Why the row is not modelled, or "".
std::string readMegatron(const RowText &text, bool attends, Run &run);

/// The integer after `key` and an optional '=', or 0.
int64_t numberAfter(const std::string &text, const std::string &key);

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_MEGATRONROWS_H
