//===- LossChunks.h - As few pieces of the loss as it takes -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_OPT_LOSSCHUNKS_H
#define ACCEL_TOOLS_ACCEL_OPT_LOSSCHUNKS_H

#include "tools/accel-opt/ImportModule.h"

namespace accel {

/// Sets `options.lossChunks` to the least number of pieces for which the peak
/// of a step is not in the loss, and the reason. Each number that is tried is
/// compiled, so the bytes are those of the program. Where the loss stays the
/// peak (its table's gradient alone may be it), the number after which the
/// peak falls by less than 1 %. False after an error.
bool chooseLossChunks(mlir::MLIRContext &context, const PlanInputs &inputs,
                      ImportOptions &options, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_ACCEL_OPT_LOSSCHUNKS_H
