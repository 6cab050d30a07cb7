//===- Estimate.h - What a model takes --------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The table of `accelerate estimate-memory` for a model folder, and what the
// model really takes: loaded, trained, and in a step.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_ESTIMATE_ESTIMATE_H
#define ACCEL_TOOLS_DRIVER_ESTIMATE_ESTIMATE_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/Estimate/AccelerateTable.h"
#include "frontends/Estimate/Sizes.h"
#include "runtime/plan/Optimizers.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace accel::estimate {

/// What `accel-opt estimate-memory` is asked.
struct EstimateOptions {
  std::string model; // a folder or its config.json
  std::string library = "transformers";
  std::vector<Dtype> dtypes; // rows of the table
  bool trustRemoteCode = false;
  const plan::TransformersOptimizer *optim =
      plan::findTransformersOptimizer("adamw_torch");
  std::optional<int64_t> microBatch, sequenceLength; // of the step
};

/// What a step needs beside the weights, from a plan.
struct Activations {
  int64_t microBatch = 1, sequenceLength = 0;
  int64_t saved = 0, logits = 0; // bytes at the peak
  int64_t total() const { return saved + logits; }
};

struct Estimate {
  std::string model; // as on the command line
  ModuleTree base, full;
  ModelSizes table;
  std::vector<Row> rows;
  TrueSizes sizes;
  std::string optimizer = "AdamW";
  std::optional<Activations> activations;
  std::string whyNoActivations;
};

/// Nothing where the model cannot be read; the reason was reported.
std::optional<Estimate> estimateMemory(const EstimateOptions &options,
                                       DiagnosticEngine &engine);

std::string renderEstimate(const Estimate &estimate);
nlohmann::ordered_json estimateJson(const Estimate &estimate);

} // namespace accel::estimate

#endif // ACCEL_TOOLS_DRIVER_ESTIMATE_ESTIMATE_H
