//===- Liveness.h - What a function holds when ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_LIVENESS_H
#define ACCEL_RUNTIME_PLAN_LIVENESS_H

#include "runtime/plan/Timeline.h"

namespace accel::plan {

/// The slot whose storage `slot` shares.
inline int baseOf(const Function &function, int slot) {
  int base = function.slots[slot].base;
  return base < 0 ? slot : base;
}

/// What each instruction of a function makes and drops, whoever calls it.
class Liveness {
public:
  explicit Liveness(const Function &function);

  std::vector<int64_t> made, dropped; // per instruction
  int64_t leaked = 0;                 // made, never freed and not an output
  /// Instruction after which input i's storage has no slot left; the number of
  /// instructions if that is at the return.
  std::vector<int> inputDeath;
};

/// `profileFunction` where the liveness is known.
FunctionProfile profile(const Function &function, const Liveness &liveness,
                        const std::vector<int64_t> &consumedBytes);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_LIVENESS_H
