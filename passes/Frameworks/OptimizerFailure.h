//===- OptimizerFailure.h - Optimizers that a framework cannot run -*- C++ -*-//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKS_OPTIMIZERFAILURE_H
#define ACCEL_PASSES_FRAMEWORKS_OPTIMIZERFAILURE_H

#include "passes/Frameworks/Framework.h"
#include "runtime/plan/Optimizers.h"

namespace accel {

/// Why `executor`, whose shards are flat or DTensors, cannot run an optimizer
/// that transformers calls `named` (null: the script's own form); null if it
/// can. FSDP2 fails at the first step, the others before it.
const char *whyOptimizerFails(FrameworkKind executor,
                              const plan::OptimizerDescription &description,
                              const plan::TransformersOptimizer *named);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKS_OPTIMIZERFAILURE_H
