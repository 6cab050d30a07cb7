//===- EmitRemarks.h - Decisions as MLIR remarks ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each decision is a passed remark at the line that asked for it, each refused
// alternative a missed one, and what limits memory and time an analysis.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_EMITREMARKS_H
#define ACCEL_TOOLS_DRIVER_SESSION_EMITREMARKS_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "runtime/plan/Plan.h"
#include "tools/driver/Output/OutputFile.h"

namespace mlir {
class MLIRContext;
}

namespace accel {

/// Emits the decisions through the remark engine of `context`: as text to
/// stderr for "-", else as LLVM's YAML to the file. False where it cannot be
/// written, which is reported.
bool emitRemarks(mlir::MLIRContext &context,
                 const std::vector<plan::Decision> &decisions,
                 const OutputFile &file, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_EMITREMARKS_H
