//===- ExitCode.h - What a command ends with --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_OPTIONS_EXITCODE_H
#define ACCEL_TOOLS_OPTIONS_EXITCODE_H

namespace accel {

/// Exit codes of accel-opt and accel-run (docs: README). accel-run has one
/// more, for a stop by a signal.
enum ExitCode : int {
  exitOk = 0,
  exitInvalid = 1,
  exitDoesNotFit = 2,
  exitInternal = 3,
  exitNotSupported = 4,
  exitUsage = 64
};

} // namespace accel

#endif // ACCEL_TOOLS_OPTIONS_EXITCODE_H
