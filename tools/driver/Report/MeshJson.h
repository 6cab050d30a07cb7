//===- MeshJson.h - Which rank holds which part -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_MESHJSON_H
#define ACCEL_TOOLS_DRIVER_REPORT_MESHJSON_H

#include "tools/driver/Session/PlanReport.h"

#include <nlohmann/json.hpp>

namespace accel {

/// `mesh` of `plan --format json`: axes, outermost first, ranks of a node (null
/// where nothing says it), how many ranks share a layer's experts (the axis ep
/// has those that read other samples, without tp's ranks of transformers'
/// ep_size), and the parameters that an axis splits, each with the elements of
/// all ranks along the dimension that is split.
nlohmann::ordered_json meshJson(const plan::Plan &plan,
                                const PlanReport &report);

/// What a rank has of a unit before it is sharded: less than the plan's unit
/// counts where an axis splits its parameters and the plan has them whole.
struct PartOfUnit {
  int64_t own = 1, whole = 1; // elements

  /// Of an amount that is proportional to the unit's elements; rounded up.
  int64_t of(int64_t amount) const;
};
PartOfUnit partOf(const plan::Plan &plan, const plan::Unit &unit,
                  const std::vector<SplitParameter> &splits);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_MESHJSON_H
