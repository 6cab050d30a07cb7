//===- InPlace.cpp - Operations that share an operand's storage -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/InPlace.h"

using namespace mlir;

namespace accel::aten {

bool isView(Operation *op) {
  auto aten = dyn_cast_or_null<AtenOpInterface>(op);
  return aten && aten.getCategory() == Category::View;
}

Value overwrittenOperand(Operation *op) {
  auto sum = dyn_cast<AddmmOp>(op);
  if (!sum)
    return {};
  Value self = sum.getSelf();
  Operation *maker = self.getDefiningOp();
  return isa_and_nonnull<MmOp, AddmmOp>(maker) && self.hasOneUse() &&
                 self.getType() == sum.getType()
             ? self
             : Value();
}

} // namespace accel::aten
