//===- InputFiles.h - What this process has read ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Readers of files note what they open here, so that no command writes over
// what it has read, whichever reader found the file.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_DIAGNOSTICS_INPUTFILES_H
#define ACCEL_FRONTENDS_DIAGNOSTICS_INPUTFILES_H

#include <string>

namespace accel {

/// `path` is read by this process. From any thread.
void noteInputFile(const std::string &path);

/// The path by which the file `path` was read, or "". Links, hard links and
/// other spellings of a path are the same file.
std::string readAs(const std::string &path);

} // namespace accel

#endif // ACCEL_FRONTENDS_DIAGNOSTICS_INPUTFILES_H
