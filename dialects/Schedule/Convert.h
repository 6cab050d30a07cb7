//===- Convert.h - plan::Program and schedule.program -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The same program as a struct, on which simulator, planner and verifier work,
// and as IR, which people read and edit. Nothing is lost on the way: the
// struct that comes back equals `canonical` of the one that went in.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SCHEDULE_CONVERT_H
#define ACCEL_DIALECTS_SCHEDULE_CONVERT_H

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
/// not see.
ProgramOp importProgram(mlir::ModuleOp module, const plan::Plan &plan,
                        const plan::Program &program);

/// The struct of an op. `functionIndex` gives the position in Plan::functions
/// of a callee, or -1 if there is none; by default they are looked up by name.
/// Reports an error where a unit, parameter or function is not the plan's.
mlir::FailureOr<plan::Program>
exportProgram(ProgramOp program, const plan::Plan &plan,
              llvm::function_ref<int(llvm::StringRef)> functionIndex = nullptr);

/// Tensor type of a plan's dtype and shape, and back; u8 is ui8.
mlir::RankedTensorType tensorType(mlir::MLIRContext *context, plan::DType dtype,
                                  llvm::ArrayRef<int64_t> shape);
std::optional<plan::DType> planDType(mlir::Type elementType);

} // namespace accel::schedule

#endif // ACCEL_DIALECTS_SCHEDULE_CONVERT_H
