//===- HoistGathers.cpp - Starting all-gathers earlier ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Prefetch/Overlap.h"

#include <algorithm>

namespace accel::schedule {
namespace {

using plan::Role;
using plan::Step;
using plan::StepKind;

bool isGathered(const Step &step, StepKind kind) {
  return step.kind == kind && step.role == Role::Gathered;
}

/// Position of the first call that writes gradients: where the backward
/// begins.
size_t backwardBegin(const plan::Program &program) {
  for (size_t s = 0; s < program.steps.size(); ++s)
    if (!program.steps[s].gradients.empty())
      return s;
  return program.steps.size();
}

/// Removes Free ... Alloc, AllGather, Await of one unit where no call stands
/// between the Free and the Alloc.
void keepGathered(plan::Program &program) {
  std::vector<Step> &steps = program.steps;
  std::vector<bool> dead(steps.size(), false);
  for (size_t f = 0; f < steps.size(); ++f) {
    if (!isGathered(steps[f], StepKind::Free) || steps[f].unit < 0)
      continue;
    int unit = steps[f].unit;
    for (size_t s = f + 1; s < steps.size(); ++s) {
      if (steps[s].kind == StepKind::Call)
        break;
      if (!isGathered(steps[s], StepKind::Alloc) || steps[s].unit != unit)
        continue;
      int timepoint = -1;
      for (size_t t = s; t < steps.size(); ++t) {
        if (steps[t].kind == StepKind::AllGather && steps[t].unit == unit &&
            timepoint < 0) {
          timepoint = steps[t].timepoint;
          dead[t] = true;
        } else if (steps[t].kind == StepKind::Await &&
                   steps[t].timepoint == timepoint && timepoint >= 0) {
          dead[t] = true;
          break;
        }
      }
      dead[f] = dead[s] = true;
      break;
    }
  }
  std::vector<Step> kept;
  for (size_t s = 0; s < steps.size(); ++s)
    if (!dead[s])
      kept.push_back(std::move(steps[s]));
  steps = std::move(kept);
}

} // namespace

void hoistGathers(plan::Program &program, int64_t forward, int64_t backward) {
  std::vector<Step> &steps = program.steps;
  size_t boundary = backwardBegin(program);
  // Await positions of the gathers so far, in order; targets are counted in
  // the original program and applied in one merge.
  std::vector<size_t> awaits;
  std::vector<std::vector<size_t>> insertAfter(steps.size());
  std::vector<bool> moved(steps.size(), false);
  size_t lastTarget = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (steps[s].kind != StepKind::AllGather)
      continue;
    size_t alloc = s;
    while (alloc > 0 && !(isGathered(steps[alloc], StepKind::Alloc) &&
                          steps[alloc].unit == steps[s].unit))
      --alloc;
    size_t await = s;
    while (await + 1 < steps.size() &&
           !(steps[await].kind == StepKind::Await &&
             steps[await].timepoint == steps[s].timepoint))
      ++await;
    int64_t depth = s < boundary ? forward : backward;
    if (depth > 0 && !awaits.empty()) {
      size_t n = awaits.size();
      size_t target = awaits[n - std::min<size_t>(n, depth)];
      // Not before the unit's own last free or update, and in stream order.
      for (size_t t = alloc; t-- > target + 1;)
        if (steps[t].unit == steps[s].unit &&
            (isGathered(steps[t], StepKind::Free) ||
             steps[t].kind == StepKind::Optimizer)) {
          target = t;
          break;
        }
      target = std::max(target, lastTarget);
      if (target < alloc) {
        moved[alloc] = moved[s] = true;
        insertAfter[target].push_back(alloc);
        insertAfter[target].push_back(s);
        lastTarget = target;
      } else {
        lastTarget = s;
      }
    } else {
      lastTarget = s;
    }
    awaits.push_back(await);
  }
  std::vector<Step> result;
  result.reserve(steps.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    if (!moved[s])
      result.push_back(steps[s]);
    for (size_t t : insertAfter[s])
      result.push_back(steps[t]);
  }
  steps = std::move(result);
  if (backward > 0)
    keepGathered(program);
}

} // namespace accel::schedule
