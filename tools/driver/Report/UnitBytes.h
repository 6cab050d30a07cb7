//===- UnitBytes.h - What a rank holds of a unit ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_UNITBYTES_H
#define ACCEL_TOOLS_DRIVER_REPORT_UNITBYTES_H

#include "tools/driver/Session/PlanReport.h"

#include <string>
#include <vector>

namespace accel {

/// The parameters of a unit on one rank: as kept between steps, and as
/// gathered; 0: nothing is gathered.
struct UnitBytes {
  int64_t kept = 0, gathered = 0;
  std::string dtypes; // of what is kept: "bf16", "u8 and bf16"
};

/// Of a plan that accel-run executes, and by unit of it.
UnitBytes unitBytes(const plan::Plan &plan, const plan::Unit &unit);
std::vector<UnitBytes> unitBytes(const plan::Plan &plan);

/// By unit of a plan under the framework that `report` is of: a quantised base
/// is packed, and ZeRO shards parameters in stage 3 alone.
std::vector<UnitBytes> unitBytes(const plan::Plan &plan,
                                 const PlanReport &report);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_UNITBYTES_H
