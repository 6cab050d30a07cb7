//===- VerifySchedule.h - Is this schedule safe? ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VERIFYSCHEDULE_VERIFYSCHEDULE_H
#define ACCEL_PASSES_VERIFYSCHEDULE_VERIFYSCHEDULE_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {

/// `verify-schedule`: each collective is awaited once, nothing is used in
/// flight or after it was freed, nothing is freed twice or left behind, one
/// order of collectives, bytes that agree, and a recorded peak that is the
/// timeline's. Changes nothing; fails with an error for each problem.
std::unique_ptr<mlir::Pass> createVerifySchedulePass();
void registerVerifySchedulePass();

} // namespace accel

#endif // ACCEL_PASSES_VERIFYSCHEDULE_VERIFYSCHEDULE_H
