//===- ExplainMemory.h - A plan's memory, step by step ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_EXPLAINMEMORY_H
#define ACCEL_TOOLS_DRIVER_REPORT_EXPLAINMEMORY_H

#include "runtime/plan/Plan.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace accel {

struct ExplainedMemory {
  std::string text;
  nlohmann::ordered_json json;
};

/// Who holds memory at "peak", "170" (a step of the program with the peak) or
/// "last:170"; or, for "timeline", the bytes of every step. Nothing where
/// `what` is none of these; `problem` is set where the step does not exist.
std::optional<ExplainedMemory> explainMemory(const plan::Plan &plan,
                                             const std::string &what,
                                             std::string &problem);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_EXPLAINMEMORY_H
