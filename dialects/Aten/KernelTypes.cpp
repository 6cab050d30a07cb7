//===- KernelTypes.cpp - Result types of kernels ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

//===----------------------------------------------------------------------===//
// Norms and loss
//===----------------------------------------------------------------------===//

static LogicalResult checkNorm(std::optional<Location> loc,
                               RankedTensorType self, RankedTensorType weight) {
  if (self.getRank() == 0 || weight.getRank() != 1 ||
      weight.getDimSize(0) != self.getShape().back())
    return emitOptionalError(loc, "weight ", weight,
                             " does not fit the last dimension of ", self);
  return success();
}

INFER(RmsNormOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType weight = tensorType(adaptor.getWeight());
  if (failed(checkNorm(loc, self, weight)))
    return failure();
  results.push_back(
      adaptor.getWide() ? self : self.clone(promoteTypes({self, weight})));
  return success();
}

INFER(FusedRmsNormOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType weight = tensorType(adaptor.getWeight());
  if (failed(checkNorm(loc, self, weight)))
    return failure();
  if (self.getElementType() != weight.getElementType())
    return emitOptionalError(loc, "expects one element type, got ", self,
                             " and ", weight);
  if (adaptor.getNormalizedShape() != weight.getShape())
    return emitOptionalError(loc, "normalized shape is not the weight's");
  SmallVector<int64_t> stats(self.getShape());
  stats.back() = 1;
  results.push_back(self);
  results.push_back(RankedTensorType::get(stats, Float32Type::get(context)));
  return success();
}

INFER(FusedRmsNormBackwardOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType weight = tensorType(adaptor.getWeight());
  if (failed(checkNorm(loc, self, weight)))
    return failure();
  if (adaptor.getGradOut().getType() != self)
    return emitOptionalError(loc, "gradient ", adaptor.getGradOut().getType(),
                             " is not of the input's type ", self);
  results.append({self, weight});
  return success();
}

static LogicalResult checkLayerNorm(std::optional<Location> loc,
                                    RankedTensorType self, Value weight,
                                    Value bias) {
  if (failed(checkNorm(loc, self, tensorType(weight))))
    return failure();
  if (bias && bias.getType() != weight.getType())
    return emitOptionalError(loc, "bias ", bias.getType(),
                             " is not of the weight's type ", weight.getType());
  return success();
}

INFER(LayerNormOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkLayerNorm(loc, self, adaptor.getWeight(), adaptor.getBias())))
    return failure();
  results.push_back(self);
  return success();
}

INFER(NativeLayerNormOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkLayerNorm(loc, self, adaptor.getWeight(), adaptor.getBias())))
    return failure();
  RankedTensorType weight = tensorType(adaptor.getWeight());
  if (self.getElementType() != weight.getElementType())
    return emitOptionalError(loc, "expects one element type, got ", self,
                             " and ", weight);
  if (adaptor.getNormalizedShape() != weight.getShape())
    return emitOptionalError(loc, "normalized shape is not the weight's");
  SmallVector<int64_t> shape(self.getShape());
  shape.back() = 1;
  auto stats = RankedTensorType::get(shape, adaptor.getStats());
  results.append({self, stats, stats});
  return success();
}

INFER(NativeLayerNormBackwardOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkLayerNorm(loc, self, adaptor.getWeight(), adaptor.getBias())))
    return failure();
  if (adaptor.getGradOut().getType() != self)
    return emitOptionalError(loc, "gradient ", adaptor.getGradOut().getType(),
                             " is not of the input's type ", self);
  bool bias = bool(adaptor.getBias());
  if (adaptor.getOutputMask() != ArrayRef<bool>{true, true, bias})
    return emitOptionalError(loc, "output mask does not fit the operands");
  results.append({self, adaptor.getWeight().getType()});
  if (bias)
    results.push_back(adaptor.getBias().getType());
  return success();
}

LogicalResult GeluOp::verify() {
  if (getApproximate() == "none" || getApproximate() == "tanh")
    return success();
  return emitOpError("approximates by 'none' or 'tanh', not '")
         << getApproximate() << "'";
}

LogicalResult LogSoftmaxOp::verify() {
  int64_t rank = cast<RankedTensorType>(getType()).getRank();
  int64_t dim = getDim();
  if (dim < 0 || dim >= rank)
    return emitOpError("dimension ")
           << dim << " is outside of a tensor of " << rank << " dimensions";
  return success();
}

static LogicalResult checkTargets(std::optional<Location> loc,
                                  RankedTensorType self,
                                  RankedTensorType target) {
  if (self.getRank() != 2 || target.getRank() != 1 ||
      target.getDimSize(0) != self.getDimSize(0))
    return emitOptionalError(loc, "targets ", target,
                             " do not fit the rows of ", self);
  return success();
}

INFER(NllLossForwardOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkTargets(loc, self, tensorType(adaptor.getTarget()))))
    return failure();
  auto scalar = RankedTensorType::get({}, self.getElementType());
  results.append({scalar, scalar});
  return success();
}

LogicalResult NllLossForwardOp::verify() {
  if (getReduction() == 1 || getReduction() == 2)
    return success();
  return emitOpError("reduces to the mean (1) or the sum (2), not ")
         << getReduction();
}

INFER(NllLossBackwardOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkTargets(loc, self, tensorType(adaptor.getTarget()))))
    return failure();
  results.push_back(self);
  return success();
}
