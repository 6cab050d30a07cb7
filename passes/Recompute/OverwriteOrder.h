//===- OverwriteOrder.h - Orders in which results reuse storage -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_OVERWRITEORDER_H
#define ACCEL_PASSES_RECOMPUTE_OVERWRITEORDER_H

#include "passes/Recompute/JointGraph.h"

namespace accel {

/// `order`, with neighbours swapped where the first can only then write over
/// one of its operands (runtime/plan/Overwriting.h), the second still can, and
/// no more is live around them. Of the two products with one factor that a
/// gated MLP's backward takes, the one whose other factor is the backward's own
/// goes first: it is written over that factor, and the other over the shared
/// one.
std::vector<int> orderForOverwriting(const JointGraph &graph,
                                     std::vector<int> order);

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_OVERWRITEORDER_H
