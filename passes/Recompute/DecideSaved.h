//===- DecideSaved.h - Which forward values are kept ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_DECIDESAVED_H
#define ACCEL_PASSES_RECOMPUTE_DECIDESAVED_H

#include "dialects/Aten/Aten.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Targets/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace accel {

using CheckpointMode = sharding::CheckpointMode;

/// The operations of a joint function that compute its original results; the
/// others are its backward.
llvm::DenseSet<mlir::Operation *> forwardOps(mlir::func::FuncOp joint);

/// What checkpointing must know of the job.
struct CheckpointSetting {
  aten::Device device = aten::Device::Cpu;
  std::optional<Target> named; // by the request "checkpoint"

  /// For the seconds of what is recomputed, which only a budget asks for: what
  /// is named, else h100-sxm-80gb or cpu.
  Target target() const;
};

/// The job's device (of the sharding.job) and the target that the request
/// "checkpoint" names. Fails with a diagnostic.
llvm::FailureOr<CheckpointSetting> checkpointSetting(mlir::ModuleOp module);

/// Puts `#aten.save` on each forward operation of `joint`. None keeps all but
/// views; Pointwise keeps products, attention, reductions and statistics made
/// of them, and recomputes what is pointwise, moves data or is a norm; Full
/// keeps nothing, so that the backward starts from the inputs; Budget keeps
/// what solveExact finds for its bytes; Set what it lists. The reason of `how`
/// is copied. Fails with a diagnostic, where nothing fits in a budget too.
mlir::LogicalResult decideSaved(mlir::func::FuncOp joint,
                                sharding::CheckpointAttr how,
                                const CheckpointSetting &setting);

/// The same for None, Pointwise and Full, which need no target.
mlir::LogicalResult decideSaved(mlir::func::FuncOp joint, CheckpointMode mode,
                                llvm::StringRef reason);

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_DECIDESAVED_H
