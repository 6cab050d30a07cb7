//===- ImageTypes.cpp - Types of channel norms, pools, resizing -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

//===----------------------------------------------------------------------===//
// Norms over channels
//===----------------------------------------------------------------------===//

/// Fails unless x is [N, C, ...] with elements, and each of `channels` [C] and
/// of its type.
static LogicalResult checkChannels(std::optional<Location> loc,
                                   RankedTensorType input,
                                   ArrayRef<Value> channels) {
  if (input.getRank() < 2 || input.getNumElements() == 0 ||
      input.getElementType().getIntOrFloatBitWidth() < 32)
    return emitOptionalError(
        loc, "expects x as [N, C, ...] in 32 or 64 bits, got ", input);
  Type expected = input.clone(ArrayRef<int64_t>(input.getDimSize(1)));
  for (Value value : channels)
    if (value.getType() != expected)
      return emitOptionalError(loc, "expects ", expected,
                               " for the channels of ", input, ", got ",
                               value.getType());
  return success();
}

/// One element for each channel says nothing of a variance.
static LogicalResult checkTraining(std::optional<Location> loc,
                                   RankedTensorType input) {
  if (input.getNumElements() == input.getDimSize(1))
    return emitOptionalError(loc,
                             "expects more than one element for each "
                             "channel, got ",
                             input);
  return success();
}

INFER(BatchNormFunctionalOp) {
  RankedTensorType input = tensorType(adaptor.getInput());
  if (failed(
          checkChannels(loc, input,
                        {adaptor.getWeight(), adaptor.getBias(),
                         adaptor.getRunningMean(), adaptor.getRunningVar()})) ||
      failed(checkTraining(loc, input)))
    return failure();
  Type channels = adaptor.getWeight().getType();
  results.append({input, channels, channels, channels, channels});
  return success();
}

INFER(BatchNormNoStatsOp) {
  RankedTensorType input = tensorType(adaptor.getInput());
  if (failed(checkChannels(loc, input,
                           {adaptor.getWeight(), adaptor.getBias()})) ||
      failed(checkTraining(loc, input)))
    return failure();
  Type channels = adaptor.getWeight().getType();
  results.append({input, channels, channels});
  return success();
}

INFER(BatchNormNoTrainingOp) {
  RankedTensorType input = tensorType(adaptor.getInput());
  if (failed(
          checkChannels(loc, input,
                        {adaptor.getWeight(), adaptor.getBias(),
                         adaptor.getRunningMean(), adaptor.getRunningVar()})))
    return failure();
  results.push_back(input);
  return success();
}

/// The results that a mask over x, weight and bias asks for.
static LogicalResult maskedResults(std::optional<Location> loc,
                                   ArrayRef<bool> mask, Type input,
                                   Type channels,
                                   SmallVectorImpl<Type> &results) {
  if (mask.size() != 3)
    return emitOptionalError(loc, "output mask has ", mask.size(),
                             " entries, expected 3");
  if (mask[0])
    results.push_back(input);
  for (int i : {1, 2})
    if (mask[i])
      results.push_back(channels);
  return success();
}

template <typename Adaptor>
static LogicalResult inferNormBackward(std::optional<Location> loc,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &results) {
  RankedTensorType input = tensorType(adaptor.getInput());
  if (failed(checkChannels(
          loc, input,
          {adaptor.getWeight(), adaptor.getMean(), adaptor.getScale()})))
    return failure();
  if (adaptor.getGradOut().getType() != input)
    return emitOptionalError(loc, "gradient ", adaptor.getGradOut().getType(),
                             " is not of the input's type ", input);
  return maskedResults(loc, adaptor.getOutputMask(), input,
                       adaptor.getWeight().getType(), results);
}
INFER(BatchNormBackwardOp) { return inferNormBackward(loc, adaptor, results); }
INFER(BatchNormEvalBackwardOp) {
  return inferNormBackward(loc, adaptor, results);
}

/// Fails unless x is [N, C, ...] with HxW elements behind, in whole groups.
template <typename Adaptor>
static LogicalResult checkGroups(std::optional<Location> loc, Adaptor adaptor) {
  RankedTensorType input = tensorType(adaptor.getInput());
  int64_t n = adaptor.getN(), c = adaptor.getC(), rest = adaptor.getHxW();
  int64_t groups = adaptor.getGroup();
  if (input.getRank() < 2 || input.getDimSize(0) != n ||
      input.getDimSize(1) != c || input.getNumElements() == 0 ||
      input.getNumElements() != n * c * rest)
    return emitOptionalError(loc, "N, C and HxW do not fit ", input);
  if (groups < 1 || c % groups)
    return emitOptionalError(loc, groups, " groups do not divide ", c,
                             " channels");
  if (adaptor.getWeight().getType() != input.clone(ArrayRef<int64_t>(c)))
    return emitOptionalError(loc, "weight ", adaptor.getWeight().getType(),
                             " does not fit the channels of ", input);
  return success();
}

