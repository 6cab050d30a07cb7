//===- Meeting.h - What ranks agree on before they start --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_MEETING_H
#define ACCEL_TOOLS_ACCEL_RUN_MEETING_H

#include "runtime/checkpoint/RunFolder.h"
#include "runtime/collectives/Agreement.h"
#include "tools/accel-run/Preflight.h"

namespace accel::run {

/// What the command line, the environment and the plan say, as far as the
/// result or the collectives depend on it: the job key by key, the plan's other
/// sections by their hashes, the files of its data by their sizes.
Facts factsOf(const Input &input, const Options &options);

/// Where training starts, decided and recorded in the job's folder, which is
/// locked from then on; by the process that is alone, or by rank 0. Throws
/// FileError.
Start beginRun(const Input &input, const Options &options, FolderLock &lock);

/// The same for a rank among others: compares facts first.
Start meet(const Input &input, const Options &options,
           const Environment &environment, const Rendezvous &rendezvous,
           FolderLock &lock);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_MEETING_H
