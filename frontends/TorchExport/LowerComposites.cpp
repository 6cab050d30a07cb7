//===- LowerComposites.cpp - Rules for composite operators ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Operators of training IR that PyTorch's dispatcher takes apart, taken apart
// as it does on CPUs (aten/src/ATen/native/Linear.cpp, LinearAlgebra.cpp,
// LossNLL.cpp, SoftMax.cpp), so that results are equal.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Lower.h"

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;
using Results = Lowering::Results;
using Maybe = std::optional<Lowering::Results>;

namespace {

Maybe one(Value value) { return Results{value}; }

/// x W^T + b, on a matrix of all rows.
Maybe linear(Lowering &f, const Call &call) {
  Value input = call.tensor("input"), weight = call.tensor("weight");
  Value bias = call.tensor("bias");
  if (!input || !weight || f.rank(weight) != 2 || f.rank(input) < 1)
    return std::nullopt;
  ArrayRef<int64_t> shape = f.shape(input);
  int64_t in = shape.back(), out = f.shape(weight)[0], rows = 1;
  for (int64_t dim : shape.drop_back())
    rows *= dim;
  Value matrix = f.reshape(input, {rows, in});
  Value turned = f.make<aten::TOp>(weight);
  Value product = bias ? f.make<aten::AddmmOp>({bias, matrix, turned})
                       : f.make<aten::MmOp>({matrix, turned});
  SmallVector<int64_t> size(shape.drop_back());
  size.push_back(out);
  return one(f.view(product, size));
}

Maybe addmm(Lowering &f, const Call &call) {
  if (call.number("beta") != 1 || call.number("alpha") != 1)
    return std::nullopt;
  return one(f.make<aten::AddmmOp>(
      {call.tensor("self"), call.tensor("mat1"), call.tensor("mat2")}));
}

Maybe matmul(Lowering &f, const Call &call) {
  Value a = call.tensor(call.at(0)), b = call.tensor(call.at(1));
  if (!a || !b)
    return std::nullopt;
  return one(f.matmul(a, b));
}

/// Norms over the last dimension with a weight.
Maybe layerNorm(Lowering &f, const Call &call) {
  Value input = call.tensor("input"), weight = call.tensor("weight");
  Value bias = call.tensor("bias");
  auto over = call.integers("normalized_shape");
  auto eps = call.number("eps");
  if (!input || !weight || !over || over->size() != 1 || !eps)
    return std::nullopt;
  SmallVector<Value> operands = {input, weight};
  if (bias)
    operands.push_back(bias);
  return one(f.make<aten::LayerNormOp>(operands, {{"eps", f.number(*eps)}}));
}

Maybe nativeLayerNorm(Lowering &f, const Call &call) {
  // Mean and deviation are for the backward, which is written anew.
  Maybe result = layerNorm(f, call);
  if (result)
    result->append(2, Value());
  return result;
}

Maybe rmsNorm(Lowering &f, const Call &call) {
  Value input = call.tensor("input"), weight = call.tensor("weight");
  auto over = call.integers("normalized_shape");
  auto eps = call.number("eps");
  if (!input || !weight || !over || over->size() != 1)
    return std::nullopt;
  return one(f.make<aten::RmsNormOp>(
      {input, weight}, {{"eps", f.number(eps.value_or(0x1p-23))}}));
}

//===----------------------------------------------------------------------===//
// Softmax and losses
//===----------------------------------------------------------------------===//

Value logSoftmaxOf(Lowering &f, Value x, int64_t dim) {
  return f.make<aten::LogSoftmaxOp>(x, {{"dim", f.integer(dim)}});
}

Maybe logSoftmax(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  auto dim = call.integer("dim");
  if (!self || !dim)
    return std::nullopt;
  if (call["dtype"].kind == Argument::Kind::ScalarType)
    self = f.cast(self, elementType(f.builder(), call["dtype"].integer));
  return one(logSoftmaxOf(f, self, *dim < 0 ? *dim + f.rank(self) : *dim));
}

Maybe softmax(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  auto dim = call.integer("dim");
  if (!self || !dim || !f.isFloat(self))
    return std::nullopt;
  if (call["dtype"].kind == Argument::Kind::ScalarType)
    self = f.cast(self, elementType(f.builder(), call["dtype"].integer));
  return one(f.make<aten::SoftmaxOp>(
      self, {{"dim", f.integer(*dim < 0 ? *dim + f.rank(self) : *dim)}}));
}

/// The mean over the rows that count; scores [N, C] and targets [N].
Value negativeLogLikelihood(Lowering &f, Value scores, Value target,
                            int64_t ignore) {
  return f.make<aten::NllLossForwardOp>({scores, target},
                                        {{"ignore_index", f.integer(ignore)}});
}

/// Class indices as targets, no weights, the mean: what language models use.
Maybe crossEntropy(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), target = call.tensor("target");
  if (!self || !target || !call.isNone("weight") ||
      call.integer("reduction") != 1 || call.number("label_smoothing") != 0 ||
      f.isFloat(target) || f.rank(self) != 2 || f.rank(target) != 1)
    return std::nullopt;
  return one(
      negativeLogLikelihood(f, logSoftmaxOf(f, self, 1), target,
                            call.integer("ignore_index").value_or(-100)));
}

