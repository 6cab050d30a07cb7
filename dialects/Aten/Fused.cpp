//===- Fused.cpp - Kernels of libraries and compilers ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Fused.h"

#include "dialects/Aten/Rules.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenFused.cpp.inc"

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

INFER(RotaryOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  for (Value table : {adaptor.getCos(), adaptor.getSin()})
    if (self.getRank() == 0 || shapeOf(table).empty() ||
        shapeOf(table).back() != self.getShape().back())
      return emitOptionalError(loc, "table ", table.getType(),
                               " does not fit the last dimension of ", self);
  results.push_back(self);
  return success();
}

BACKWARD(RotaryOp) {
  if (needed[1] || needed[2])
    return emitOpError("has no derivative through its tables");
  if (needed[0])
    operandGrads[0] =
        b.create<RotaryOp>(grads[0], getCos(), getSin(), !getInverse());
  return success();
}

//===----------------------------------------------------------------------===//
// SwiGLU
//===----------------------------------------------------------------------===//

BACKWARD(SwigluOp) {
  auto backward = b.createOp<SwigluBackwardOp>(grads[0], getGate(), getUp());
  for (unsigned i = 0; i < 2; ++i)
    if (needed[i])
      operandGrads[i] = backward->getResult(i);
  return success();
}

INFER(SwigluBackwardOp) {
  RankedTensorType gate = tensorType(adaptor.getGate());
  if (adaptor.getGradOut().getType() != gate ||
      adaptor.getUp().getType() != gate)
    return emitOptionalError(loc, "expects tensors of one type, got ",
                             adaptor.getGradOut().getType(), ", ", gate,
                             " and ", adaptor.getUp().getType());
  results.append({gate, gate});
  return success();
}

//===----------------------------------------------------------------------===//
// DoRA
//===----------------------------------------------------------------------===//

namespace {

/// Of a DoRA layer's adapter.
struct DoraShape {
  int64_t rank, in, out;
  int64_t product() const { return in * out; }
};

DoraShape doraShape(Value down, Value up) {
  return {shapeOf(down)[0], shapeOf(down)[1], shapeOf(up)[0]};
}

bool copiesWeight(Value weight, Value down) {
  return tensorType(weight).getElementType() !=
         tensorType(down).getElementType();
}

} // namespace

INFER(DoraNormOp) {
  ArrayRef<int64_t> weight = shapeOf(adaptor.getWeight()),
                    down = shapeOf(adaptor.getDown()),
                    up = shapeOf(adaptor.getUp());
  const bool turned = adaptor.getTransposed();
  if (weight.size() != 2 || down.size() != 2 || up.size() != 2 ||
      down[0] != up[1] || weight[turned ? 0 : 1] != down[1] ||
      weight[turned ? 1 : 0] != up[0])
    return emitOptionalError(loc, "matrices ", adaptor.getDown().getType(),
                             " and ", adaptor.getUp().getType(),
                             " do not multiply to the weight's ",
                             adaptor.getWeight().getType());
  const DoraShape shape = doraShape(adaptor.getDown(), adaptor.getUp());
  const bool copies = copiesWeight(adaptor.getWeight(), adaptor.getDown());
  Type element = tensorType(adaptor.getDown()).getElementType();
  auto add = [&](ArrayRef<int64_t> sizes) {
    results.push_back(RankedTensorType::get(sizes, element));
  };
  add({shape.out});
  add({shape.in * (shape.in + shape.rank) + (1 + copies) * shape.product()});
  if (turned && !copies)
    add({shape.out, shape.in});
  else
    add({0});
  return success();
}

BACKWARD(DoraNormOp) { return success(); }

Cost DoraNormOp::getCost() {
  const DoraShape shape = doraShape(getDown(), getUp());
  const double rank = shape.rank, in = shape.in, out = shape.out,
               each = tensorType(getDown()).getElementTypeBitWidth() / 8.0;
  // The identity is written and read; the product is written and read by the
  // scaling and the sum, each of which writes a matrix, and the norm reads one.
  return {2 * rank * in * (in + out) + 4 * in * out,
          each * (2 * in * in + 2 * rank * in + 6 * in * out) + 2.0 * in * out};
}

int64_t DoraNormOp::getWorkspaceBytes(Device) {
  // The scaled product and the sum.
  const int64_t matrices = getSum().getType().getNumElements() > 0 ? 1 : 2;
  return matrices * doraShape(getDown(), getUp()).product() *
         tensorType(getDown()).getElementTypeBitWidth() / 8;
}

INFER(HoldOp) {
  results.push_back(adaptor.getSelf().getType());
  return success();
}

Strides HoldOp::getStrides(LayoutAnalysis &layout, unsigned) {
  return layout.strides(getSelf());
}

BACKWARD(HoldOp) {
  if (needed[0])
    operandGrads[0] = getSaved()
                          ? Value(b.create<HoldOp>(grads[0], getHeld(), false))
                          : grads[0];
  return success();
}

//===----------------------------------------------------------------------===//
// Cross-entropy
//===----------------------------------------------------------------------===//

static LogicalResult checkRows(std::optional<Location> loc, Value logits,
                               Value targets) {
  ArrayRef<int64_t> rows = shapeOf(logits);
  if (rows.size() != 2 || shapeOf(targets) != rows.take_front(1))
    return emitOptionalError(loc, "targets ", targets.getType(),
                             " do not fit the rows of ", logits.getType());
  return success();
}

INFER(CrossEntropyOp) {
  if (failed(checkRows(loc, adaptor.getLogits(), adaptor.getTargets())))
    return failure();
  Type wide = Float32Type::get(context);
  results.append({RankedTensorType::get({}, wide),
                  RankedTensorType::get(shapeOf(adaptor.getTargets()), wide)});
  return success();
}

BACKWARD(CrossEntropyOp) {
  if (grads[1])
    return emitOpError("has no derivative through its sums");
  if (!grads[0] || !needed[0])
    return success();
  if (getInPlace())
    operandGrads[0] = b.create<CrossEntropyInPlaceBackwardOp>(
        getLogits(), grads[0], getTargets(), getSums(), getIgnoreIndex());
  else
    operandGrads[0] = b.create<CrossEntropyBackwardOp>(
        getLogits(), grads[0], getTargets(), getSums(), getIgnoreIndex());
  return success();
}

template <typename Adaptor>
static LogicalResult inferGradient(std::optional<Location> loc, Adaptor adaptor,
                                   SmallVectorImpl<Type> &results) {
  if (failed(checkRows(loc, adaptor.getLogits(), adaptor.getTargets())))
    return failure();
  results.push_back(adaptor.getLogits().getType());
  return success();
}

INFER(CrossEntropyBackwardOp) { return inferGradient(loc, adaptor, results); }
INFER(CrossEntropyInPlaceBackwardOp) {
  return inferGradient(loc, adaptor, results);
}

/// Each logit is read once and, in the backward, its gradient written.
static Cost lossCost(Value logits, double flops, double passes) {
  RankedTensorType type = tensorType(logits);
  return {flops * double(type.getNumElements()),
          passes * double(tensorBytes(type))};
}

Cost CrossEntropyOp::getCost() { return lossCost(getLogits(), 5, 1); }
Cost CrossEntropyBackwardOp::getCost() { return lossCost(getLogits(), 4, 2); }
Cost CrossEntropyInPlaceBackwardOp::getCost() {
  return lossCost(getLogits(), 4, 2);
}
