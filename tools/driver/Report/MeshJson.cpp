//===- MeshJson.cpp - Which rank holds which part -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/MeshJson.h"

#include <cmath>
#include <map>

namespace accel {

using Json = nlohmann::ordered_json;

Json meshJson(const plan::Plan &plan, const PlanReport &report) {
  Json axes = Json::array();
  for (const plan::Axis &axis : plan.axes)
    axes.push_back({{"name", axis.name}, {"size", axis.size}});
  Json splits = Json::array();
  for (const SplitParameter &split : report.splits)
    splits.push_back({{"parameter", split.fqn},
                      {"axis", split.axis},
                      {"dim", split.dim},
                      {"size", split.size},
                      {"pieces", split.pieces},
                      {"why", split.why}});
  return {{"axes", axes},
          {"ranks_per_node",
           report.ranksPerNode > 0 ? Json(report.ranksPerNode) : Json()},
          {"expert_ranks", report.expertRanks},
          {"splits", splits}};
}

int64_t PartOfUnit::of(int64_t amount) const {
  if (own == whole)
    return amount;
  const double part = static_cast<double>(own) / static_cast<double>(whole);
  return static_cast<int64_t>(std::ceil(static_cast<double>(amount) * part));
}

PartOfUnit partOf(const plan::Plan &plan, const plan::Unit &unit,
                  const std::vector<SplitParameter> &splits) {
  if (splits.empty())
    return {};
  std::map<std::string, int64_t> parts; // by parameter
  for (const SplitParameter &split : splits)
    parts.try_emplace(split.fqn, 1).first->second *= plan.axisSize(split.axis);
  PartOfUnit result = {0, 0};
  for (int i : unit.parameters) {
    const plan::Parameter &parameter = plan.parameters[i];
    const auto at = parts.find(parameter.fqn);
    // A program's units hold a rank's part already.
    result.whole += plan::ownNumel(plan, parameter);
    result.own += parameter.numel() / (at == parts.end() ? 1 : at->second);
  }
  return result.whole ? result : PartOfUnit();
}

} // namespace accel
