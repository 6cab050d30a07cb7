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
/// Values are cast to the unit's storage type. A parameter is looked for under
/// its name in an adapter, then under those in the model's files. Throws
/// FileError naming missing tensors and wrong shapes; `warnings` (on rank 0)
/// names surplus tensors. An adapter may be absent as a whole, and so may a
/// parameter whose first base name is empty: these are marked in the result, on
/// all ranks, and zero.
std::vector<bool> loadWeights(Executor &executor,
                              const std::vector<std::string> &files,
                              std::vector<std::string> &warnings);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_WEIGHTS_H
