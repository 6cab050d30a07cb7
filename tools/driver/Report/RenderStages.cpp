//===- RenderStages.cpp - The stages of a pipeline ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/RenderStages.h"

#include "tools/driver/Text/Format.h"

#include <algorithm>

namespace accel {

std::string renderStages(const pipeline::SimulatedStep &step) {
  const pipeline::Problem &p = step.problem;
  std::string out = std::string("\n  pipeline by ") + describe(p.kind).name +
                    ": " + std::to_string(p.stages) + " stages, " +
                    std::to_string(p.microBatches) + " micro-batches";
  if (step.simulation.makespan > 0)
    out += ", a bubble of " + formatPercent(step.simulation.bubbleShare()) +
           " of a rank's time in the mean over ranks";
  out += "\n";
  size_t width = 0;
  for (int stage = 0; stage < p.stages; ++stage)
    width = std::max(width, std::to_string(stage).size());
  for (int stage = 0; stage < p.stages; ++stage) {
    const int rank = p.rankOf(stage);
    out += "    stage " + padRight(std::to_string(stage), width + 3);
    // Stages of one rank share its memory.
    out +=
        p.chunks > 1
            ? "of rank " + padRight(std::to_string(rank), width)
            : padLeft(formatBytes(step.simulation.totals[rank].peakBytes), 10) +
                  " at the peak";
    out += ", " + std::to_string(step.schedule.frames[stage]) + " in flight" +
           (step.holds[stage].empty() ? "" : "   " + step.holds[stage]) + "\n";
  }
  for (int rank = 0; p.chunks > 1 && rank < p.ranks(); ++rank)
    if (const int64_t peak = step.simulation.totals[rank].peakBytes)
      out += "    rank " + padRight(std::to_string(rank), width + 4) +
             padLeft(formatBytes(peak), 10) + " at the peak\n";
  return out;
}

} // namespace accel
