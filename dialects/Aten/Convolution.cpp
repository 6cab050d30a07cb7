//===- Convolution.cpp - Types, work, derivative of convolution -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

namespace {

/// The attributes that forward and backward share.
struct Window {
  template <typename Adaptor>
  explicit Window(Adaptor adaptor)
      : stride(adaptor.getStride()), padding(adaptor.getPadding()),
        dilation(adaptor.getDilation()),
        outputPadding(adaptor.getOutputPadding()),
        transposed(adaptor.getTransposed()), groups(adaptor.getGroups()) {}

  ArrayRef<int64_t> stride, padding, dilation, outputPadding;
  bool transposed;
  int64_t groups;
};

} // namespace

static LogicalResult checkWindow(std::optional<Location> loc,
                                 const Window &window, int64_t dims) {
  auto each = [&](ArrayRef<int64_t> list, int64_t least) {
    return static_cast<int64_t>(list.size()) == dims &&
           llvm::all_of(list, [&](int64_t value) { return value >= least; });
  };
  if (!each(window.stride, 1) || !each(window.dilation, 1))
    return emitOptionalError(loc, "stride and dilation are ", dims,
                             " positive numbers");
  if (!each(window.padding, 0) || !each(window.outputPadding, 0))
    return emitOptionalError(loc, "padding and output_padding are ", dims,
                             " numbers, none of them negative");
  if (window.groups < 1)
    return emitOptionalError(loc, "expects at least one group, got ",
                             window.groups);
  return success();
}

/// The output [N, O, ...] for x [N, C, ...] and a weight.
static FailureOr<RankedTensorType> convolved(std::optional<Location> loc,
                                             RankedTensorType input,
                                             RankedTensorType weight,
                                             const Window &window) {
  auto fail = [&](auto &&...parts) -> FailureOr<RankedTensorType> {
    (void)emitOptionalError(loc, parts...);
    return failure();
  };
  int64_t dims = input.getRank() - 2;
  if (dims < 1 || dims > 3 || weight.getRank() != input.getRank())
    return fail("expects x as [N, C, ...] and a weight of as many dimensions, "
                "3 to 5, got ",
                input, " and ", weight);
  if (input.getElementType() != weight.getElementType())
    return fail("expects one element type, got ", input, " and ", weight);
  if (failed(checkWindow(loc, window, dims)))
    return failure();
  if (llvm::is_contained(weight.getShape(), 0) ||
      llvm::is_contained(input.getShape().drop_front(), 0))
    return fail("expects elements to convolve, got ", input, " and ", weight);
  // In a transposed convolution the weight's first dimension reads x.
  int64_t channels = input.getDimSize(1);
  int64_t read = window.transposed ? weight.getDimSize(0)
                                   : weight.getDimSize(1) * window.groups;
  int64_t written = window.transposed ? weight.getDimSize(1) * window.groups
                                      : weight.getDimSize(0);
  if (read != channels || written % window.groups || channels % window.groups)
    return fail("weight ", weight, " in ", window.groups,
                " groups does not fit the channels of ", input);
  SmallVector<int64_t> shape = {input.getDimSize(0), written};
  for (int64_t i = 0; i < dims; ++i) {
    int64_t size = input.getDimSize(i + 2);
    int64_t reach = window.dilation[i] * (weight.getDimSize(i + 2) - 1);
    int64_t room = size + 2 * window.padding[i] - reach - 1;
    if (!window.transposed) {
      if (room < 0)
        return fail("weight ", weight, " is larger than ", input,
                    " with its padding");
      shape.push_back(room / window.stride[i] + 1);
      continue;
    }
    if (window.outputPadding[i] >=
        std::max(window.stride[i], window.dilation[i]))
      return fail("output_padding is smaller than stride or dilation, got ",
                  window.outputPadding[i]);
    shape.push_back((size - 1) * window.stride[i] - 2 * window.padding[i] +
                    reach + window.outputPadding[i] + 1);
    if (shape.back() < 1)
      return fail("the output of ", input, " has no elements");
  }
  return input.clone(shape);
}

INFER(ConvolutionOp) {
  RankedTensorType weight = tensorType(adaptor.getWeight());
  auto type =
      convolved(loc, tensorType(adaptor.getInput()), weight, Window(adaptor));
  if (failed(type))
    return failure();
  if (Value bias = adaptor.getBias())
    if (bias.getType() != weight.clone(ArrayRef<int64_t>(type->getDimSize(1))))
      return emitOptionalError(loc, "bias ", bias.getType(),
                               " does not fit the output ", *type);
  results.push_back(*type);
  return success();
}

