//===- VerifyParts.h - The parts of verify ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_VERIFYPARTS_H
#define ACCEL_RUNTIME_PLAN_VERIFYPARTS_H

#include "runtime/plan/Plan.h"

#include <algorithm>
#include <array>

namespace accel::plan {

/// Collects problems, each once, and stops listing when there are very many.
class Problems {
public:
  void add(const std::string &place, const std::string &what) {
    std::string sentence = place + ": " + what;
    if (list.size() < 100 &&
        std::find(list.begin(), list.end(), sentence) == list.end())
      list.push_back(std::move(sentence));
  }
  bool empty() const { return list.empty(); }
  std::vector<std::string> list;
};

inline std::string quoted(const std::string &name) { return "'" + name + "'"; }

/// Every index in range, sizes bounded, names unique. All else relies on it.
void verifyIndices(const Plan &plan, Problems &problems);
/// Mesh, parameters and the flat layout of units.
void verifyUnits(const Plan &plan, Problems &problems);
/// What the plan leaves on the host.
void verifyOffload(const Plan &plan, Problems &problems);
/// Slots made once, before use, and freed once.
void verifyFunctions(const Plan &plan, Problems &problems);
/// Programs in the order of the step, then eval: buffers, collectives, values.
void verifyPrograms(const Plan &plan, Problems &problems);
/// Whether the stages of a pipeline can be run: each micro-batch forward and
/// then backward, within its frames, and no stage waits for ever. At most one
/// problem: what a wrong order leads to is not listed.
void verifyStages(const Plan &plan, Problems &problems);

/// One buffer of a unit.
struct BufferState {
  bool live = false;
  bool inFlight = false;
  /// The stream that awaited it last; work on Compute is seen by all.
  Stream seenBy = Stream::Compute;
  bool operator==(const BufferState &) const = default;
};

struct UnitState {
  std::array<BufferState, 4> buffers; // by role
  bool gathered = false;              // Gathered holds the parameters ...
  bool stale = false;                 // ... of before an update
  bool reduced = false;    // ShardGradient holds reduced gradients ...
  bool allReduced = false; // ... over the replicas too
  bool offloaded = false;  // and are on the host, of this optimizer step
  bool updated = false;    // in this optimizer step
  bool operator==(const UnitState &) const = default;
  BufferState &operator[](Role role) { return buffers[int(role)]; }
};

/// What a rank holds between two programs.
struct RankState {
  std::vector<UnitState> units;
  std::vector<bool> written; // gradients, by parameter
  bool normKnown = false;
  bool operator==(const RankState &) const = default;
};

/// Runs one program symbolically and leaves in `state` what it leaves behind.
void verifyProgram(const Plan &plan, const Program &program, RankState &state,
                   Problems &problems);
/// The same of the parts of a stage's step in their order.
void verifyFrames(const Plan &plan, int stage, RankState &state,
                  Problems &problems);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_VERIFYPARTS_H
