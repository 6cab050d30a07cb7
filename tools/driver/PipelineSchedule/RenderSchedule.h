//===- RenderSchedule.h - A pipeline schedule to look at --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_PIPELINESCHEDULE_RENDERSCHEDULE_H
#define ACCEL_TOOLS_DRIVER_PIPELINESCHEDULE_RENDERSCHEDULE_H

#include "passes/PipelineSchedules/Simulate.h"

namespace accel {

/// A verified schedule and what it takes.
struct SimulatedSchedule {
  const pipeline::Problem &problem;
  const pipeline::Schedule &schedule;
  const pipeline::Simulation &simulation;
};

struct DrawOptions {
  int64_t width = 120; // columns
  bool colour = false;
};

/// One row a rank with time to the right, then bubbles, frames and bytes by
/// rank. Where `width` columns are too few for a letter an action, a sentence
/// stands in place of the drawing.
std::string renderSchedule(const SimulatedSchedule &what,
                           const DrawOptions &options);

/// {schedule, ranks, stages, chunks, micro_batches, makespan_s, bubble_share,
/// frames (by stage), per_rank [{rank, busy_s, bubble_s, gap_s, peak_bytes,
/// actions [{stage, micro_batch, pass, start_s, end_s}]}]}.
std::string scheduleJson(const SimulatedSchedule &what);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_PIPELINESCHEDULE_RENDERSCHEDULE_H
