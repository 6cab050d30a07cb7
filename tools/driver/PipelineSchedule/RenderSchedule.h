//===- RenderSchedule.h - A pipeline schedule to look at --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_PIPELINESCHEDULE_RENDERSCHEDULE_H
#define ACCEL_TOOLS_DRIVER_PIPELINESCHEDULE_RENDERSCHEDULE_H

#include "passes/PipelineSchedules/Simulate.h"

#include <nlohmann/json_fwd.hpp>

namespace accel {

struct DrawOptions {
  int64_t width = 120; // columns
  bool colour = false;
  /// What helps where these are too few.
  const char *wider = "pass --width, or --format json for each action";
};

/// One row a rank with time to the right, then bubbles, frames and bytes by
/// rank. Where `width` columns are too few for a letter an action, a sentence
/// stands in place of the drawing.
std::string renderSchedule(const pipeline::SimulatedStep &what,
                           const DrawOptions &options);

/// {schedule, ranks, stages, chunks, micro_batches, makespan_s, bubble_share,
/// frames (by stage), holds (by stage, or empty), per_rank [{rank, busy_s,
/// bubble_s, gap_s, peak_bytes, actions [{stage, micro_batch, pass, start_s,
/// end_s}]}]}.
nlohmann::ordered_json scheduleJson(const pipeline::SimulatedStep &what);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_PIPELINESCHEDULE_RENDERSCHEDULE_H
