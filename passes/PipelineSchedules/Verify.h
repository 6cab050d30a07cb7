//===- Verify.h - Whether a schedule can be executed ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PIPELINESCHEDULES_VERIFY_H
#define ACCEL_PASSES_PIPELINESCHEDULES_VERIFY_H

#include "passes/PipelineSchedules/Schedule.h"

namespace accel::pipeline {

/// How a message gets from rank to rank.
enum class Messages : uint8_t {
  /// A send is done at once, on a stream of its own; a receive waits for it.
  Buffered,
  /// Between two actions a rank posts one batch, which sends what the first
  /// made and receives what the second reads, and waits for all of it. A send
  /// ends when the other rank posts its receive. Megatron's fused send and
  /// receive and torch's Schedule1F1B execute so.
  Blocking,
};

/// What is wrong with a schedule, whoever made it, or "": an action that is
/// missing, twice or on another rank, one before what it reads, ranks that wait
/// for each other for ever, more frames at once than `schedule.frames` says.
std::string verify(const Problem &problem, const Schedule &schedule,
                   Messages messages = Messages::Buffered);

} // namespace accel::pipeline

#endif // ACCEL_PASSES_PIPELINESCHEDULES_VERIFY_H
