//===- RenderPhases.h - Phases of a job, for people and programs *- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_RENDERPHASES_H
#define ACCEL_TOOLS_DRIVER_REPORT_RENDERPHASES_H

#include "passes/Phases/JobPhases.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace accel {

/// The phases of a job and what bounds them.
struct PhaseReport {
  std::vector<JobPhase> phases;
  std::optional<int64_t> deviceBytes; // what a rank may hold on its device
  std::optional<int64_t> nodeBytes;   // memory of a node's host
  bool all = false;                   // show every phase
};

/// One line for each phase that does not fit a bound or comes within 5 % of it,
/// and for each that may outlast a collective's timeout; of all phases where
/// the report says so. "" where there is nothing to say.
std::string renderPhases(const PhaseReport &report);
nlohmann::ordered_json phasesJson(const PhaseReport &report);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_RENDERPHASES_H
