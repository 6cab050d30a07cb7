//===- LossScaler.cpp - Dynamic loss scaling for fp16 ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/optimizer/LossScaler.h"

namespace accel::run {

void LossScaler::update(bool skipped) {
  if (!on)
    return;
  if (skipped) {
    state.scale *= given.backoffFactor;
    state.goodSteps = 0;
  } else if (++state.goodSteps == given.growthInterval) {
    state.scale *= given.growthFactor;
    state.goodSteps = 0;
  }
}

} // namespace accel::run
