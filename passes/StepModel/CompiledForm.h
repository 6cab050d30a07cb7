//===- CompiledForm.h - A segment as Inductor's partitioner sees it *- C++
//-*-=//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// torch.compile decomposes operators before it decides what the forward saves:
// a softmax is then seven operators, and the cheapest value to keep may lie
// between two of them. This writes the joint function of a segment so
// (torch/_inductor/decomposition.py), with common subexpressions merged and
// without what nothing reads.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_COMPILEDFORM_H
#define ACCEL_PASSES_STEPMODEL_COMPILEDFORM_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// The decomposed joint of `graph`; `node`, `child` and `pointwiseKeeps` are
/// empty, since autograd's engine runs one node of it.
SegmentGraph compiledForm(const SegmentGraph &graph);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_COMPILEDFORM_H
