//===- QuantizedInputs.h - Whether a quantised base trains ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_QUANTIZEDINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_QUANTIZEDINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Reports a quantised base that the job cannot train with: without an adapter,
/// or under a framework that refuses it; false then.
bool checkQuantization(const PlanInputs &inputs, const PlanOptions &options,
                       DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_QUANTIZEDINPUTS_H
