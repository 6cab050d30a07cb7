//===- RecordPeaks.h - The peak of a program --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_RECORDPEAKS_H
#define ACCEL_PASSES_SCHEDULE_RECORDPEAKS_H

#include "passes/Schedule/CalleeMemory.h"

namespace accel::schedule {

/// Records the program's peak and where it is, as plan::simulate counts it,
/// from the bytes in the types and the peaks of its calls. With `callees` the
/// peaks of the calls are measured first; an unknown callee is an error.
mlir::LogicalResult recordPeaks(ProgramOp program,
                                CalleeMemory *callees = nullptr);

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_RECORDPEAKS_H
