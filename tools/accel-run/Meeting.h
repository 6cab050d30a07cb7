//===- Meeting.h - What ranks agree on before they start --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_MEETING_H
#define ACCEL_TOOLS_ACCEL_RUN_MEETING_H

#include "runtime/checkpoint/RunFolder.h"
#include "runtime/collectives/Agreement.h"
#include "tools/accel-run/LineLock.h"
#include "tools/accel-run/Preflight.h"

namespace accel::run {

/// What the command line, the environment and the plan say, as far as the
/// result or the collectives depend on it: the job key by key, the plan's other
/// sections by their hashes, the files of its data by their sizes.
Facts factsOf(const Input &input, const Options &options);

/// That no other run writes what this one does: rank 0's.
struct RunLocks {
  FolderLock folder;
  LineLock log, predictions;
};

/// Where training starts, decided and recorded in the job's folder, which is
/// locked from then on, as are the files of lines; by the process that is
/// alone, or by rank 0. Throws FileError.
Start beginRun(const Input &input, const Options &options, RunLocks &locks);

/// The same for a rank among others: compares facts first.
Start meet(const Input &input, const Options &options,
           const Environment &environment, const Rendezvous &rendezvous,
           RunLocks &locks);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_MEETING_H
