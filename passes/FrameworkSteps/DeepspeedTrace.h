//===- DeepspeedTrace.h - What stage 3 gathers and keeps --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The order in which a micro-batch uses units, forward and then backward, as
// the coordinator of ZeRO's stage 3 traces it (zero/
// partitioned_param_coordinator.py). A unit stays gathered from one use to the
// next where fewer than stage3_max_reuse_distance elements are used between
// them (__params_to_release). Each module that is used starts as many
// parameters of those to come as stage3_prefetch_bucket_size says, while fewer
// than stage3_max_live_parameters are there (_fetch_sub_module_impl).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_DEEPSPEEDTRACE_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_DEEPSPEEDTRACE_H

#include "passes/FrameworkSteps/StepLayout.h"

#include <vector>

namespace accel {

class DeepspeedTrace {
public:
  struct Unit {
    int64_t numel = 0;   // elements that are gathered
    int64_t modules = 0; // with a parameter: each prefetches
  };
  struct Steps {
    int begin = 0, end = 0;
  };

  DeepspeedTrace() = default;
  DeepspeedTrace(const StepLayout &layout, const Candidate &candidate,
                 std::vector<Unit> units);

  /// By block.
  const Steps &forward(int block) const { return forwards[block]; }
  const Steps &backward(int block) const { return backwards[block]; }
  int unit(int step) const { return trace[step]; }
  /// The unit stays gathered after the step until its next one.
  bool stays(int step) const { return staysAfter[step]; }
  /// It has stayed since its last one.
  bool here(int step) const { return hereBefore[step]; }
  /// How many steps behind `step` are gathered or start, of which `ahead` did
  /// before. A forward that is not trained ends the trace and keeps nothing.
  int lookAhead(int step, int ahead, bool trained) const;
  /// The most of them.
  int maxAhead() const { return mostAhead; }
  /// Blocks from the first one of which a unit stays for the backward.
  int keptBlocks() const { return kept; }

private:
  std::vector<Unit> units;
  ZeroBuffers zero;
  std::vector<int> trace;
  std::vector<Steps> forwards, backwards;
  std::vector<bool> staysAfter, hereBefore;
  std::vector<int64_t> staying; // elements of other units, by step
  int forwardEnd = 0, kept = 0, mostAhead = 0;
};

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_DEEPSPEEDTRACE_H
