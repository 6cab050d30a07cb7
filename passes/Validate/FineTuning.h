//===- FineTuning.h - What a fine-tuning run's libraries do -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Adapters, quantised bases, fused kernels, optimizers and releases, as rows of
// runs under transformers and its kin spell them. A published benchmark's
// scripts say what its rows leave out; what they do not say is assumed with a
// note.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_FINETUNING_H
#define ACCEL_PASSES_VALIDATE_FINETUNING_H

#include "passes/Validate/RunDescription.h"

namespace accel::validate {

/// A row's columns in lower case.
struct RowText {
  std::string model, framework, sharding, precision, checkpointing, source;
  std::string gpu;
  /// Without the paths of the source.
  std::string techniques() const;
};

/// Completes `run`, whose ranks, shards and dtypes are known. Why the row is
/// not modelled, or "".
std::string readFineTuning(const RowText &text, Run &run);

/// The number that stands behind `word` ("transformers 4.48.1"); "" if none.
std::string releaseAfter(const std::string &text, const std::string &word);

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_FINETUNING_H
