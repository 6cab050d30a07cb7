//===- SelectKernels.cpp - Kernels for attention and norms ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/SelectKernels.h"

#include "passes/Kernels/EagerForm.h"
#include "passes/Kernels/MissingKernels.h"
#include "passes/Kernels/SelectAttention.h"
#include "passes/Kernels/TrainerForm.h"

#include "dialects/Aten/Eager.h"
#include "dialects/Aten/Fused.h"
#include "dialects/Aten/Types.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Passes.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_SELECTKERNELSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;
using accel::aten::tensorType;

/// `value` in the element type `type`.
static Value castTo(OpBuilder &b, Location loc, Value value, Type type) {
  if (tensorType(value).getElementType() == type)
    return value;
  return aten::ToCopyOp::create(b, loc, value, type);
}

static Value selectNorm(OpBuilder &b, aten::Device device, bool eager,
                        aten::RmsNormOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = tensorType(op.getSelf());
  RankedTensorType weight = tensorType(op.getWeight());
  bool wide = op.getWide(), shifted = op.getShifted();
  // 1 + weight would lose bits in less than fp32, which the kernel reads.
  if (device == aten::Device::Cuda && !eager && !shifted &&
      type.getElementType() == weight.getElementType())
    return aten::FusedRmsNormOp::create(b, loc, op.getSelf(), op.getWeight(),
                                        weight.getShape(), op.getEps())
        .getOutput();
  Value x = castTo(b, loc, op.getSelf(), b.getF32Type());
  Value square = aten::PowTensorScalarOp::create(b, loc, x, int64_t(2));
  Value mean = aten::MeanDimOp::create(
      b, loc, square, ArrayRef<int64_t>{type.getRank() - 1}, true);
  Value withEps =
      aten::AddScalarOp::create(b, loc, mean, op.getEps().convertToDouble());
  Value rstd = aten::RsqrtOp::create(b, loc, withEps);
  const bool plain = eager && op->hasAttr(aten::plainFactorAttr);
  Value normed =
      aten::MulTensorOp::create(b, loc, plain ? op.getSelf() : x, rstd);
  Value scale = op.getWeight();
  if (shifted) {
    scale = castTo(b, loc, scale, b.getF32Type());
    scale = aten::AddScalarOp::create(b, loc, scale, 1.0);
  }
  if (wide) {
    Value product = aten::MulTensorOp::create(b, loc, normed, scale);
    return castTo(b, loc, product, type.getElementType());
  }
  normed = castTo(b, loc, normed, type.getElementType());
  return aten::MulTensorOp::create(b, loc, scale, normed);
}

static Value selectLayerNorm(OpBuilder &b, aten::Device device,
                             aten::LayerNormOp op) {
  RankedTensorType type = tensorType(op.getSelf());
  Type stats =
      device == aten::Device::Cuda ? b.getF32Type() : type.getElementType();
  return aten::NativeLayerNormOp::create(
             b, op.getLoc(), op.getSelf(), op.getWeight(), op.getBias(),
             tensorType(op.getWeight()).getShape(), op.getEps(), stats)
      .getOutput();
}

