//===- FitTarget.h - A target from measured operators -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FIT_FITTARGET_H
#define ACCEL_PASSES_FIT_FITTARGET_H

#include "passes/Targets/Target.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace accel {

/// What `accel-run --calibrate` has measured of a plan.
struct Calibration {
  struct Operator {
    int function = 0, instruction = 0; // of the plan
    double seconds = 0;                // of one call
    double calls = 0;                  // in an optimizer step
  };
  struct Collective {
    plan::StepKind kind = plan::StepKind::AllGather;
    std::vector<std::string> axes;
    double bytes = 0; // the whole buffer, of all ranks
    double seconds = 0;
  };
  std::vector<Operator> operators;
  std::vector<Collective> collectives;
};

/// A figure of a target's file that a fit has changed: "memory.bandwidth",
/// 51.2e9.
struct FittedFigure {
  std::string key;
  double value = 0;
  double before = 0;
  double share = 0; // of a step's measured seconds that it was fitted to
};

/// Changes the efficiencies of `target` so that all operators of one kind
/// (products and attention by dtype, reductions, the others) together take in
/// the model what they took when they were measured, and the bandwidth inside a
/// node likewise for collectives. Shapes of curves, latencies and what no
/// operator of the plan tells stay. Indices must be in range.
std::vector<FittedFigure> fitTarget(const plan::Plan &plan,
                                    const Calibration &calibration,
                                    Target &target);

/// The text of a target's file with these figures, and `source` as where they
/// come from. Empty where the text has no such key.
std::string withFigures(std::string text,
                        const std::vector<FittedFigure> &figures,
                        const std::string &source);

} // namespace accel

#endif // ACCEL_PASSES_FIT_FITTARGET_H
