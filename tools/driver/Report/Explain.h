//===- Explain.h - The recorded reasons of a plan ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_EXPLAIN_H
#define ACCEL_TOOLS_DRIVER_REPORT_EXPLAIN_H

#include "runtime/plan/Plan.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace accel {

/// What a plan says about a unit, a parameter or a kind of decision.
struct Explanation {
  std::string text;
  nlohmann::ordered_json reasons; // the decisions
};

/// Nothing where the plan has no `what`.
std::optional<Explanation> explain(const plan::Plan &plan,
                                   const std::string &what);

/// All that `explain` knows, for suggestions.
std::vector<std::string> explainableNames(const plan::Plan &plan);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_EXPLAIN_H
