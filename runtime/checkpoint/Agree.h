//===- Agree.h - Work that all ranks do, or none ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_AGREE_H
#define ACCEL_RUNTIME_CHECKPOINT_AGREE_H

#include <functional>
#include <string>

namespace accel::run {

class Groups;

/// Does `work` and waits until all ranks have done theirs. Where one failed,
/// `cleanUp` runs on each and all throw: that one an AgreedFileError of `what`
/// and its reason ("the model cannot be written: no space left on device"), the
/// others a PeerFileError. Collective.
void agree(Groups &groups, const std::string &what,
           const std::function<void()> &work,
           const std::function<void()> &cleanUp = {});

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_AGREE_H
