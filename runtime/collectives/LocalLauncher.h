//===- LocalLauncher.h - Ranks on this machine ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_LOCALLAUNCHER_H
#define ACCEL_RUNTIME_COLLECTIVES_LOCALLAUNCHER_H

#include <functional>

namespace accel::run {

/// Ends the process, with what is written. On CPUs without LibTorch's
/// destructors of static objects: they take a tenth of a second, and nothing is
/// lost. With CUDA's libraries as usual: profilers write what they have at
/// exit.
[[noreturn]] void endProcess(int code);

/// Starts `count` processes as ranks of one job (`--nproc`), and waits. A rank
/// is a fork of this process, which must have one thread, so that LibTorch is
/// loaded once: a third of a second for each rank. `rank` is called there, with
/// the environment of a rank, and returns its exit code. The first rank that
/// fails ends the others: they get a moment to end by themselves, then SIGKILL.
/// Says on stderr which rank it was and how it ended. Stop signals go on to the
/// ranks (StopSignal.h). Returns the exit code: 0 if all succeeded, exitResume
/// if they were asked to end, else that of the rank that failed first (1 for a
/// signal).
int runLocally(int count, const std::function<int()> &rank);

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_LOCALLAUNCHER_H
