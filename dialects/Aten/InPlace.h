//===- InPlace.h - Operations that share an operand's storage ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_INPLACE_H
#define ACCEL_DIALECTS_ATEN_INPLACE_H

#include "dialects/Aten/Aten.h"

namespace accel::aten {

/// Whether the results of `op`, which may be null, lie in the storage of
/// operands.
bool isView(mlir::Operation *op);

/// The operand in whose storage result `result` of the view `op` lies: the
/// first one, but each its own where several values leave a function or are
/// written over.
mlir::Value viewedOperand(mlir::Operation *op, unsigned result);

/// The operand that accel-run lets `op` write its result over; null where it
/// makes a new one. An `aten.addmm` adds to a product of its own function that
/// nobody else reads. Values stay values in the dialect: it is the storage that
/// plans, and what counts their memory, make one.
mlir::Value overwrittenOperand(mlir::Operation *op);

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_INPLACE_H
