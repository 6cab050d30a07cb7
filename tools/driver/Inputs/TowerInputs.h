//===- TowerInputs.h - What a model has beside its text ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_TOWERINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_TOWERINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Takes --images-per-sample and --image-size; reports what no plan can count.
void takeImages(PlanInputs &inputs, const PlanOptions &options,
                DiagnosticEngine &engine);

/// Says that a model with a tower is planned on text alone, and where torch's
/// DistributedDataParallel would stop for that; with images, what they take.
void reportTower(const PlanInputs &inputs, const PlanOptions &options,
                 DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_TOWERINPUTS_H
