//===- Sizes.h - What a model really takes ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ESTIMATE_SIZES_H
#define ACCEL_FRONTENDS_ESTIMATE_SIZES_H

#include "frontends/ModuleTree/ModuleTree.h"
#include "runtime/plan/Optimizers.h"

#include <string>
#include <vector>

namespace accel::estimate {

/// Weights for inference.
struct LoadedSize {
  std::string name; // "bfloat16", "int8 (LLM.int8)"
  int64_t bytes = 0;
  std::string how;
};

/// What training keeps from step to step on one device, nothing
/// sharded or offloaded.
struct TrainingSize {
  std::string name; // "bf16 mixed precision"
  double bytesPerParameter = 0;
  int64_t weights = 0, gradients = 0, optimizer = 0; // bytes
  int64_t casts = 0; // low-precision copies while a step computes
  std::string how;
  int64_t total() const { return weights + gradients + optimizer + casts; }
};

struct TrueSizes {
  int64_t parameters = 0;  // elements, tied ones once
  int64_t bufferBytes = 0; // as made for the configuration's dtype
  std::vector<LoadedSize> loaded;
  std::vector<TrainingSize> training;
};

/// Of the class that `architectures` names. Quantized sizes are those of
/// bitsandbytes: linear layers but the output embedding, with their scales;
/// everything else in bfloat16.
TrueSizes trueSizes(const ModuleTree &tree,
                    const plan::OptimizerRule &optimizer =
                        plan::OptimizerRule(plan::Optimizer()));

/// Parameters of `full` that `base` has not, tied ones left out, as FQNs.
std::vector<const TreeParameter *> missingParameters(const ModuleTree &full,
                                                     const ModuleTree &base);

} // namespace accel::estimate

#endif // ACCEL_FRONTENDS_ESTIMATE_SIZES_H
