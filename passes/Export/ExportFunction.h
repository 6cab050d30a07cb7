//===- ExportFunction.h - A function of the plan ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXPORT_EXPORTFUNCTION_H
#define ACCEL_PASSES_EXPORT_EXPORTFUNCTION_H

#include "dialects/Aten/AtenBase.h"
#include "runtime/plan/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// How a function leaves the gradient of one parameter.
struct GradientMode {
  bool accumulate = false; // add to the destination instead of writing it
  plan::DType dtype = plan::DType::F32; // of the destination
  bool operator==(const GradientMode &) const = default;
};

/// Which results are written over an operand that is not read after them.
enum class Reuse {
  Sums,   // of matmuls alone: other frameworks make a tensor of each result
  AnyDead // all that may: accel-run's own plans (StorageReuse.h)
};

/// The operator list of `function`. Results that are bound to parameter
/// gradients become destination slots that the operators write themselves
/// where ATen can (`gradients`, one mode each, in order of the results); the
/// other results are outputs. Frees stand at last uses, those of inputs too.
/// Emits an error and fails where a view is not legal, an output other than a
/// saved value is not contiguous, or an operation has no ATen operator.
/// `makers`, if not null, becomes the operation that each instruction is of.
mlir::FailureOr<plan::Function>
exportFunction(mlir::func::FuncOp function,
               llvm::ArrayRef<GradientMode> gradients, aten::Device device,
               Reuse reuse,
               llvm::SmallVectorImpl<mlir::Operation *> *makers = nullptr);

/// Of an own plan, with the mode of each gradient from its
/// `schedule.destination`.
/// Fails where one has none.
mlir::FailureOr<plan::Function> exportFunction(mlir::func::FuncOp function,
                                               aten::Device device);

} // namespace accel

#endif // ACCEL_PASSES_EXPORT_EXPORTFUNCTION_H
