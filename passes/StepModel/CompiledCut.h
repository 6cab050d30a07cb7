//===- CompiledCut.h - What torch.compile's partitioner saves ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The rules of torch's min-cut partitioner (torch/_functorch/partitioners.py,
// solve_min_cut with the defaults of torch/_functorch/config.py) over a
// decomposed joint function. What the forward hands to the backward is a
// minimum cut: a value costs its bytes, times 1.1 for each operator between it
// and the backward, times 2 where it would stay inside of a fused kernel;
// what may not be repeated lies on the side of the forward. The problem, the
// solver and the verifier are apart.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_COMPILEDCUT_H
#define ACCEL_PASSES_STEPMODEL_COMPILEDCUT_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// What the partitioner makes of an operator, by its name.
enum class CompiledOp {
  View,       // as much recomputable as the next, and never banned
  Repeatable, // fused, and repeated by the backward
  Random,     // fused, never repeated
  Gather,     // a concatenation: others are fused into it, it into none
  Whole       // a kernel of its own, never repeated
};
CompiledOp compiledOp(const std::string &op, bool view);

/// The problem: values, as vertices split in two, and edges between them.
struct CutProblem {
  struct Value {
    int slot = -1;            // the value; -1 for an operator of many results
    int instruction = -1;     // that makes it; -1 for inputs and parameters
    int64_t weight = 0;       // to save it; negative: it cannot be saved
    bool banned = false;      // it cannot be repeated
    bool backward = false;    // only the backward can make it
    bool demanded = false;    // the backward returns it as it is
    std::vector<int> readers; // values
  };
  std::vector<Value> values;
};
CutProblem cutProblem(const SegmentGraph &compiled);

/// By value: it is saved.
using Cut = std::vector<bool>;
Cut solveCut(const CutProblem &problem);
/// What is wrong with a cut, or "": a banned value that the backward would
/// repeat, one that is saved and cannot be, one that is saved for nobody.
std::string verifyCut(const CutProblem &problem, const Cut &cut);
int64_t cutWeight(const CutProblem &problem, const Cut &cut);

/// The slots that the forward of a compiled segment hands to its backward,
/// inputs and parameters among them.
std::vector<int> compiledSaves(const SegmentGraph &compiled);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_COMPILEDCUT_H
