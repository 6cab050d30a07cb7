//===- Dropped.cpp - Attention that drops weights -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// AtenDropped.td; result types and derivatives are with the other attention's
// (Attention.cpp, Cost.cpp), keys with those of dropout (Random.cpp).
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Dropped.h"

#include "dialects/Aten/Layout.h"
#include "dialects/Aten/Rules.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenDropped.cpp.inc"

/// [B, H, S, D] that lies in memory as [B, S, H, D].
static Strides headsInside(Value value) {
  ArrayRef<int64_t> shape = shapeOf(value);
  const int64_t heads = shape[1], rows = shape[2], size = shape[3];
  return {rows * heads * size, size, heads * size, 1};
}

/// The log-sum-exp of each row, [B, H, S].
static Strides rowsOf(Value value) {
  ArrayRef<int64_t> shape = shapeOf(value);
  return {shape[1] * shape[2], shape[2], 1};
}

Strides DroppedFlashAttentionOp::getStrides(LayoutAnalysis &, unsigned result) {
  return result == 0 ? headsInside(getOutput()) : rowsOf(getLogsumexp());
}
Strides DroppedEfficientAttentionOp::getStrides(LayoutAnalysis &,
                                                unsigned result) {
  return result == 0 ? headsInside(getOutput()) : rowsOf(getLogsumexp());
}
Strides DroppedFlashAttentionBackwardOp::getStrides(LayoutAnalysis &,
                                                    unsigned result) {
  return headsInside((*this)->getResult(result));
}
Strides DroppedEfficientAttentionBackwardOp::getStrides(LayoutAnalysis &,
                                                        unsigned result) {
  return headsInside((*this)->getResult(result));
}
