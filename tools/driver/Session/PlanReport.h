//===- PlanReport.h - What a plan is reported with --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_PLANREPORT_H
#define ACCEL_TOOLS_DRIVER_SESSION_PLANREPORT_H

#include "passes/Phases/JobPhases.h"
#include "passes/PipelineSchedules/Simulate.h"
#include "runtime/plan/Plan.h"
#include "tools/driver/Advice/Advice.h"

#include <optional>
#include <string>
#include <vector>

namespace accel {

/// The phases of a job and what bounds them.
struct PhaseReport {
  std::vector<JobPhase> phases;
  std::optional<int64_t> deviceBytes; // what a rank may hold on its device
  std::optional<int64_t> nodeBytes;   // memory of a node's host
  PhaseRates rates;
  std::string timeoutArgument = "InitProcessGroupKwargs(timeout=...)";
  bool all = false; // show every phase
};

/// A parameter of which the ranks of one axis of the mesh hold a part each, as
/// tensor parallelism deals it out.
struct SplitParameter {
  std::string fqn;
  std::string axis;
  int64_t dim = 0;    // of the parameter
  int64_t size = 0;   // elements along it, of all ranks
  int64_t pieces = 1; // of layers side by side: of each, a rank has its part
  std::string why;
};

/// What `plan` prints besides the plan itself.
struct PlanReport {
  std::string title;                                // model name
  std::string strategy;                             // "FSDP2", "DDP", ...
  FrameworkKind executor = FrameworkKind::AccelRun; // whose figures these are
  StepPrediction prediction;                        // as configured
  bool hasTime = false;
  plan::DType compute = plan::DType::F32, reduce = plan::DType::F32;
  std::optional<int64_t> budgetBytes; // per rank
  std::optional<int64_t> roomBytes;   // Session::roomBytes
  /// Of a rank's host, where the target or --node-memory says it; of it, what
  /// the process takes, and whether the rest holds what a step keeps there.
  std::optional<int64_t> hostBytes;
  int64_t processBytes = 0;
  std::optional<bool> hostFits;
  std::optional<bool> fits;
  /// How sure `fits` is, 0 to 1 (passes/Cost/ErrorBars.h); asked for more:
  /// what fits with less does not.
  std::optional<double> confidence, askedConfidence;
  /// That hold 90 % of runs, in bytes of the device and seconds of a step.
  std::optional<std::pair<double, double>> likelyBytes, likelySeconds;
  bool measuredAlike = false; // runs of this framework on this target were
  std::optional<double> mfu;  // fraction of the target's peak rate
  /// Of the rank with the smallest shards, where it differs.
  std::optional<StepPrediction> smallestRank;
  PhaseReport phases;
  int64_t ranksPerNode = 0; // 0: not known
  std::vector<SplitParameter> splits;
  int64_t expertRanks = 1; // that share a layer's experts (ranksOfExperts)
  std::optional<pipeline::SimulatedStep> pipeline; // of the step, with stages
  double planningSeconds = 0;
  std::string mlir;             // of the phase that --compile-to stopped at
  std::optional<Advice> advice; // not of a compiled module
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_PLANREPORT_H
