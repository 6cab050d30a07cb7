//===- SumsInPlace.cpp - Matmuls that are added to a sum ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Export/SumsInPlace.h"

#include "dialects/Aten/Aten.h"

using namespace mlir;
using namespace accel;

/// The operation that writes the memory of `value`, if nobody reads it but
/// through `value`; null where that is not sure.
Operation *SumsInPlace::makerOf(Value value) const {
  while (value.hasOneUse()) {
    if (Value holder = holders.lookup(value)) {
      value = holder;
      continue;
    }
    auto maker = dyn_cast_or_null<aten::AtenOpInterface>(value.getDefiningOp());
    if (!maker)
      return nullptr;
    if (auto view = value.getDefiningOp<aten::ViewOp>()) {
      value = view.getSelf();
      continue;
    }
    const aten::Category category = maker.getCategory();
    return category == aten::Category::View ||
                   category == aten::Category::Opaque
               ? nullptr
               : value.getDefiningOp();
  }
  return nullptr;
}

void SumsInPlace::fold(Operation *sum, Value holder, Value part,
                       aten::LayoutAnalysis &layout) {
  SmallVector<Operation *> between;
  Value product = part;
  while (auto view = product.getDefiningOp<aten::ViewOp>()) {
    if (!product.hasOneUse())
      return;
    between.push_back(view);
    product = view.getSelf();
  }
  auto matmul = product.getDefiningOp<aten::MmOp>();
  Operation *maker = makerOf(holder);
  // The part is added when it is made, so that nothing lives longer.
  if (!matmul || !product.hasOneUse() || !maker || added.contains(matmul) ||
      !maker->isBeforeInBlock(matmul) ||
      !holderOf(holder).getDefiningOp()->isBeforeInBlock(matmul) ||
      !layout.isContiguous(holder))
    return;
  added[matmul] = holder;
  holders[sum->getResult(0)] = holder;
  views.insert_range(between);
}

void SumsInPlace::find(func::FuncOp function, aten::LayoutAnalysis &layout,
                       const DenseSet<Operation *> &without) {
  for (auto sum : function.getOps<aten::AddTensorOp>()) {
    Value left = sum->getOperand(0), right = sum->getOperand(1);
    if (without.contains(sum) || left == right ||
        left.getType() != right.getType() ||
        left.getType() != sum.getResult().getType())
      continue;
    fold(sum, left, right, layout);
    if (!isSum(sum))
      fold(sum, right, left, layout);
  }
}