INFER(NativeGroupNormOp) {
  if (failed(checkGroups(loc, adaptor)))
    return failure();
  if (adaptor.getBias().getType() != adaptor.getWeight().getType())
    return emitOptionalError(loc, "bias ", adaptor.getBias().getType(),
                             " is not of the weight's type ",
                             adaptor.getWeight().getType());
  RankedTensorType input = tensorType(adaptor.getInput());
  Type stats = input.clone({static_cast<int64_t>(adaptor.getN()),
                            static_cast<int64_t>(adaptor.getGroup())});
  results.append({input, stats, stats});
  return success();
}

INFER(NativeGroupNormBackwardOp) {
  if (failed(checkGroups(loc, adaptor)))
    return failure();
  RankedTensorType input = tensorType(adaptor.getInput());
  Type stats = input.clone({static_cast<int64_t>(adaptor.getN()),
                            static_cast<int64_t>(adaptor.getGroup())});
  if (adaptor.getGradOut().getType() != input ||
      adaptor.getMean().getType() != stats ||
      adaptor.getRstd().getType() != stats)
    return emitOptionalError(loc, "gradient or statistics do not fit ", input);
  return maskedResults(loc, adaptor.getOutputMask(), input,
                       adaptor.getWeight().getType(), results);
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

namespace {

struct Pool {
  ArrayRef<int64_t> kernel, stride, padding;
  int64_t dilation[2] = {1, 1};
  bool ceil = false;
};

} // namespace

/// The size of a pooled dimension (ATen's pooling_output_shape): with `ceil`
/// the last window may start inside of x or of the padding before it, not
/// behind.
static int64_t pooledSize(int64_t size, const Pool &pool, int i) {
  int64_t stride = pool.stride[i], pad = pool.padding[i];
  int64_t room = size + 2 * pad - pool.dilation[i] * (pool.kernel[i] - 1) - 1;
  if (room < 0 && !pool.ceil)
    return 0;
  int64_t result = (room + (pool.ceil ? stride - 1 : 0)) / stride + 1;
  if (pool.ceil && (result - 1) * stride >= size + pad)
    --result;
  return result;
}

static FailureOr<RankedTensorType>
pooled(std::optional<Location> loc, RankedTensorType input, const Pool &pool) {
  auto fail = [&](auto &&...parts) -> FailureOr<RankedTensorType> {
    (void)emitOptionalError(loc, parts...);
    return failure();
  };
  if (input.getRank() != 4 ||
      llvm::is_contained(input.getShape().drop_front(), 0))
    return fail("expects x as [N, C, H, W], got ", input);
  auto pairOf = [](ArrayRef<int64_t> list, int64_t least) {
    return list.size() == 2 && list[0] >= least && list[1] >= least;
  };
  if (!pairOf(pool.kernel, 1) || !pairOf(pool.stride, 1) ||
      !pairOf(pool.dilation, 1) || !pairOf(pool.padding, 0))
    return fail("kernel, stride and dilation are two positive numbers, padding "
                "two that are not negative");
  SmallVector<int64_t> shape(input.getShape());
  for (int i : {0, 1}) {
    if (2 * pool.padding[i] > pool.kernel[i])
      return fail("padding ", pool.padding[i],
                  " is more than half of the kernel ", pool.kernel[i]);
    shape[i + 2] = pooledSize(shape[i + 2], pool, i);
    if (shape[i + 2] < 1)
      return fail("the windows are larger than ", input);
  }
  return input.clone(shape);
}

template <typename Adaptor> static Pool poolOf(Adaptor adaptor) {
  return {adaptor.getKernelSize(),
          adaptor.getStride(),
          adaptor.getPadding(),
          {1, 1},
          adaptor.getCeilMode()};
}
template <typename Adaptor>
static FailureOr<RankedTensorType> maxPooled(std::optional<Location> loc,
                                             Adaptor adaptor) {
  Pool pool = poolOf(adaptor);
  if (adaptor.getDilation().size() != 2) {
    (void)emitOptionalError(loc, "expects two dilations");
    return failure();
  }
  llvm::copy(adaptor.getDilation(), pool.dilation);
  return pooled(loc, tensorType(adaptor.getSelf()), pool);
}

INFER(MaxPool2dOp) {
  auto type = maxPooled(loc, adaptor);
  if (failed(type))
    return failure();
  results.append({*type, type->clone(IntegerType::get(context, 64))});
  return success();
}

template <typename Adaptor>
static LogicalResult checkGradient(std::optional<Location> loc, Adaptor adaptor,
                                   Type output) {
  if (adaptor.getGradOutput().getType() == output)
    return success();
  return emitOptionalError(loc, "gradient ", adaptor.getGradOutput().getType(),
                           " is not of the output's type ", output);
}

INFER(MaxPool2dBackwardOp) {
  auto type = maxPooled(loc, adaptor);
  if (failed(type) || failed(checkGradient(loc, adaptor, *type)))
    return failure();
  if (adaptor.getIndices().getType() !=
      type->clone(IntegerType::get(context, 64)))
    return emitOptionalError(loc, "indices ", adaptor.getIndices().getType(),
                             " do not fit the output ", *type);
  results.push_back(adaptor.getSelf().getType());
  return success();
}

INFER(AvgPool2dOp) {
  auto type = pooled(loc, tensorType(adaptor.getSelf()), poolOf(adaptor));
  if (failed(type))
    return failure();
  results.push_back(*type);
  return success();
}

INFER(AvgPool2dBackwardOp) {
  auto type = pooled(loc, tensorType(adaptor.getSelf()), poolOf(adaptor));
  if (failed(type) || failed(checkGradient(loc, adaptor, *type)))
    return failure();
  results.push_back(adaptor.getSelf().getType());
  return success();
}

/// x [N, C, H, W] in another height and width.
static LogicalResult inferResized(std::optional<Location> loc,
                                  RankedTensorType self, ArrayRef<int64_t> size,
                                  SmallVectorImpl<Type> &results) {
  if (self.getRank() != 4 ||
      llvm::is_contained(self.getShape().drop_front(), 0))
    return emitOptionalError(loc, "expects x as [N, C, H, W], got ", self);
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    return emitOptionalError(loc, "expects two positive sizes");
  results.push_back(
      self.clone({self.getDimSize(0), self.getDimSize(1), size[0], size[1]}));
  return success();
}

INFER(AdaptiveAvgPool2dOp) {
  return inferResized(loc, tensorType(adaptor.getSelf()),
                      adaptor.getOutputSize(), results);
}
INFER(UpsampleNearest2dOp) {
  return inferResized(loc, tensorType(adaptor.getSelf()),
                      adaptor.getOutputSize(), results);
}

INFER(UpsampleBilinear2dOp) {
  return inferResized(loc, tensorType(adaptor.getSelf()),
                      adaptor.getOutputSize(), results);
}

INFER(AdaptiveAvgPool2dBackwardOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType grad = tensorType(adaptor.getGradOutput());
  SmallVector<Type> output;
  if (grad.getRank() != 4 ||
      failed(inferResized(loc, self, grad.getShape().take_back(2), output)))
    return emitOptionalError(loc, "gradient ", grad, " does not fit ", self);
  if (output[0] != grad)
    return emitOptionalError(loc, "gradient ", grad, " does not fit ", self);
  results.push_back(self);
  return success();
}

template <typename Adaptor>
static LogicalResult inferUpsampleGrad(std::optional<Location> loc,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &results) {
  RankedTensorType grad = tensorType(adaptor.getGradOutput());
  ArrayRef<int64_t> shape = adaptor.getInputSize();
  SmallVector<Type> output;
  if (shape.size() != 4 || llvm::any_of(shape, [](int64_t s) { return s < 0; }))
    return emitOptionalError(loc, "expects four input sizes");
  if (failed(inferResized(loc, grad.clone(shape), adaptor.getOutputSize(),
                          output)))
    return failure();
  if (output[0] != grad)
    return emitOptionalError(loc, "gradient ", grad,
                             " is not of the output's type ", output[0]);
  results.push_back(grad.clone(shape));
  return success();
}
INFER(UpsampleNearest2dBackwardOp) {
  return inferUpsampleGrad(loc, adaptor, results);
}
INFER(UpsampleBilinear2dBackwardOp) {
  return inferUpsampleGrad(loc, adaptor, results);
}
