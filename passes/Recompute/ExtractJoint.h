//===- ExtractJoint.h - A joint function without MLIR -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_EXTRACTJOINT_H
#define ACCEL_PASSES_RECOMPUTE_EXTRACTJOINT_H

#include "dialects/Aten/Aten.h"
#include "passes/Recompute/JointGraph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// A joint function (`@F.joint`, see Joint.h) as a graph, and the way back.
struct ExtractedJoint {
  JointGraph graph;
  std::vector<mlir::Operation *> ops; // by instruction
  std::vector<mlir::Value> values;    // by slot
};

/// Instruction i is the i-th operation of the joint. Fails with a diagnostic
/// where a result has no `aten.binding` or an operation is not of aten.
/// `device` chooses what operators allocate inside.
llvm::FailureOr<ExtractedJoint> extractJoint(mlir::func::FuncOp joint,
                                             aten::Device device);

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_EXTRACTJOINT_H
