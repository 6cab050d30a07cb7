//===- InPlace.cpp - Operations that share an operand's storage -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/InPlace.h"

#include "dialects/Aten/Lora.h"

using namespace mlir;

namespace accel::aten {

bool isView(Operation *op) {
  auto aten = dyn_cast_or_null<AtenOpInterface>(op);
  return aten && aten.getCategory() == Category::View;
}

Value viewedOperand(Operation *op, unsigned result) {
  return op->getOperand(
      isa<LoraProjectionsOp, GluInPlaceBackwardOp>(op) ? result : 0);
}

Value overwrittenOperand(Operation *op) {
  const bool scaled = isa<AlphaAddmmOp>(op);
  if (!scaled && !isa<AddmmOp>(op))
    return {};
  Value self = op->getOperand(0);
  Operation *maker = self.getDefiningOp();
  const bool made = isa_and_nonnull<MmOp, AddmmOp, AlphaAddmmOp>(maker) ||
                    (scaled && isa_and_nonnull<FullOp>(maker));
  return made && self.hasOneUse() &&
                 self.getType() == op->getResult(0).getType()
             ? self
             : Value();
}

} // namespace accel::aten
