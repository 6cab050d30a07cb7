//===- RenderStages.cpp - The stages of a pipeline ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/RenderStages.h"

#include "tools/driver/Text/Format.h"

#include <algorithm>

namespace accel {

std::string renderStages(const plan::Plan &plan) {
  if (plan.stages.empty())
    return "";
  const size_t stages = plan.stages.size();
  double busy = 0;
  for (const plan::Stage &stage : plan.stages)
    busy += stage.busySeconds / static_cast<double>(stages);
  std::string out = "  pipeline by " + plan.schedule + ": " +
                    std::to_string(stages) + " stages, " +
                    std::to_string(plan.job.accumulation) + " micro-batches";
  if (plan.predicted.hasTime)
    out += ", a bubble of " +
           formatPercent(1 - busy / plan.predicted.stepSeconds) +
           " of a rank's time";
  out += "\n";
  for (size_t i = 0; i < stages; ++i) {
    const plan::Stage &stage = plan.stages[i];
    const std::string name = "stage " + std::to_string(i);
    auto cut = std::find_if(plan.decisions.begin(), plan.decisions.end(),
                            [&](const plan::Decision &d) {
                              return d.what == "stage" && d.where == name;
                            });
    out += "    " + padRight(name, 10) +
           padLeft(formatBytes(stage.peakBytes), 10) + " at the peak, " +
           std::to_string(stage.frames) + " in flight" +
           (cut == plan.decisions.end() ? "" : "   " + cut->choice) + "\n";
  }
  return out + "\n";
}

} // namespace accel