INFER(ConvolutionBackwardOp) {
  RankedTensorType input = tensorType(adaptor.getInput());
  RankedTensorType weight = tensorType(adaptor.getWeight());
  auto type = convolved(loc, input, weight, Window(adaptor));
  if (failed(type))
    return failure();
  if (adaptor.getGradOutput().getType() != *type)
    return emitOptionalError(loc, "gradient ",
                             adaptor.getGradOutput().getType(),
                             " is not of the output's type ", *type);
  ArrayRef<bool> mask = adaptor.getOutputMask();
  ArrayRef<int64_t> bias = adaptor.getBiasSizes().value_or(ArrayRef<int64_t>());
  if (mask.size() != 3 || (mask[2] && bias.empty()) ||
      (!bias.empty() && bias != ArrayRef<int64_t>(type->getDimSize(1))))
    return emitOptionalError(loc, "output mask or bias sizes do not fit the "
                                  "operands");
  if (mask[0])
    results.push_back(input);
  if (mask[1])
    results.push_back(weight);
  if (mask[2])
    results.push_back(weight.clone(bias));
  return success();
}

//===----------------------------------------------------------------------===//
// Work and layout
//===----------------------------------------------------------------------===//

/// Each position of the smaller side meets one whole kernel.
static double tapsFlops(RankedTensorType input, RankedTensorType weight,
                        RankedTensorType output, bool transposed) {
  RankedTensorType side = transposed ? input : output;
  double kernel =
      weight.getNumElements() /
      static_cast<double>(std::max<int64_t>(weight.getDimSize(0), 1));
  return 2.0 * side.getNumElements() * kernel;
}

Cost ConvolutionOp::getCost() {
  double flops = tapsFlops(tensorType(getInput()), tensorType(getWeight()),
                           tensorType(getResult()), getTransposed());
  if (getBias())
    flops += tensorType(getResult()).getNumElements();
  return {flops, defaultCost(*this).bytes};
}

Cost ConvolutionBackwardOp::getCost() {
  double product = tapsFlops(tensorType(getInput()), tensorType(getWeight()),
                             tensorType(getGradOutput()), getTransposed());
  ArrayRef<bool> mask = getOutputMask();
  double flops = (mask[0] + mask[1]) * product;
  if (mask[2])
    flops += tensorType(getGradOutput()).getNumElements();
  return {flops, defaultCost(*this).bytes};
}

/// Channels come last in memory where they do in x or in the weight.
static Strides imageStrides(LayoutAnalysis &layout, Value input, Value weight,
                            ArrayRef<int64_t> shape) {
  if (layout.isChannelsLast(input) || layout.isChannelsLast(weight))
    return LayoutAnalysis::channelsLast(shape);
  return Strides(contiguousStrides(shape));
}

Strides ConvolutionOp::getStrides(LayoutAnalysis &layout, unsigned) {
  return imageStrides(layout, getInput(), getWeight(), shapeOf(getResult()));
}

Strides ConvolutionBackwardOp::getStrides(LayoutAnalysis &layout,
                                          unsigned result) {
  ArrayRef<int64_t> shape = shapeOf(getResult(result));
  if (shape.size() < 4)
    return Strides(contiguousStrides(shape));
  return imageStrides(layout, getInput(), getWeight(), shape);
}

//===----------------------------------------------------------------------===//
// Derivative
//===----------------------------------------------------------------------===//

BACKWARD(ConvolutionOp) {
  bool mask[] = {needed[0], needed[1], needed.size() > 2 && needed[2]};
  SmallVector<Type> types;
  DenseI64ArrayAttr biasSizes;
  if (Value bias = getBias())
    biasSizes = b.getBuilder().getDenseI64ArrayAttr(shapeOf(bias));
  auto backward = b.createOp<ConvolutionBackwardOp>(
      grads[0], getInput(), getWeight(), biasSizes, getStride(), getPadding(),
      getDilation(), getTransposed(), getOutputPadding(), getGroups(), mask);
  unsigned next = 0;
  for (unsigned i = 0; i < 3; ++i)
    if (mask[i])
      operandGrads[i] = backward->getResult(next++);
  return success();
}
