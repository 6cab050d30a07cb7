//===- executor_speed.cpp - What evaluator a candidate costs --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// executor-speed: one candidate of a model of 126 equal layers under each
// executor, with repeated layers solved once and one by one. The aim is under
// 200 microseconds: exit 1 where the folded one takes longer.
//
//===----------------------------------------------------------------------===//
#include "test/unit/StepModels.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace accel;

namespace {

Target loadDevice() {
  DiagnosticEngine engine;
  auto target = loadTarget("h100-sxm-80gb", engine);
  if (!target)
    std::abort();
  return *target;
}

/// The median of many evaluations, in microseconds.
double judge(FrameworkKind executor, bool expanded) {
  const StepModel model =
      stepmodels::uniformModel(126, {16384, 16384}, 1 << 30);
  const Target target = loadDevice();
  Candidate candidate = stepmodels::uniformCandidate(model, executor);
  if (executor == FrameworkKind::Ddp)
    candidate.mesh.resize("dp_replicate", 64);
  else if (executor != FrameworkKind::Single)
    candidate.mesh.resize("dp_shard", 64);
  StepEvaluator evaluator(model, target);
  EvaluateOptions options;
  options.expanded = expanded;
  std::vector<double> times;
  for (int i = 0; i < 501; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (evaluator.evaluate(candidate, options).peakBytes <= 0)
      std::abort();
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - begin;
    times.push_back(took.count());
  }
  std::nth_element(times.begin(), times.begin() + 250, times.end());
  return times[250];
}

} // namespace

int main() {
  bool fast = true;
  std::printf("%-10s %12s %16s\n", "executor", "folded, us", "each layer, us");
  for (FrameworkKind kind :
       {FrameworkKind::AccelRun, FrameworkKind::Fsdp2, FrameworkKind::Fsdp1,
        FrameworkKind::Ddp, FrameworkKind::Deepspeed, FrameworkKind::Single}) {
    const double folded = judge(kind, false);
    std::printf("%-10s %12.1f %16.1f\n", toString(kind), folded,
                judge(kind, true));
    fast &= folded < 200;
  }
  return fast ? 0 : 1;
}
