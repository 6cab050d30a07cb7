//===- RenderPhases.h - Phases of a job, for people and programs *- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_RENDERPHASES_H
#define ACCEL_TOOLS_DRIVER_REPORT_RENDERPHASES_H

#include "tools/driver/Session/PlanReport.h"

#include <nlohmann/json.hpp>

#include <string>

namespace accel {

/// One line for each phase that does not fit a bound or comes within 5 % of it,
/// and for each that may outlast a collective's timeout; of all phases where
/// the report says so. "" where there is nothing to say.
std::string renderPhases(const PhaseReport &report);
nlohmann::ordered_json phasesJson(const PhaseReport &report);
nlohmann::ordered_json phaseBoundsJson(const PhaseReport &report);
/// The phases of what `plan --format json` prints, all of which are shown;
/// nothing where it is no such report.
std::optional<PhaseReport> readPhases(const nlohmann::ordered_json &root);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_RENDERPHASES_H
