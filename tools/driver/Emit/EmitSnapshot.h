//===- EmitSnapshot.h - A step for torch's memory_viz -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EMIT_EMITSNAPSHOT_H
#define ACCEL_TOOLS_DRIVER_EMIT_EMITSNAPSHOT_H

#include "passes/FrameworkSteps/StepTrace.h"

namespace accel {

/// The pickle that torch.cuda.memory._dump_snapshot writes, of a predicted
/// step: allocations and frees with their purpose as the frame, and what stays
/// as the blocks of one segment, which has `reservedBytes` as the allocator's
/// segments together, or more where the step needs it. Sizes and times are
/// those of the trace; addresses are the first that is free.
std::string snapshotPickle(const StepTrace &trace, int64_t reservedBytes);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EMIT_EMITSNAPSHOT_H
