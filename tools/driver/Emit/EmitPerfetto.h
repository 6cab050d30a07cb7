//===- EmitPerfetto.h - A step for ui.perfetto.dev --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EMIT_EMITPERFETTO_H
#define ACCEL_TOOLS_DRIVER_EMIT_EMITPERFETTO_H

#include "passes/FrameworkSteps/StepTrace.h"

namespace accel {

/// A step in the Trace Event Format, which ui.perfetto.dev and chrome://tracing
/// open: a track for each stream, collectives with their bytes, waits of the
/// compute stream, and a counter of memory by purpose with the budget.
std::string perfettoText(const StepTrace &trace, const std::string &title,
                         std::optional<int64_t> budgetBytes);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EMIT_EMITPERFETTO_H
