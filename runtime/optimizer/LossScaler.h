//===- LossScaler.h - Dynamic loss scaling for fp16 -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_OPTIMIZER_LOSSSCALER_H
#define ACCEL_RUNTIME_OPTIMIZER_LOSSSCALER_H

#include <cstdint>

namespace accel::run {

/// torch.amp.GradScaler with its defaults: from 65536, halved at a step with
/// infinities (which is skipped), doubled after 2000 good ones in a row. Its
/// scale is 1 where loss scaling is off.
class LossScaler {
public:
  static constexpr double growth = 2.0, backoff = 0.5;
  static constexpr int64_t interval = 2000; // good steps before it grows
  struct State {
    double scale = 65536;
    int64_t goodSteps = 0;
  };
  explicit LossScaler(bool on) : on(on) {}
  bool enabled() const { return on; }
  double scale() const { return on ? state.scale : 1.0; }
  void update(bool skipped);
  const State &get() const { return state; }
  void set(const State &saved) { state = saved; }

private:
  bool on;
  State state;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_OPTIMIZER_LOSSSCALER_H
