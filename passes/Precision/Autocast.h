//===- Autocast.h - Functions under torch.autocast --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PRECISION_AUTOCAST_H
#define ACCEL_PASSES_PRECISION_AUTOCAST_H

#include "dialects/Aten/Aten.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// Rewrites an fp32 function as torch.autocast runs it (aten/src/ATen/
/// autocast_mode.h): matmuls and attention take copies of their operands in
/// `low`; a parameter that is trained is copied once (cached_cast), anything
/// else at each use; what must be exact on `device` is computed in fp32; the
/// rest promotes. `frozen`: by argument.
mlir::LogicalResult applyAutocast(mlir::func::FuncOp function, mlir::Type low,
                                  aten::Device device,
                                  llvm::ArrayRef<bool> frozen);

/// To which autocast casts in this job; null where nothing is cast.
mlir::Type autocastType(mlir::ModuleOp module);

} // namespace accel

#endif // ACCEL_PASSES_PRECISION_AUTOCAST_H
