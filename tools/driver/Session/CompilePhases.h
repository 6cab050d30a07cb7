//===- CompilePhases.h - From one phase to another --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_COMPILEPHASES_H
#define ACCEL_TOOLS_DRIVER_SESSION_COMPILEPHASES_H

#include "tools/driver/Session/Compile.h"

namespace accel {

class Session;

/// --compile-from and --compile-to: reads a module of one phase, or imports the
/// configuration, and runs the passes to another.
void compilePhases(Session &session, CompileResult &result);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_COMPILEPHASES_H
