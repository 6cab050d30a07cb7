//===- SumProducts.cpp - Sums of matmuls without the sum --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "passes/Execution/OwnJoints.h"
#include "passes/Recompute/DecideSaved.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_SUMPRODUCTSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

/// The matmul behind `value` and views of it that nobody else reads.
aten::MmOp productBehind(Value value, SmallVector<Operation *> &dead) {
  while (value.hasOneUse()) {
    if (auto product = value.getDefiningOp<aten::MmOp>())
      return product;
    auto view = value.getDefiningOp<aten::ViewOp>();
    if (!view)
      return {};
    dead.push_back(view);
    value = view.getSelf();
  }
  return {};
}

/// The products that `sum` is the sum of; false where it is more than that.
bool findProducts(aten::AddTensorOp sum, SmallVector<aten::MmOp> &products,
                  SmallVector<Operation *> &dead) {
  dead.push_back(sum);
  return llvm::all_of(sum->getOperands(), [&](Value part) {
    if (part.getType() != sum.getType())
      return false;
    if (auto inner = part.getDefiningOp<aten::AddTensorOp>())
      return part.hasOneUse() && findProducts(inner, products, dead);
    aten::MmOp product = productBehind(part, dead);
    products.push_back(product);
    return static_cast<bool>(product);
  });
}

bool isParameterGradient(func::FuncOp joint, Value value) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    if (!isa<func::ReturnOp>(use.getOwner()))
      return false;
    auto binding = joint.getResultAttrOfType<aten::BindingAttr>(
        use.getOperandNumber(), aten::bindingAttr);
    return binding && binding.getKind() == aten::BindingKind::ParamGrad;
  });
}

/// Each product adds to the one before it. Parameters' gradients are left out:
/// plans add those up in the gradients' buffers.
void sumProducts(func::FuncOp joint, aten::AddTensorOp root) {
  SmallVector<aten::MmOp> products;
  SmallVector<Operation *> dead;
  if (isParameterGradient(joint, root.getResult()) ||
      !findProducts(root, products, dead) || products.size() < 2 ||
      !llvm::all_equal(llvm::map_range(
          products, [](aten::MmOp product) { return product.getType(); })))
    return;
  llvm::sort(products,
             [](aten::MmOp a, aten::MmOp b) { return a->isBeforeInBlock(b); });
  Value sum = products.front();
  OpBuilder b(root);
  for (aten::MmOp product : ArrayRef(products).drop_front()) {
    b.setInsertionPointAfter(product);
    sum = aten::AddmmOp::create(b, product.getLoc(), sum, product.getSelf(),
                                product.getMat2());
    dead.push_back(product);
  }
  auto type = cast<RankedTensorType>(root.getType());
  if (sum.getType() != type)
    sum = aten::ViewOp::create(b, root.getLoc(), sum, type.getShape());
  root.getResult().replaceAllUsesWith(sum);
  for (bool erased = true; erased;) {
    erased = false;
    for (Operation *&op : dead)
      if (op && op->use_empty()) {
        op->erase();
        op = nullptr;
        erased = true;
      }
  }
}

struct SumProductsPass : accel::impl::SumProductsPassBase<SumProductsPass> {
  using Base::Base;

  void runOnOperation() override {
    for (func::FuncOp joint : ownJoints(getOperation())) {
      // What the forward makes may be kept, and is then no sum's to overwrite.
      const DenseSet<Operation *> forward = forwardOps(joint);
      SmallVector<aten::AddTensorOp> roots;
      for (auto sum : joint.getBody().front().getOps<aten::AddTensorOp>())
        if (!forward.contains(sum) && !isInChain(sum))
          roots.push_back(sum);
      for (aten::AddTensorOp root : roots)
        sumProducts(joint, root);
    }
  }

  /// Part of a larger sum, which is tried as a whole or not at all: where that
  /// has other terms, its first products may be a sum of their own.
  static bool isInChain(Operation *op) {
    Value value = op->getResult(0);
    if (!value.hasOneUse())
      return false;
    auto user = dyn_cast<aten::AddTensorOp>(*value.user_begin());
    SmallVector<aten::MmOp> products;
    SmallVector<Operation *> dead;
    return user && findProducts(user, products, dead);
  }
};

} // namespace
