//===- Liveness.cpp - What a function holds when --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Liveness.h"

#include <algorithm>

namespace accel::plan {

Liveness::Liveness(const Function &function) {
  const int numInstructions = function.instructions.size();
  made.resize(numInstructions);
  dropped.resize(numInstructions);
  inputDeath.assign(function.inputs.size(), numInstructions);
  std::vector<int> handles(function.slots.size());
  std::vector<bool> owned(function.slots.size()), alive(function.slots.size());
  std::vector<int> inputOf(function.slots.size(), -1);
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    inputOf[function.inputs[i]] = i;
    handles[baseOf(function, function.inputs[i])]++;
    alive[function.inputs[i]] = true;
  }
  for (int i = 0; i < numInstructions; ++i) {
    const Instruction &instruction = function.instructions[i];
    for (int slot : instruction.results) {
      if (slot < 0)
        continue;
      int base = baseOf(function, slot);
      handles[base]++;
      alive[slot] = true;
      if (base == slot) {
        owned[base] = true;
        made[i] += function.slotBytes(slot);
      }
    }
    for (int slot : instruction.frees) {
      if (!alive[slot])
        continue;
      alive[slot] = false;
      int base = baseOf(function, slot);
      if (--handles[base] > 0)
        continue;
      if (owned[base]) {
        owned[base] = false;
        dropped[i] += function.slotBytes(base);
      } else if (inputOf[base] >= 0) {
        inputDeath[inputOf[base]] = i;
      }
    }
  }
  for (int slot : function.outputs)
    owned[baseOf(function, slot)] = false;
  for (size_t base = 0; base < owned.size(); ++base)
    if (owned[base])
      leaked += function.slotBytes(base);
}

FunctionProfile profile(const Function &function, const Liveness &liveness,
                        const std::vector<int64_t> &consumedBytes) {
  const size_t numInstructions = function.instructions.size();
  std::vector<std::pair<int, int64_t>> consumed; // by death
  int64_t atReturn = 0;
  for (size_t i = 0; i < consumedBytes.size(); ++i) {
    if (consumedBytes[i] == 0)
      continue;
    if (static_cast<size_t>(liveness.inputDeath[i]) < numInstructions)
      consumed.emplace_back(liveness.inputDeath[i], consumedBytes[i]);
    else
      atReturn += consumedBytes[i];
  }
  std::sort(consumed.begin(), consumed.end());

  FunctionProfile result;
  int64_t live = 0;
  size_t next = 0;
  for (size_t i = 0; i < numInstructions; ++i) {
    live += liveness.made[i];
    result.peakBytes = std::max(result.peakBytes, live);
    int64_t total = live + function.instructions[i].workspaceBytes;
    if (total > result.peakTotalBytes) {
      result.peakTotalBytes = total;
      result.peakInstruction = i;
    }
    live -= liveness.dropped[i];
    for (; next < consumed.size() &&
           static_cast<size_t>(consumed[next].first) == i;
         ++next)
      live -= consumed[next].second;
  }
  result.endBytes = live - liveness.leaked - atReturn;
  return result;
}

FunctionProfile profileFunction(const Function &function,
                                const std::vector<int64_t> &consumedBytes) {
  return profile(function, Liveness(function), consumedBytes);
}

std::vector<int> inputDeaths(const Function &function) {
  return Liveness(function).inputDeath;
}

} // namespace accel::plan
