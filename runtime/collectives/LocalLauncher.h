//===- LocalLauncher.h - Ranks on this machine ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_LOCALLAUNCHER_H
#define ACCEL_RUNTIME_COLLECTIVES_LOCALLAUNCHER_H

#include <string>
#include <vector>

namespace accel::run {

/// Starts `count` processes of `program` with `arguments` (without argv[0]) as
/// ranks of one job (`--nproc`), and waits. The first rank that fails ends the
/// others: they get a moment to end by themselves, then SIGKILL.
/// Says on stderr which rank it was and how it ended. Stop signals go on to the
/// ranks (StopSignal.h). Returns the exit code: 0 if all succeeded, exitResume
/// if they were asked to end, else that of the rank that failed first (1 for a
/// signal).
int runLocally(const std::string &program,
               const std::vector<std::string> &arguments, int count);

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_LOCALLAUNCHER_H
