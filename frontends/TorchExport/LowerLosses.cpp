//===- LowerLosses.cpp - Rules for losses, images, bilinear forms ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
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

/// The mean (1) or sum (2) of all elements; 0 leaves them.
Value reduced(Lowering &f, Value loss, int64_t reduction) {
  if (!loss || reduction == 0)
    return loss;
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < f.rank(loss); ++i)
    dims.push_back(i);
  SmallVector<std::pair<StringRef, Attribute>> attributes = {
      {"dim", f.integers(dims)}, {"keepdim", f.builder().getBoolAttr(false)}};
  return reduction == 1 ? f.make<aten::MeanDimOp>(loss, attributes)
                        : f.make<aten::SumDimOp>(loss, attributes);
}

Maybe absoluteLoss(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), target = call.tensor("target");
  auto reduction = call.integer("reduction");
  if (!self || !target || !reduction)
    return std::nullopt;
  Value off = f.make<aten::SubTensorOp>({self, target});
  return one(reduced(f, off ? f.make<aten::AbsOp>(off) : Value(), *reduction));
}

/// The losses of elements, then their mean: PyTorch's own mean keeps the memory
/// of all for its one number.
Maybe binaryCrossEntropy(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), target = call.tensor("target");
  auto reduction = call.integer("reduction");
  if (!self || !target || !reduction)
    return std::nullopt;
  SmallVector<Value> operands = {self, target};
  if (Value weight = call.tensor("weight"))
    operands.push_back(f.expand(weight, f.shape(self)));
  Value loss = f.make<aten::BinaryCrossEntropyOp>(
      operands, {{"reduction", f.integer(0)}});
  return one(reduced(f, loss, *reduction));
}

/// With weights of elements, which the loss of each is multiplied with.
Maybe logisticLoss(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), target = call.tensor("target");
  Value weight = call.tensor("weight"), positive = call.tensor("pos_weight");
  auto reduction = call.integer("reduction");
  if (!self || !target || !reduction)
    return std::nullopt;
  SmallVector<Value> operands = {self, target};
  if (positive)
    operands.push_back(positive);
  Value loss = f.make<aten::BinaryCrossEntropyWithLogitsOp>(
      operands, {{"reduction", f.integer(weight ? 0 : *reduction)}});
  if (!loss || !weight)
    return one(loss);
  return one(reduced(f, f.make<aten::MulTensorOp>({loss, weight}), *reduction));
}

/// target (log(target) - x), 0 where the target is; of logarithms
/// exp(target) (target - x).
Maybe divergence(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), target = call.tensor("target");
  auto reduction = call.integer("reduction");
  if (!self || !target || !reduction)
    return std::nullopt;
  Value share = target, log = target, loss;
  if (call.flag("log_target")) {
    share = f.make<aten::ExpOp>(target);
    loss = f.make<aten::MulTensorOp>(
        {share, f.make<aten::SubTensorOp>({log, self})});
  } else {
    log = f.make<aten::LogOp>(target);
    Value none = f.make<aten::EqScalarOp>(target, {{"other", f.integer(0)}});
    Value entropy = f.make<aten::MaskedFillScalarOp>(
        {f.make<aten::MulTensorOp>({target, log}), none},
        {{"value", f.integer(0)}});
    loss = f.make<aten::SubTensorOp>(
        {entropy, f.make<aten::MulTensorOp>({target, self})});
  }
  return one(reduced(f, loss, *reduction));
}

/// A leaky relu with a slope for each channel: the weight is [C] or [1].
Maybe prelu(Lowering &f, const Call &call) {
  Value self = call.tensor("self"), weight = call.tensor("weight");
  if (!self || !weight)
    return std::nullopt;
  if (f.rank(weight) == 1) {
    SmallVector<int64_t> size(f.rank(self), 1);
    if (f.rank(self) > 1)
      size[1] = f.shape(weight)[0];
    weight = f.reshape(weight, size);
  }
  return one(f.make<aten::PreluKernelOp>({self, weight}));
}

/// x1 W x2 for each output, W [O, I, J]: W x2 for all rows is one matmul.
Maybe bilinear(Lowering &f, const Call &call) {
  Value first = call.tensor("input1"), second = call.tensor("input2");
  Value weight = call.tensor("weight"), bias = call.tensor("bias");
  if (!first || !second || !weight || f.rank(weight) != 3 || !f.rank(first))
    return std::nullopt;
  const int64_t out = f.shape(weight)[0], left = f.shape(weight)[1],
                right = f.shape(weight)[2];
  SmallVector<int64_t> size(f.shape(first).drop_back());
  int64_t rows = 1;
  for (int64_t dim : size)
    rows *= dim;
  size.push_back(out);
  Value x = f.reshape(first, {rows, left});
  Value y = f.reshape(second, {rows, right});
  Value matrix = f.reshape(weight, {out * left, right});
  if (!x || !y || !matrix)
    return std::nullopt;
  Value product = f.make<aten::MmOp>({matrix, f.make<aten::TOp>(y)});
  product = f.view(product, {out, left, rows});
  Value terms = f.make<aten::MulTensorOp>({product, f.make<aten::TOp>(x)});
  Value sum = f.make<aten::SumDimOp>(
      terms,
      {{"dim", f.integers({1})}, {"keepdim", f.builder().getBoolAttr(false)}});
  Value result = f.reshape(sum ? f.make<aten::TOp>(sum) : Value(), size);
  if (!bias || !result)
    return one(result);
  return one(f.make<aten::AddTensorOp>({result, bias}));
}

//===----------------------------------------------------------------------===//
// Images
//===----------------------------------------------------------------------===//