/// Grouped matmuls want rows of a multiple of 16 bytes on every device, in
/// the forward and, with these sizes, in the backward.
static LogicalResult checkGrouped(func::FuncOp function) {
  constexpr int64_t bits = 8 * 16;
  auto result = function.walk([&](aten::GroupedMmOp op) {
    RankedTensorType mat2 = tensorType(op.getMat2());
    if (mat2.getRank() != 3)
      return WalkResult::advance();
    Type element = mat2.getElementType();
    const int64_t multiple = bits / element.getIntOrFloatBitWidth();
    for (int64_t size : mat2.getShape().drop_front())
      if (size % multiple) {
        op.emitOpError("has experts' matrices of ")
            << mat2.getDimSize(1) << " x " << mat2.getDimSize(2) << ", and in "
            << element << " both sizes must be multiples of " << multiple;
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Kernels of libraries that other executors call (AtenFused.td). Of jobs the
/// driver says so first, at the model's line.
static LogicalResult checkExecutable(func::FuncOp function) {
  auto result = function.walk([&](Operation *op) {
    const char *why = isa<aten::Mamba2MixerOp>(op)      ? noScanKernel
                      : isa<aten::GatedDeltaRuleOp>(op) ? noDeltaKernel
                                                        : nullptr;
    if (!why)
      return WalkResult::advance();
    emitError(op->getLoc(), why) << " [not-supported]";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Integers that are copies in floating point for CPUs, whose kernel counts no
/// others, are counted themselves: deterministic algorithms on CUDA count
/// nothing else. The counts are the same numbers.
static void countIntegers(func::FuncOp function) {
  SmallVector<aten::HistcOp> ops;
  function.walk([&](aten::HistcOp op) { ops.push_back(op); });
  for (aten::HistcOp op : ops) {
    auto copy = op.getSelf().getDefiningOp<aten::ToCopyOp>();
    if (!copy ||
        !tensorType(copy.getSelf()).getElementType().isSignlessInteger() ||
        tensorType(copy.getSelf()).getElementType().isInteger(1))
      continue;
    OpBuilder b(op);
    Value counts = aten::HistcOp::create(
        b, op.getLoc(), copy.getSelf(), op.getBins(), op.getMin(), op.getMax());
    op.getResult().replaceAllUsesWith(castTo(
        b, op.getLoc(), counts, tensorType(op.getResult()).getElementType()));
    op->erase();
    if (copy->use_empty())
      copy->erase();
  }
}

/// PyTorch's own, which keeps a mask: of one byte an element in CUDA's kernel,
/// in the dtype of the input on CPUs.
static Value selectDropout(OpBuilder &b, aten::Device device,
                           aten::DropoutOp op) {
  Type mask = device == aten::Device::Cuda
                  ? Type(b.getI1Type())
                  : tensorType(op.getSelf()).getElementType();
  return aten::NativeDropoutOp::create(b, op.getLoc(), op.getSelf(), op.getP(),
                                       mask)
      .getResult();
}

void accel::selectKernels(func::FuncOp function, aten::Device device,
                          bool eager, const frameworks::Kernels &kernels) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (isa<aten::ScaledDotProductAttentionOp, aten::RmsNormOp,
            aten::LayerNormOp>(op) ||
        (eager && isa<aten::DropoutOp>(op)))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    OpBuilder b(op);
    Value result =
        isa<aten::RmsNormOp>(op)
            ? selectNorm(b, device, eager, cast<aten::RmsNormOp>(op))
        : isa<aten::LayerNormOp>(op)
            ? selectLayerNorm(b, device, cast<aten::LayerNormOp>(op))
        : isa<aten::DropoutOp>(op)
            ? selectDropout(b, device, cast<aten::DropoutOp>(op))
            : selectAttention(b, device, eager, kernels,
                              cast<aten::ScaledDotProductAttentionOp>(op));
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
}

namespace {

struct SelectKernelsPass
    : accel::impl::SelectKernelsPassBase<SelectKernelsPass> {
  using Base::Base;

  void runOnOperation() override {
    std::string name = device;
    if (name.empty())
      if (auto job = sharding::findOnly<sharding::JobOp>(getOperation()))
        name = job.getDevice().str();
    if (name != "cpu" && name != "cuda") {
      getOperation().emitError("select-kernels needs a device, cpu or cuda")
          << (name.empty() ? "" : ", not '" + name + "'");
      return signalPassFailure();
    }
    const bool asModules = eager || frameworkOf(getOperation()).eager();
    const frameworks::Kernels kernels = kernelsOf(getOperation());
    const bool trainer = asModules && !kernels.transformers;
    if (asModules && !trainer &&
        failed(toEagerForm(getOperation(), name == "cpu")))
      return signalPassFailure();
    const bool replaced = trainer || kernels.fusedGate ||
                          kernels.norm != frameworks::NormKernel::Written ||
                          kernels.loss != frameworks::LossKernel::Wide;
    const bool counts =
        !asModules && name == "cuda" && isDeterministic(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (failed(checkGrouped(function)) ||
          (!asModules && failed(checkExecutable(function))))
        return signalPassFailure();
      if (asModules && replaced && !function.isExternal())
        toTrainerForm(function, kernels);
      if (counts)
        countIntegers(function);
      selectKernels(function,
                    name == "cpu" ? aten::Device::Cpu : aten::Device::Cuda,
                    asModules, kernels);
      if (asModules)
        function.walk([&](aten::MulTensorOp op) {
          op->setAttr(aten::autogradOrderAttr, UnitAttr::get(&getContext()));
        });
    }
  }
};

} // namespace
