//===- Outputs.h - The files that plan writes -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EMIT_OUTPUTS_H
#define ACCEL_TOOLS_DRIVER_EMIT_OUTPUTS_H

#include "tools/driver/Session/Compile.h"

namespace accel {

/// Writes what --emit and --compile-to ask for to -o; "-" is standard output.
/// False where something cannot be made or written, which is reported.
bool writeOutputs(const PlanOptions &options, const CompileResult &result,
                  DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EMIT_OUTPUTS_H
