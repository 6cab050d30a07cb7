//===- StandardOutput.h - What was printed is written -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_OPTIONS_STANDARDOUTPUT_H
#define ACCEL_TOOLS_OPTIONS_STANDARDOUTPUT_H

namespace accel {

/// A reader that goes away before the end.
enum class BrokenPipe { Error, Ignored };

/// To be called last. `code`, the exit code so far, or another one, with a
/// sentence on stderr, where not all of standard output could be written.
int checkStandardOutput(const char *program, int code,
                        BrokenPipe brokenPipe = BrokenPipe::Error);

} // namespace accel

#endif // ACCEL_TOOLS_OPTIONS_STANDARDOUTPUT_H
