//===- LossScaler.h - Dynamic loss scaling for fp16 -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_OPTIMIZER_LOSSSCALER_H
#define ACCEL_RUNTIME_OPTIMIZER_LOSSSCALER_H

#include "runtime/plan/Plan.h"

#include <cstdint>

namespace accel::run {

/// torch.amp.GradScaler: it backs off at a step with infinities (which is
/// skipped), and grows after so many good ones in a row. Its scale is 1 where
/// loss scaling is off.
class LossScaler {
public:
  struct State {
    double scale = plan::GradScaler().initScale;
    int64_t goodSteps = 0;
  };
  /// `summed`: of how many ranks gradients are added before any division. Each
  /// rank's own are at GradScaler's scale, their sum at so many times it.
  explicit LossScaler(bool on, const plan::GradScaler &rules = {},
                      double summed = 1)
      : on(on), given(rules), summed(summed) {
    state.scale = rules.initScale;
  }
  const plan::GradScaler &rules() const { return given; }
  bool enabled() const { return on; }
  /// Of the gradients, once they are reduced.
  double scale() const { return on ? state.scale * summed : 1.0; }
  void update(bool skipped);
  const State &get() const { return state; }
  void set(const State &saved) { state = saved; }

private:
  bool on;
  plan::GradScaler given;
  double summed;
  State state; // as GradScaler has it
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_OPTIMIZER_LOSSSCALER_H