/// A list of two numbers, of one twice; `otherwise` where it is empty.
std::optional<SmallVector<int64_t>> pairOf(const Call &call, StringRef name,
                                           ArrayRef<int64_t> otherwise = {}) {
  if (call.isNone(name))
    return SmallVector<int64_t>(otherwise);
  auto list = call.integers(name);
  if (!list)
    return std::nullopt;
  if (list->empty())
    list->assign(otherwise.begin(), otherwise.end());
  if (list->size() == 1)
    list->push_back(list->front());
  return list;
}

Maybe maxPool(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  auto kernel = pairOf(call, "kernel_size");
  if (!self || !kernel)
    return std::nullopt;
  auto stride = pairOf(call, "stride", *kernel),
       padding = pairOf(call, "padding"), dilation = pairOf(call, "dilation");
  if (!stride || !padding || !dilation)
    return std::nullopt;
  Operation *op = f.makeOp(
      "aten.max_pool2d_with_indices", self,
      {{"kernel_size", f.integers(*kernel)},
       {"stride", f.integers(*stride)},
       {"padding", f.integers(*padding)},
       {"dilation", f.integers(*dilation)},
       {"ceil_mode", f.builder().getBoolAttr(call.flag("ceil_mode"))}});
  if (!op)
    return std::nullopt;
  if (call.schema().name == "aten::max_pool2d")
    return one(op->getResult(0));
  return Results(op->getResults());
}

Maybe averagePool(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  auto kernel = pairOf(call, "kernel_size");
  if (!self || !kernel || !call.isNone("divisor_override"))
    return std::nullopt;
  auto stride = pairOf(call, "stride", *kernel),
       padding = pairOf(call, "padding");
  if (!stride || !padding)
    return std::nullopt;
  return one(f.make<aten::AvgPool2dOp>(
      self, {{"kernel_size", f.integers(*kernel)},
             {"stride", f.integers(*stride)},
             {"padding", f.integers(*padding)},
             {"ceil_mode", f.builder().getBoolAttr(call.flag("ceil_mode"))},
             {"count_include_pad",
              f.builder().getBoolAttr(call.flag("count_include_pad"))}}));
}

/// One window for all is a mean, as PyTorch has it.
Maybe adaptivePool(Lowering &f, const Call &call) {
  Value self = call.tensor("self");
  RankedTensorType type = f.resultType(call, 0);
  if (!self || !type || f.rank(self) != 4 || type.getRank() != 4)
    return std::nullopt;
  ArrayRef<int64_t> size = type.getShape().take_back(2);
  if (size[0] == 1 && size[1] == 1)
    return one(f.make<aten::MeanDimOp>(
        self, {{"dim", f.integers({2, 3})},
               {"keepdim", f.builder().getBoolAttr(true)}}));
  return one(f.make<aten::AdaptiveAvgPool2dOp>(
      self, {{"output_size", f.integers(size)}}));
}

/// Sizes are the file's. A scale that is given decides positions, so that of
/// the nearest element it has to be what the sizes say.
template <typename OpT> Maybe resize(Lowering &f, const Call &call) {
  constexpr bool linear = std::is_same_v<OpT, aten::UpsampleBilinear2dOp>;
  Value self = call.tensor(call.at(0));
  RankedTensorType type = f.resultType(call, 0);
  if (!self || !type || f.rank(self) != 4 || type.getRank() != 4)
    return std::nullopt;
  std::optional<double> scales[2] = {call.number("scales_h"),
                                     call.number("scales_w")};
  const Argument &factors = call["scale_factors"];
  if (factors.kind == Argument::Kind::List && factors.items.size() == 2)
    for (int i : {0, 1})
      scales[i] = call.number(factors.items[i]);
  for (int i : {0, 1})
    if (!linear && scales[i] &&
        *scales[i] * double(f.shape(self)[2 + i]) != type.getDimSize(2 + i))
      return std::nullopt;
  SmallVector<std::pair<StringRef, Attribute>> attributes = {
      {"output_size", f.integers(type.getShape().take_back(2))}};
  if (linear) {
    attributes.push_back(
        {"align_corners", f.builder().getBoolAttr(call.flag("align_corners"))});
    if (scales[0])
      attributes.push_back({"scales_h", f.number(*scales[0])});
    if (scales[1])
      attributes.push_back({"scales_w", f.number(*scales[1])});
  }
  return one(f.make<OpT>(self, attributes));
}

} // namespace

void torchexport::addLossRules(llvm::StringMap<Lowering::Rule> &rules) {
  rules["aten::l1_loss"] = absoluteLoss;
  rules["aten::binary_cross_entropy_with_logits"] = logisticLoss;
  rules["aten::binary_cross_entropy"] = binaryCrossEntropy;
  rules["aten::kl_div"] = divergence;
  rules["aten::prelu"] = prelu;
  rules["aten::bilinear"] = bilinear;
  for (const char *name : {"aten::max_pool2d", "aten::max_pool2d_with_indices"})
    rules[name] = maxPool;
  rules["aten::avg_pool2d"] = averagePool;
  for (const char *name :
       {"aten::adaptive_avg_pool2d", "aten::_adaptive_avg_pool2d"})
    rules[name] = adaptivePool;
  for (const char *name :
       {"aten::upsample_bilinear2d", "aten::upsample_bilinear2d.vec"})
    rules[name] = resize<aten::UpsampleBilinear2dOp>;
  for (const char *name :
       {"aten::upsample_nearest2d", "aten::upsample_nearest2d.vec"})
    rules[name] = resize<aten::UpsampleNearest2dOp>;
}
