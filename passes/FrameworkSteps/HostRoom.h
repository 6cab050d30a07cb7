//===- HostRoom.h - What ranks may keep on their host -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_HOSTROOM_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_HOSTROOM_H

#include "passes/Frameworks/Framework.h"
#include "passes/Targets/Target.h"

namespace accel {

/// Of a rank's process on the host: a Python process that imported torch,
/// transformers and accelerate (measured on Linux, torch 2.15: 0.74 GiB
/// resident), which accel-run is not, and what a CUDA context pins.
inline int64_t processHostBytes(FrameworkKind executor, bool onCuda) {
  constexpr int64_t python = int64_t(775) << 20, context = int64_t(1) << 30;
  return (executor == FrameworkKind::AccelRun ? 0 : python) +
         (onCuda ? context : 0);
}

/// The host of a rank has room for its process and the `bytes` that a step
/// keeps there; where nothing says what the host has, it has.
inline bool hostHolds(const Target &target, FrameworkKind executor,
                      int64_t bytes) {
  return target.host.memoryBytes <= 0 ||
         bytes + processHostBytes(executor, target.kind == TargetKind::Cuda) <=
             target.host.memoryBytes;
}

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_HOSTROOM_H
