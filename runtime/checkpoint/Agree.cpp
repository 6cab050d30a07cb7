//===- Agree.cpp - Work that all ranks do, or none ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Agree.h"

#include "runtime/checkpoint/Files.h"
#include "runtime/collectives/Groups.h"

namespace accel::run {

void agree(Groups &groups, const std::string &what,
           const std::function<void()> &work,
           const std::function<void()> &cleanUp) {
  std::string reason;
  bool done = false;
  try {
    work();
    done = true;
  } catch (const std::exception &error) {
    reason = error.what();
  }
  const int failed = groups.firstFailure(done);
  if (failed < 0)
    return;
  if (cleanUp) {
    cleanUp();
    groups.barrier();
  }
  if (failed != groups.rank())
    throw PeerFileError("rank " + std::to_string(failed) + " failed");
  throw AgreedFileError(what.empty() ? reason : what + ": " + reason);
}

} // namespace accel::run
