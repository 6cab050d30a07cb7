//===- RenderStages.h - The stages of a pipeline ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_RENDERSTAGES_H
#define ACCEL_TOOLS_DRIVER_REPORT_RENDERSTAGES_H

#include "passes/PipelineSchedules/Simulate.h"

#include <string>

namespace accel {

/// The schedule, how long ranks wait, and what each stage computes and holds.
std::string renderStages(const pipeline::SimulatedStep &step);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_RENDERSTAGES_H
