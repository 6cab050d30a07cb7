//===- BuildProgram.h - From segment calls to a program ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The core of `lower-to-schedule`, on plain structs: segment calls and units
// become programs with buffers, collectives, calls, frees and updates. Here
// every collective is awaited where it starts; `prefetch` and `overlap` move
// starts up and awaits down.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_BUILDPROGRAM_H
#define ACCEL_PASSES_SCHEDULE_BUILDPROGRAM_H

#include "runtime/plan/Plan.h"

#include <functional>
#include <string>
#include <vector>

namespace accel::schedule {

/// A tensor that flows between segments.
struct GraphValue {
  std::string name;
  plan::DType dtype = plan::DType::F32;
  std::vector<int64_t> shape;
};

/// What an operand of a backward function is bound to.
struct BackwardOperand {
  enum class Kind {
    Input,
    Output,
    Saved,
    Tangent,
    Carry // the input's gradient so far
  } kind = Kind::Saved;
  int index = 0; // of the segment's inputs, outputs or saved values
};

/// One call of a segment in the graph, bound to parameters.
struct SegmentCall {
  std::string path;
  std::string evalFunction; // forward alone, nothing saved
  /// Outputs, then saved values; empty where the backward function returns the
  /// outputs too, before the gradients: then the segment is called once, there.
  std::string forwardFunction;
  std::string backwardFunction;     // empty: nothing to differentiate
  std::vector<int> inputs, outputs; // Graph::values
  int numSaved = 0;
  std::vector<plan::ParamRef> evalParams, forwardParams, backwardParams;
  std::vector<BackwardOperand> backwardOperands; // without parameters
  std::vector<int>
      inputGradients; // inputs whose gradients it returns, in order
  std::vector<plan::ParamRef> gradients; // parameters that get a gradient
};

struct Graph {
  std::vector<GraphValue> values;
  std::vector<int> inputs; // values: input_ids, labels, ...
  int loss = -1;
  std::vector<SegmentCall> calls;
};

struct UnitPolicy {
  bool reshardAfterForward = true;
};

struct BuildOptions {
  std::vector<UnitPolicy> units; // one per plan unit
  int64_t accumulation = 1;
  bool keepUnsharded = false; // gradients stay unsharded between micro-batches
  bool updateInline = false;  // update a unit as soon as it is reduced
  bool clip = false;          // a GradNorm step before the updates
  std::string reduceScatter = "direct"; // algorithm
};

/// How a call leaves one gradient: the destination's dtype, and whether it is
/// added to.
struct GradientSpec {
  bool accumulate = false;
  plan::DType dtype = plan::DType::F32;
};

/// Index in Plan::functions of a function with these gradients; it is exported
/// when it is first asked for. -1 where that fails.
using FunctionProvider = std::function<int(
    const std::string &name, const std::vector<GradientSpec> &gradients)>;

/// Appends the programs of an optimizer step and, with `eval`, the forward-only
/// one; fills Plan::step and Plan::eval. Returns an error sentence, or "".
std::string buildPrograms(plan::Plan &plan, const Graph &graph,
                          const BuildOptions &options,
                          const FunctionProvider &function);

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_BUILDPROGRAM_H
