//===- Measured.h - A plan beside what torch recorded -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_COMPARE_MEASURED_H
#define ACCEL_TOOLS_DRIVER_COMPARE_MEASURED_H

#include "frontends/Profile/Profile.h"
#include "tools/driver/Session/Compile.h"

namespace accel {

/// A change of the configuration whose prediction is nearer to what was
/// measured than that of the configuration itself.
struct LikelyChange {
  std::string text;      // "every layer is recomputed"
  int64_t reservedBytes; // predicted with it
};

/// The change that brings the predicted segments nearest to the measured ones,
/// where it leaves at most half of the difference, and where tensors and
/// segments are more than 2 % apart; of those that advice planned as
/// configurations of their own.
std::optional<LikelyChange> likelyChange(const PlanReport &report,
                                         const profile::Profile &measured);

/// Predicted beside measured, for people and for programs.
std::string renderMeasured(const PlanReport &report,
                           const profile::Profile &measured);
std::string renderMeasuredJson(const PlanReport *report,
                               const profile::Profile *measured,
                               const DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_COMPARE_MEASURED_H
