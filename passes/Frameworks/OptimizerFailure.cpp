//===- OptimizerFailure.cpp - Optimizers that a framework cannot run ------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/OptimizerFailure.h"

namespace accel {

const char *whyOptimizerFails(FrameworkKind executor,
                              const plan::OptimizerDescription &description,
                              const plan::TransformersOptimizer *named) {
  if (executor == FrameworkKind::Fsdp1 || executor == FrameworkKind::Deepspeed)
    return description.failsOnFlatShards;
  if (executor != FrameworkKind::Fsdp2)
    return nullptr;
  return named && named->failsOnDTensors ? named->failsOnDTensors
                                         : description.failsOnDTensors;
}

} // namespace accel
