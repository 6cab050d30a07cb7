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
/// `low`; a parameter is copied once, anything else at each use; what must be
/// exact on `device` is computed in fp32; the rest promotes.
mlir::LogicalResult applyAutocast(mlir::func::FuncOp function, mlir::Type low,
                                  aten::Device device);

} // namespace accel

#endif // ACCEL_PASSES_PRECISION_AUTOCAST_H