Maybe nllLoss(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), target = call.tensor("target");
  if (!self || !target || !call.isNone("weight") ||
      call.integer("reduction") != 1 || f.rank(self) != 2)
    return std::nullopt;
  return one(negativeLogLikelihood(
      f, self, target, call.integer("ignore_index").value_or(-100)));
}

} // namespace

/// PyTorch folds what it can into one matmul, and uses a batched
/// product for the rest; one column times one row is their outer product.
Value Lowering::matmul(Value a, Value b) {
  if (!a || !b || !isFloat(a) || !isFloat(b))
    return {};
  if (Value attention = attentionOf(a, b))
    return attention;
  Value result = product(a, b);
  if (result)
    products[result] = {a, b};
  return result;
}

Value Lowering::product(Value a, Value b) {
  const int64_t rankA = rank(a), rankB = rank(b);
  if (rankA == 2 && rankB == 2)
    return make<aten::MmOp>({a, b});
  if (rankA >= 3 && rankB == 2) {
    SmallVector<int64_t> size(shape(a).drop_back());
    int64_t rows = 1;
    for (int64_t dim : size)
      rows *= dim;
    size.push_back(shape(b)[1]);
    Value product = make<aten::MmOp>({reshape(a, {rows, shape(a).back()}), b});
    return view(product, size);
  }
  if (rankA < 3 || rankB != rankA || shape(a)[rankA - 1] != shape(b)[rankB - 2])
    return {};
  if (shape(a)[rankA - 1] == 1)
    return make<aten::MulTensorOp>({a, b});
  auto batch =
      aten::broadcastShapes({shape(a).drop_back(2), shape(b).drop_back(2)});
  if (!batch)
    return {};
  int64_t count = 1;
  for (int64_t dim : *batch)
    count *= dim;
  auto stacked = [&](Value value) -> Value {
    SmallVector<int64_t> whole(*batch);
    whole.append(shape(value).take_back(2).begin(), shape(value).end());
    return reshape(expand(value, whole),
                   {count, shape(value)[rankA - 2], shape(value)[rankA - 1]});
  };
  Operation *op = makeOp("aten.bmm", {stacked(a), stacked(b)}, {});
  if (!op)
    return {};
  SmallVector<int64_t> size(*batch);
  size.push_back(shape(a)[rankA - 2]);
  size.push_back(shape(b)[rankB - 1]);
  return view(op->getResult(0), size);
}

void torchexport::addCompositeRules(llvm::StringMap<Lowering::Rule> &rules) {
  rules["aten::linear"] = linear;
  rules["aten::addmm"] = addmm;
  rules["aten::matmul"] = matmul;
  rules["aten::layer_norm"] = layerNorm;
  rules["aten::native_layer_norm"] = nativeLayerNorm;
  rules["aten::rms_norm"] = rmsNorm;
  for (const char *name : {"aten::log_softmax.int", "aten::_log_softmax"})
    rules[name] = logSoftmax;
  for (const char *name : {"aten::softmax.int", "aten::_softmax"})
    rules[name] = softmax;
  rules["aten::cross_entropy_loss"] = crossEntropy;
  for (const char *name : {"aten::nll_loss_nd", "aten::nll_loss"})
    rules[name] = nllLoss;
}
