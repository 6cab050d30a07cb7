//===- AccelRunVariants.h - Variants as accel-run executes them -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_ACCELRUNVARIANTS_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_ACCELRUNVARIANTS_H

#include "dialects/Aten/AtenBase.h"
#include "passes/Export/ExportFunction.h"
#include "passes/Recompute/SavedSetCache.h"
#include "passes/StepModel/StepModel.h"
#include "passes/Targets/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// Variants of joint functions that several modules have: a change of the
/// loss's chunks leaves the layers as they are.
class AccelRunVariantCache {
public:
  /// What variants depend on beside the function and the target.
  struct Setting {
    aten::Device device = aten::Device::Cpu;
    bool loss = false;
    llvm::SmallVector<GradientMode> gradients;
    std::vector<int> inputGradients, sharedInputs;
    bool operator==(const Setting &) const = default;
  };

  /// Null where they were not measured.
  const std::vector<SegmentVariant> *find(mlir::func::FuncOp joint,
                                          const Setting &setting) const;
  void add(mlir::func::FuncOp joint, Setting setting,
           const std::vector<SegmentVariant> &variants);

private:
  struct Entry {
    mlir::OwningOpRef<mlir::func::FuncOp> joint;
    Setting setting;
    std::vector<SegmentVariant> variants;
  };
  std::vector<Entry> entries;
};

/// Splits copies of `joint` for each checkpoint mode, and for each of the
/// `solved` ways, as `partition` does and measures the exported functions by
/// plan::profileFunction: exactly what accel-run holds. `gradients`: how each
/// parameter gradient is left.
/// What modules have in common is measured once for all with the same `cache`
/// and `target`; solved ways are made for each model by itself.
mlir::LogicalResult addAccelRunVariants(
    mlir::func::FuncOp joint, aten::Device device, const Target *target,
    llvm::ArrayRef<GradientMode> gradients, llvm::ArrayRef<SavedSetPlan> solved,
    SegmentKind &kind, AccelRunVariantCache *cache = nullptr);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_ACCELRUNVARIANTS_H
