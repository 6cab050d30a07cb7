//===- JointGraph.h - A segment's forward and backward ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The joint graph of a distinct segment without MLIR: what activation
// checkpointing decides on. `splitGraph` says what the forward and the backward
// function are for a set of kept operations, and the partition pass applies
// exactly that; so what `measureSplit` counts is what runs.
//
// A saved set is the problem's unknown: which forward operations keep their
// results. Whatever else the backward reads of the forward it computes again,
// from kept values, the segment's inputs and the parameters. Views are never
// saved; who needs one keeps its base.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_JOINTGRAPH_H
#define ACCEL_PASSES_RECOMPUTE_JOINTGRAPH_H

#include "passes/StepModel/StepModel.h"
#include "passes/Targets/Target.h"
#include "runtime/plan/Exchanges.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Plan.h"

#include <optional>
#include <string>
#include <vector>

namespace accel {

/// What kind of work an operation is (the aten dialect's categories).
enum class JointCategory {
  View,
  Pointwise,
  Reduction,
  Matmul,
  Attention,
  Memory,
  Opaque
};
/// "view", "pointwise", ...
const char *toString(JointCategory category);

/// What checkpointing must know about an operation.
struct JointMark {
  JointCategory category = JointCategory::Pointwise;
  bool forward = true;
  /// The backward may repeat it: the same inputs give the same bits.
  bool mayRecompute = true;
  /// A norm: a reduction that is cheap to repeat, its result as large as its
  /// input.
  bool isNorm = false;
  /// The runtime can write the result straight into a given place.
  bool intoPlace = false;
  /// It writes its result over its first argument.
  bool overwrites = false;
  /// What ranks exchange by it, where it is no operator.
  std::optional<plan::Exchange> exchange;
  bool isView() const { return category == JointCategory::View; }
  /// Its result lies in the storage of its first argument.
  bool sharesStorage() const { return isView() || overwrites; }
};

/// A gradient that the backward returns.
struct JointGradient {
  int slot = -1;
  /// Of a parameter, which the executor holds a place for: its bytes are not
  /// the segment's.
  bool ofParameter = false;
};

struct JointGraph {
  /// Operations in the order of the joint function (the backward after the
  /// forward), values as slots, views with their base. Instructions have
  /// tensor arguments alone and no frees: they are for costs and lifetimes,
  /// not to be run. `inputs` are the segment's, `outputs` its results.
  plan::Function function;
  std::vector<JointMark> marks; // by Function::instructions
  std::vector<int> tangents;    // slots: gradients of the outputs
  std::vector<JointGradient> gradients;
  plan::Mesh mesh; // of what ranks exchange inside of it
};

/// By instruction: a forward operation whose results are kept. Ignored for
/// views and the backward.
using SavedSet = std::vector<bool>;

/// The forward and the backward function that a saved set makes.
struct JointSplit {
  std::vector<int> forward;  // instructions, in order
  std::vector<int> backward; // instructions in order, repeated ones too
  /// Slots of kept values that the backward reads, and of the segment's inputs
  /// and parameters that it reads, in the order of their first need.
  std::vector<int> crossing, arguments;
};

/// Splits by `saved`: a value that is not kept is recomputed right before
/// its first use (the order of need); then the backward is put in the better of
/// that order and a greedy one that runs whatever leaves least live, with
/// neighbours swapped that then reuse storage (OverwriteOrder.h). `reorder`
/// false leaves out both. Linear but for the order, which is quadratic.
JointSplit splitGraph(const JointGraph &graph, const SavedSet &saved,
                      bool reorder = true);

/// Bytes of a split: own storages, each aligned as the runtime allocates it.
struct SplitBytes {
  int64_t saved = 0;      // kept storages that the backward reads
  int64_t savedInput = 0; // storages of the segment's inputs that it reads
  /// The forward's peak: outputs and kept values included, inputs not.
  int64_t forwardPeak = 0;
  /// The backward's peak of what it makes itself: temporaries, repeated
  /// values, gradients of inputs.
  int64_t backwardPeak = 0;
  /// The backward's peak with kept values and tangents, each until its last
  /// use: what a caller that gives them up holds.
  int64_t backwardHeldPeak = 0;
  /// The same three with what operators allocate inside.
  int64_t forwardPeakTotal = 0, backwardPeakTotal = 0, backwardHeldTotal = 0;
};
SplitBytes measureSplit(const JointGraph &graph, const JointSplit &split);

/// Seconds of each instruction on `target`.
std::vector<double> instructionTimes(const JointGraph &graph,
                                     const Target &target);

/// The saved sets of the three modes: all that the backward reads; all but
/// what is pointwise, moves data or is a norm; nothing.
SavedSet savedByMode(const JointGraph &graph, const std::string &mode);

/// Bytes and seconds of a saved set, as the joint search reads them.
SegmentVariant measureVariant(const JointGraph &graph, const SavedSet &saved,
                              const Target &target);

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_JOINTGRAPH_H
