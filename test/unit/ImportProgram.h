//===- ImportProgram.h - A plan's program as IR -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The inverse of schedule::exportProgram, for tests: programs that no compiler
// wrote, as IR.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_IMPORTPROGRAM_H
#define ACCEL_TEST_UNIT_IMPORTPROGRAM_H

#include "dialects/Schedule/Schedule.h"
#include "runtime/plan/Plan.h"

namespace accel::schedule {

/// The program with what IR does not number in the order of the steps: values
/// by definition (unused ones dropped), timepoints by start; and the units and
/// roles that collectives, awaits, norms and updates imply filled in.
plan::Program canonical(const plan::Program &program);

/// Appends `program` to the module; the plan gives units, parameters and
/// functions. Reports an error and returns null where a buffer is used that is
/// in flight or freed, or a storage is shared with a value that the call does
/// not see. What exportProgram makes of it is `canonical(program)`.
ProgramOp importProgram(mlir::ModuleOp module, const plan::Plan &plan,
                        const plan::Program &program);

} // namespace accel::schedule

#endif // ACCEL_TEST_UNIT_IMPORTPROGRAM_H
