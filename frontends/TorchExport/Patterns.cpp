//===- Patterns.cpp - What several operations are together ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Patterns.h"

#include "frontends/TorchExport/Lower.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;
using accel::aten::tensorType;

namespace {

/// The operation of type OpT that makes `value`; null if it is another one.
template <typename OpT> OpT maker(Value value) {
  return value ? value.getDefiningOp<OpT>() : OpT();
}

bool isInteger(TypedAttr attr, int64_t value) {
  if (auto integer = dyn_cast<IntegerAttr>(Attribute(attr)))
    return integer.getInt() == value;
  if (auto number = dyn_cast<FloatAttr>(Attribute(attr)))
    return number.getValueAsDouble() == double(value);
  return false;
}

/// x^2 of `x`.
bool isSquare(Value value, Value x) {
  if (auto power = maker<aten::PowTensorScalarOp>(value))
    return power.getSelf() == x && isInteger(power.getOther(), 2);
  if (auto product = maker<aten::MulTensorOp>(value))
    return product.getSelf() == x && product.getOther() == x;
  return false;
}

/// weight * cast(x32 / sqrt(mean(x32^2) + eps)), where x32 is x in fp32.
Value rmsNorm(OpBuilder &b, aten::MulTensorOp op) {
  for (bool swapped : {false, true}) {
    Value weight = swapped ? op.getOther() : op.getSelf();
    Value normed = swapped ? op.getSelf() : op.getOther();
    if (tensorType(weight).getRank() != 1 || !isa<BlockArgument>(weight))
      continue;
    if (auto back = maker<aten::TypeAsOp>(normed))
      normed = back.getSelf();
    auto product = maker<aten::MulTensorOp>(normed);
    if (!product)
      continue;
    Value wide = product.getSelf(), inverse = product.getOther();
    if (!maker<aten::RsqrtOp>(inverse))
      std::swap(wide, inverse);
    auto root = maker<aten::RsqrtOp>(inverse);
    auto shifted = maker<aten::AddScalarOp>(root ? root.getSelf() : Value());
    auto mean = maker<aten::MeanDimOp>(shifted ? shifted.getSelf() : Value());
    auto cast = maker<aten::ToCopyOp>(wide);
    if (!mean || !cast || !isSquare(mean.getSelf(), wide) || !mean.getKeepdim())
      continue;
    Value x = cast.getSelf();
    int64_t last = tensorType(x).getRank() - 1;
    auto eps = dyn_cast<FloatAttr>(Attribute(shifted.getOther()));
    if (mean.getDim() != ArrayRef<int64_t>{last} || !eps ||
        tensorType(weight).getDimSize(0) != tensorType(x).getDimSize(last))
      continue;
    return aten::RmsNormOp::create(b, op.getLoc(), x, weight, eps.getValue());
  }
  return {};
}

/// [B, G, S, D] where `value` is each of its heads `n` times over.
Value ungrouped(Value value) {
  auto view = maker<aten::ViewOp>(value);
  if (!view)
    return {};
  Value inside = view.getSelf();
  if (auto clone = maker<aten::CloneOp>(inside))
    inside = clone.getSelf();
  auto expand = maker<aten::ExpandOp>(inside);
  auto unsqueeze =
      maker<aten::UnsqueezeOp>(expand ? expand.getSelf() : Value());
  if (!unsqueeze || unsqueeze.getDim() != 2)
    return {};
  Value heads = unsqueeze.getSelf();
  ArrayRef<int64_t> from = tensorType(heads).getShape(),
                    to = tensorType(value).getShape(),
                    wide = tensorType(expand).getShape();
  if (from.size() != 4 || to.size() != 4 || wide.size() != 5 ||
      from[0] != to[0] || from[1] * wide[2] != to[1] || from[2] != to[2] ||
      from[3] != to[3])
    return {};
  return heads;
}

void groupHeads(aten::ScaledDotProductAttentionOp op) {
  Value key = ungrouped(op.getKey()), value = ungrouped(op.getValue());
  if (!key || !value)
    return;
  op.getKeyMutable().assign(key);
  op.getValueMutable().assign(value);
}

} // namespace

void torchexport::eraseDead(func::FuncOp flat) {
  SmallVector<Operation *> ops;
  for (Operation &op : flat.getBody().front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
}

void torchexport::recognize(func::FuncOp flat) {
  SmallVector<aten::MulTensorOp> products;
  SmallVector<aten::ScaledDotProductAttentionOp> attentions;
  for (Operation &op : flat.getBody().front()) {
    if (auto product = dyn_cast<aten::MulTensorOp>(op))
      products.push_back(product);
    if (auto attention = dyn_cast<aten::ScaledDotProductAttentionOp>(op))
      attentions.push_back(attention);
  }
  for (aten::MulTensorOp product : products) {
    OpBuilder b(product);
    Value norm = rmsNorm(b, product);
    if (!norm)
      continue;
    norm.getDefiningOp()->setAttr(stackAttr, product->getAttr(stackAttr));
    product.getResult().replaceAllUsesWith(norm);
  }
  for (aten::ScaledDotProductAttentionOp attention : attentions)
    groupHeads(attention);
}
