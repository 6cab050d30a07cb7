//===- PlanOptions.h - What a user asks of a plan ----------------*- C++
//-*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_OPTIONS_PLANOPTIONS_H
#define ACCEL_TOOLS_DRIVER_OPTIONS_PLANOPTIONS_H

#include "passes/Pipeline/DdpKwargs.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace accel {

/// What the command line of `plan` says.
struct PlanOptions {
  std::string config;
  /// The configuration itself; `config` is a name only then.
  std::optional<std::string> configText;
  std::string model, adapter, target, executor;
  std::string accelerateVersion = "1.15.0";
  std::string accumulationMode; // empty: reduce_each
  std::string memoryBudget;     // "70GiB"
  std::string torchVersion;     // empty: the newest that is modelled
  std::string allocatorConf;    // PYTORCH_CUDA_ALLOC_CONF of the job
  std::string tune;             // empty: no; "on", "all"
  std::string remarks;          // file, or "-"
  std::string activationBudget; // "2GiB" or "0"; empty: none
  std::string lossChunks;       // "8" or "auto"; empty: the job's
  std::string optim;            // as transformers names it; empty: the job's
  std::string ddpKwargs;        // "bucket_cap_mb=50,comm_hook=bf16"
  std::string compileTo, compileFrom, dumpPhases;
  std::string output, format = "text";
  std::vector<std::string> emit;
  /// Open sizes of a .pt2, by name.
  std::vector<std::pair<std::string, int64_t>> dims;
  int64_t nodes = 0, sequenceLength = 0, microBatch = 0, accumulation = 0;
  int64_t prefetch = -1;
  int64_t globalBatch = 0; // sequences of a step over all ranks
  bool gradientCheckpointing = false;
  bool maxBatch = false, tunePrecision = false, holdOutputs = false;
};

/// "bucket_cap_mb=50,comm_hook=bf16,gradient_as_bucket_view"; on failure
/// nothing, and what is wrong in `problem`.
std::optional<DdpKwargs> parseDdpKwargs(const std::string &text,
                                        std::string *problem = nullptr);

/// "70GiB", "70G", "500MB", "1024": bytes, or -1.
int64_t parseBytes(const std::string &text);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_OPTIONS_PLANOPTIONS_H
