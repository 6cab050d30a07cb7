//===- RunShards.h - Checkpoints of accel-run -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A checkpoint of accel-run (runtime/checkpoint/Sharded.h) has a safetensors
// file a rank with flat tensors: of each unit its weights and the states of its
// optimizer. The header says which elements of which parameter stand where, so
// that no plan is needed to read them. Of a parameter that is cut along other
// dimensions than the first a rank has runs of one length, equally far apart.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_RUNSHARDS_H
#define ACCEL_FRONTENDS_CHECKPOINT_RUNSHARDS_H

#include "frontends/Checkpoint/Checkpoint.h"

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>

namespace accel::checkpoint {

struct RunShards {
  /// The parameters by what is kept of them: "param", "exp_avg", ... Each
  /// tensor has the parameter's name and shape.
  std::map<std::string, Part> kinds;
  Part buffers;                // of the model, that are saved with it
  std::set<std::string> apart; // kinds that stand apart from parameters
  int64_t step = 0;
  int64_t optimizerSteps = 0; // without skipped ones
  int64_t samples = 0;        // sequences that all ranks have read
  LossScale scale;
};

/// The format that shards name in their header.
constexpr const char *runShardFormat = "accel-run-1";

/// Before the name of a buffer, in the first rank's file.
constexpr const char *runBufferPrefix = "buffers.";

/// A checkpoint's state.json without its own hash, which is checked. Reports
/// and returns nothing where accel-run has not written it so.
std::optional<nlohmann::ordered_json>
readRunState(const std::string &path, DiagnosticEngine &diagnostics);

/// Reads the shards' headers, and all of the files for their hashes. Reports
/// and returns nothing where a file is not what its run has written, or
/// elements are missing.
std::optional<RunShards> readRunShards(const Checkpoint &read,
                                       DiagnosticEngine &diagnostics);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_RUNSHARDS_H
