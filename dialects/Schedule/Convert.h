//===- Convert.h - schedule.program to plan::Program ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A program as the plan has it: the same operations as a list of steps, with
// numbers for values (in the order in which they are made), timepoints (in the
// order of the starts), units, parameters and functions.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SCHEDULE_CONVERT_H
#define ACCEL_DIALECTS_SCHEDULE_CONVERT_H

#include "dialects/Schedule/Schedule.h"
#include "runtime/plan/Plan.h"

namespace accel::schedule {

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
