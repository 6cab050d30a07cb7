//===- Weights.h - Starting from safetensors --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_WEIGHTS_H
#define ACCEL_RUNTIME_CHECKPOINT_WEIGHTS_H

#include "runtime/execute/Executor.h"

#include <string>
#include <vector>

namespace accel::run {

/// Fills the shards from weight files. Rank 0 alone reads; the others get the
/// units a few MiB at a time and keep their part, so none ever holds a unit.
/// Values are cast to the unit's storage type. Throws FileError naming missing
/// tensors and wrong shapes; `warnings` (on rank 0) names surplus tensors.
void loadWeights(Executor &executor, const std::vector<std::string> &files,
                 std::vector<std::string> &warnings);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_WEIGHTS_H
