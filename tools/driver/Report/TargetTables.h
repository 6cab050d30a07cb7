//===- TargetTables.h - What targets say ------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_TARGETTABLES_H
#define ACCEL_TOOLS_DRIVER_REPORT_TARGETTABLES_H

#include "passes/Targets/Target.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace accel {

/// A line each.
std::string renderTargets(const std::vector<Target> &targets);
/// Every figure with its source.
std::string renderTarget(const Target &target);
nlohmann::ordered_json targetJson(const Target &target);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_TARGETTABLES_H
