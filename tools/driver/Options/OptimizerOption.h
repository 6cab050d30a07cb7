//===- OptimizerOption.h - The optimizer by transformers' name --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_OPTIONS_OPTIMIZEROPTION_H
#define ACCEL_TOOLS_DRIVER_OPTIONS_OPTIMIZEROPTION_H

#include "runtime/plan/Optimizers.h"
#include "tools/options/Values.h"

namespace accel {

/// A name of TrainingArguments.optim. Names of optimizers that are not modelled
/// are read too.
ValueKind<const plan::TransformersOptimizer *> optimizerValue();

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_OPTIONS_OPTIMIZEROPTION_H
