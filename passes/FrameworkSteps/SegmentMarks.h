//===- SegmentMarks.h - What a segment's instructions belong to -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_SEGMENTMARKS_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_SEGMENTMARKS_H

#include "passes/StepModel/SegmentGraph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// The forward's instructions, views, autograd's nodes and what selective
/// checkpointing keeps. One instruction stands for each operation of
/// `function`: no gradient has a destination. Without `forward` all are of it.
void markInstructions(mlir::func::FuncOp function,
                      const llvm::DenseSet<mlir::Operation *> &forward,
                      SegmentGraph &graph);

/// Which child of the module at `path` each operation belongs to; false where
/// none does.
bool markChildren(mlir::func::FuncOp joint, llvm::StringRef path,
                  SegmentGraph &graph);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_SEGMENTMARKS_H
