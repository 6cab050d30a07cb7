//===- IssueStep.cpp - The order of accel-run's step ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/IssueStep.h"

#include <numeric>

namespace accel::schedule {

void StepUses::finish() {
  gathers.clear();
  afterFirstBackward = 0;
  for (int c = 0; c < numCalls(); ++c)
    for (int u : forward(c)) {
      Unit &unit = units[u];
      unit.lastForward = c;
      if (unit.firstForward >= 0)
        continue;
      unit.firstForward = c;
      if (!unit.comesAndGoes())
        continue;
      unit.forwardGather = static_cast<int>(gathers.size());
      gathers.push_back({u, c, false, false});
    }
  for (int c = numCalls(); c-- > 0;) {
    for (int u : backward(c)) {
      Unit &unit = units[u];
      unit.lastBackward = c;
      if (unit.firstBackward >= 0)
        continue;
      unit.firstBackward = c;
      if (!unit.comesAndGoes() ||
          (unit.firstForward >= 0 && !unit.reshardAfterForward))
        continue;
      unit.backwardGather = static_cast<int>(gathers.size());
      gathers.push_back({u, c, true, hasForward(c)});
    }
    if (c >= firstBackwardCall())
      afterFirstBackward = static_cast<int>(gathers.size());
    for (int u : gradients(c)) {
      if (units[u].firstGradient < 0)
        units[u].firstGradient = c;
      units[u].lastGradient = c;
    }
  }
  asRead.resize(units.size());
  std::iota(asRead.begin(), asRead.end(), 0);
  lastToFirst.assign(asRead.rbegin(), asRead.rend());
  auto firstRead = [&](int u) {
    return units[u].firstForward < 0 ? numCalls() : units[u].firstForward;
  };
  std::stable_sort(asRead.begin(), asRead.end(),
                   [&](int a, int b) { return firstRead(a) < firstRead(b); });
}

} // namespace accel::schedule
