//===- Graph.h - Calls of segments ------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_GRAPH_H
#define ACCEL_PASSES_SCHEDULE_GRAPH_H

#include "runtime/plan/Plan.h"

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
  int index = 0; // of the segment's inputs, outputs or saved values, of which
                 // those of the backward function are the last
};

/// One call of a segment in the graph, bound to parameters.
struct SegmentCall {
  std::string path;
  int stage = 0; // of a pipeline: that runs it; its chunk's number in the model
  std::string evalFunction; // forward alone, nothing saved
  /// Outputs, then saved values; empty where the backward function returns the
  /// outputs too, before the gradients: then the segment is called once, there.
  std::string forwardFunction;
  std::string backwardFunction; // empty: nothing to differentiate
  /// Where the backward is split: the gradients of parameters, from what the
  /// backward function saves for it behind its other results.
  std::string weightsFunction;
  int numDeferred = 0; // those saved values
  std::vector<BackwardOperand> weightsOperands;
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

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_GRAPH_H
