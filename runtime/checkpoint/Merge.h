//===- Merge.h - A Hugging Face folder of the trained model -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_MERGE_H
#define ACCEL_RUNTIME_CHECKPOINT_MERGE_H

#include "runtime/checkpoint/Buffers.h"
#include "runtime/execute/Executor.h"

#include <cstdint>
#include <string>

namespace accel::run {

/// transformers' own limit of one weight file, in bytes.
constexpr int64_t defaultShardLimit = 5'000'000'000;

/// Writes `folder`: model.safetensors (or several and an index, each below
/// `limit` bytes unless a tensor is larger) with every parameter once, in its
/// checkpoint type and the persistent ones of `buffers`, and the small files of
/// `source` (config, tokenizer), a folder or what an exporter put into a .pt2.
/// Of a model with an adapter: adapter_model.safetensors and
/// adapter_config.json, as PEFT saves and loads them. Its accel-run.json
/// (OutputModel.h) names `run`, `step` and the files; a folder without one is
/// not replaced, and one with files of others is kept aside. Each rank writes
/// its own elements into the file, so none gathers anything. Collective; the
/// folder appears complete or not at all, and all ranks throw FileError where
/// one fails.
void writeModelFolder(Executor &executor, const Buffers &buffers,
                      const std::string &folder, const std::string &source,
                      int64_t limit, const std::string &run, int64_t step);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_MERGE_H
