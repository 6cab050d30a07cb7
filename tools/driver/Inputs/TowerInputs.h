//===- TowerInputs.h - What a model has beside its text ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_TOWERINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_TOWERINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Says that a model with a tower is planned on text alone, and where torch's
/// DistributedDataParallel would stop for that.
void reportTower(const PlanInputs &inputs, const PlanOptions &options,
                 DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_TOWERINPUTS_H
