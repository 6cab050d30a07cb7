//===- Lora.cpp - Adapters in autograd functions --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The backwards are those of axolotl/kernels/lora.py, operator by operator.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Lora.h"

#include "dialects/Aten/Fused.h"
#include "dialects/Aten/Rules.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenLora.cpp.inc"

//===----------------------------------------------------------------------===//
// Matmuls times a number
//===----------------------------------------------------------------------===//

INFER(AlphaMmOp) {
  return inferMatmul(loc, tensorType(adaptor.getSelf()),
                     tensorType(adaptor.getMat2()), results);
}

Cost AlphaMmOp::getCost() {
  return {matmulFlops(getSelf(), getMat2()), touchedBytes(*this)};
}

INFER(AlphaAddmmOp) {
  if (failed(inferMatmul(loc, tensorType(adaptor.getMat1()),
                         tensorType(adaptor.getMat2()), results)))
    return failure();
  if (adaptor.getSelf().getType() != results.front())
    return emitOptionalError(loc, "adds to ", adaptor.getSelf().getType(),
                             " a matmul of type ", results.front());
  return success();
}

Cost AlphaAddmmOp::getCost() {
  return {matmulFlops(getMat1(), getMat2()), touchedBytes(*this)};
}

//===----------------------------------------------------------------------===//
// Gated activations
//===----------------------------------------------------------------------===//

INFER(GluInPlaceBackwardOp) {
  Type type = adaptor.getGate().getType();
  if (adaptor.getGradOut().getType() != type ||
      adaptor.getUp().getType() != type)
    return emitOptionalError(loc, "expects tensors of one type, got ",
                             adaptor.getGradOut().getType(), ", ", type,
                             " and ", adaptor.getUp().getType());
  results.append({type, type, type});
  return success();
}

