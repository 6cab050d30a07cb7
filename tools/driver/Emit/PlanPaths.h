//===- PlanPaths.h - Paths in a plan ----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EMIT_PLANPATHS_H
#define ACCEL_TOOLS_DRIVER_EMIT_PLANPATHS_H

#include "runtime/plan/Plan.h"

#include <string>

namespace accel {

/// Writes the paths of a plan that goes to `planFile` relative to its folder
/// where they lie in that folder, or in the folder of `jobFile` if the plan
/// goes there too: such a folder can be moved as a whole, and plans to the same
/// bytes wherever it is. Other paths stay absolute.
void makePathsRelative(plan::Plan &plan, const std::string &planFile,
                       const std::string &jobFile);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EMIT_PLANPATHS_H
