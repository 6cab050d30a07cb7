//===- SavedSteps.h - Steps that a schedule has counted ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_SAVEDSTEPS_H
#define ACCEL_FRONTENDS_CHECKPOINT_SAVEDSTEPS_H

#include "frontends/Checkpoint/Checkpoint.h"

namespace accel::checkpoint {

/// global_step of transformers' Trainer, which counts steps that a loss scale
/// skips.
std::optional<int64_t> trainerSteps(const Checkpoint &read);

struct SavedSteps {
  int64_t steps = 0;
  std::string from; // "scheduler.bin, 8 steps on 2 processes"
};

/// Steps of an optimizer that keeps no count itself, as SGD: those of the
/// schedule saved beside it, else the Trainer's. Nothing where neither is there
/// or its number cannot be a count of steps.
std::optional<SavedSteps> stepsBeside(const Checkpoint &read);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_SAVEDSTEPS_H
