//===- LowerToSchedule.h - lower-to-schedule --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_LOWERTOSCHEDULE_H
#define ACCEL_PASSES_SCHEDULE_LOWERTOSCHEDULE_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `lower-to-schedule{overlap=}`: writes the programs of an optimizer step and
/// of an evaluation, and the functions that they call. Units are gathered as
/// far ahead as the prefetch decision says, and a reduction runs beside the
/// next backward; without `overlap` every collective is awaited where it
/// starts.
std::unique_ptr<mlir::Pass> createLowerToSchedulePass();
} // namespace accel

#endif // ACCEL_PASSES_SCHEDULE_LOWERTOSCHEDULE_H