Cost GluInPlaceBackwardOp::getCost() {
  return {8.0 * double(tensorType(getGate()).getNumElements()),
          touchedBytes(*this)};
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {

/// A layer's matrices: its weight [out, in], A [rank, in], B [out, rank].
struct Layer {
  Value weight, down, up;
  double scale = 1;
};

/// The layers at the end of `values`.
SmallVector<Layer> layersOf(ValueRange values, ArrayRef<double> scales) {
  const size_t n = scales.size(), first = values.size() - 3 * n;
  SmallVector<Layer> layers;
  for (size_t i = 0; i < n; ++i)
    layers.push_back({values[first + i], values[first + n + i],
                      values[first + 2 * n + i], scales[i]});
  return layers;
}

LogicalResult checkLayer(std::optional<Location> loc, const Layer &layer,
                         Value input, Value output) {
  ArrayRef<int64_t> weight = shapeOf(layer.weight), down = shapeOf(layer.down),
                    up = shapeOf(layer.up);
  if (weight.size() != 2 || down.size() != 2 || up.size() != 2 ||
      down[0] != up[1] || weight[1] != down[1] || weight[0] != up[0])
    return emitOptionalError(
        loc, "matrices ", layer.down.getType(), " and ", layer.up.getType(),
        " do not multiply to the weight's ", layer.weight.getType());
  if (shapeOf(input) != ArrayRef({shapeOf(input)[0], weight[1]}) ||
      shapeOf(output) != ArrayRef({shapeOf(input)[0], weight[0]}))
    return emitOptionalError(loc, "a weight ", layer.weight.getType(),
                             " does not make ", output.getType(), " of ",
                             input.getType());
  return success();
}

/// What the backwards have in common. Operands take the dtype of the gradients
/// that they are multiplied with, as under autocast.
class Gradients {
public:
  Gradients(BackwardBuilder &b, Type element) : b(b), element(element) {}

  Value mm(Value x, Value y) { return b.create<MmOp>(as(x), as(y)); }
  Value addmm(Value self, Value x, Value y) {
    return b.create<AddmmOp>(self, as(x), as(y));
  }
  Value addmm(Value self, Value x, Value y, double alpha) {
    return b.create<AlphaAddmmOp>(self, as(x), as(y), alpha);
  }
  /// Of A and B, of the layer's input and the output's gradient; `narrow` takes
  /// the gradient of what A gave, but for the scale.
  std::pair<Value, Value> ofAdapter(const Layer &layer, Value input, Value grad,
                                    Value &narrow) {
    narrow = mm(grad, layer.up);
    Value turned = b.t(input);
    Value down = b.create<AlphaMmOp>(as(turned), narrow, layer.scale);
    Value up = b.create<AlphaMmOp>(mm(layer.down, turned), grad, layer.scale);
    return {b.t(down), b.t(up)};
  }

private:
  Value as(Value value) {
    return elementOf(value) == element ? value
                                       : b.create<ToCopyOp>(value, element);
  }

  BackwardBuilder &b;
  Type element;
};

} // namespace

INFER(LoraProjectionsOp) {
  const ArrayRef<double> scales = adaptor.getScales();
  ValueRange values = adaptor.getValues();
  const size_t n = scales.size();
  if (n == 0 || values.size() != 4 * n + 2)
    return emitOptionalError(loc, "expects ", 4 * n + 2, " operands for ", n,
                             " layers, got ", values.size());
  for (auto [i, layer] : llvm::enumerate(layersOf(values, scales))) {
    if (failed(checkLayer(loc, layer, values[n], values[i])))
      return failure();
    results.push_back(values[i].getType());
  }
  return success();
}

BACKWARD(LoraProjectionsOp) {
  const size_t n = getScales().size();
  Value input = getValues()[n], dropped = getValues()[n + 1];
  const bool drops = input != dropped;
  SmallVector<Layer> layers = layersOf(getValues(), getScales());
  Value some = *llvm::find_if(grads, [](Value grad) { return bool(grad); });
  Gradients make(b, elementOf(some));
  SmallVector<Value> narrow(n);
  for (size_t i = 0; i < n; ++i)
    if (grads[i])
      std::tie(operandGrads[2 * n + 2 + i], operandGrads[3 * n + 2 + i]) =
          make.ofAdapter(layers[i], dropped, grads[i], narrow[i]);
  Value base;
  for (size_t i = 0; i < n; ++i)
    if (grads[i])
      base = base ? make.addmm(base, grads[i], layers[i].weight)
                  : make.mm(grads[i], layers[i].weight);
  // One layer multiplies, several add to zeros.
  Value own =
      drops && n > 1
          ? b.full(RankedTensorType::get(shapeOf(dropped), elementOf(some)))
          : Value();
  for (size_t i = 0; i < n; ++i) {
    if (!grads[i])
      continue;
    if (drops && n == 1)
      own = b.create<MulScalarOp>(make.mm(narrow[i], layers[i].down),
                                  layers[i].scale);
    else
      (drops ? own : base) = make.addmm(drops ? own : base, narrow[i],
                                        layers[i].down, layers[i].scale);
  }
  operandGrads[n] = base;
  if (drops) {
    operandGrads[n + 1] = own;
    // The function saves its input beside what it multiplies.
    Value &ofDown = *llvm::find_if(operandGrads.slice(2 * n + 2, n),
                                   [](Value grad) { return bool(grad); });
    ofDown = b.create<HoldOp>(ofDown, input, false);
  }
  for (auto [grad, operand] : llvm::zip(operandGrads, getValues()))
    if (grad)
      grad = b.sumTo(grad, operand.getType());
  return success();
}

INFER(LoraMlpOp) {
  ValueRange values = adaptor.getValues();
  if (adaptor.getScales().size() != 3 || values.size() != 14)
    return emitOptionalError(loc, "expects three scales and 14 operands, got ",
                             adaptor.getScales().size(), " and ",
                             values.size());
  SmallVector<Layer> layers = layersOf(values, adaptor.getScales());
  if (failed(checkLayer(loc, layers[0], values[1], values[3])) ||
      failed(checkLayer(loc, layers[1], values[1], values[4])) ||
      failed(checkLayer(loc, layers[2], values[3], values[0])))
    return failure();
  results.push_back(values[0].getType());
  return success();
}

BACKWARD(LoraMlpOp) {
  Value input = getValues()[1], dropped = getValues()[2];
  const bool drops = input != dropped;
  SmallVector<Layer> layers = layersOf(getValues(), getScales());
  const Layer &gate = layers[0], &up = layers[1], &down = layers[2];
  Gradients make(b, elementOf(grads[0]));
  Value inner = make.mm(grads[0], down.weight);
  inner = make.addmm(inner, make.mm(grads[0], down.up), down.down, down.scale);
  auto activation = b.createOp<GluInPlaceBackwardOp>(inner, getValues()[3],
                                                     getValues()[4], getGelu());
  Value output = activation.getOutput(), ofGate = activation.getGradGate(),
        ofUp = activation.getGradUp(), narrow, narrowUp, narrowGate;
  std::tie(operandGrads[10], operandGrads[13]) =
      make.ofAdapter(down, output, grads[0], narrow);
  std::tie(operandGrads[9], operandGrads[12]) =
      make.ofAdapter(up, dropped, ofUp, narrowUp);
  std::tie(operandGrads[8], operandGrads[11]) =
      make.ofAdapter(gate, dropped, ofGate, narrowGate);
  if (drops)
    operandGrads[8] = b.create<HoldOp>(operandGrads[8], input, false);
  if (needed[1] || needed[2]) {
    Value base = make.addmm(make.mm(ofUp, up.weight), ofGate, gate.weight);
    Value own = drops ? b.full(RankedTensorType::get(shapeOf(dropped),
                                                     elementOf(grads[0])))
                      : base;
    own = make.addmm(own, narrowUp, up.down, up.scale);
    own = make.addmm(own, narrowGate, gate.down, gate.scale);
    // Locals of the function: until it returns.
    own = b.create<HoldOp>(own, output, false);
    own = b.create<HoldOp>(own, narrow, false);
    operandGrads[1] = drops ? base : own;
    if (drops)
      operandGrads[2] = own;
  }
  for (auto [grad, operand] : llvm::zip(operandGrads, getValues()))
    if (grad)
      grad = b.sumTo(grad, operand.getType());
  return success();
}
