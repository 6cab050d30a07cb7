//===- Cost.cpp - Work and workspaces of operators --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Workspace sizes are those of torch 2.15, measured with its memory profiler
// on one thread: Rationale.md has the table.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Dropped.h"
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

int64_t aten::tensorBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t bits = tensor.getElementType().getIntOrFloatBitWidth();
  return tensor.getNumElements() * std::max<int64_t>(bits / 8, 1);
}

double aten::touchedBytes(Operation *op) {
  double bytes = 0;
  for (Value operand : op->getOperands())
    bytes += tensorBytes(operand.getType());
  for (Value result : op->getResults())
    bytes += tensorBytes(result.getType());
  return bytes;
}

static double numel(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

Cost aten::defaultCost(Operation *op) {
  Category category = cast<AtenOpInterface>(op).getCategory();
  if (category == Category::View)
    return {};
  double flops = 0;
  if (category != Category::Memory)
    for (Value result : op->getResults())
      flops += numel(result);
  return {flops, touchedBytes(op)};
}

int64_t aten::defaultWorkspaceBytes(Operation *op, Device device) {
  auto category = cast<AtenOpInterface>(op).getCategory();
  if (device != Device::Cpu || isa<ToCopyOp>(op))
    return 0;
  if (category != Category::Pointwise)
    return kernelWorkspaceBytes(op);
  Type element =
      cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  int64_t bytes = 0;
  for (Value operand : op->getOperands()) {
    auto type = cast<RankedTensorType>(operand.getType());
    if (isa<WhereSelfOp>(op) && operand == op->getOperand(0))
      continue; // the condition stays as it is
    if (type.getElementType() != element && !element.isInteger(1))
      bytes += (tensorBytes(type.clone(element)) + 63) / 64 * 64;
  }
  return bytes;
}

double aten::matmulFlops(Value a, Value b) {
  auto left = cast<RankedTensorType>(a.getType());
  auto right = cast<RankedTensorType>(b.getType());
  return 2.0 * left.getDimSize(0) * left.getDimSize(1) * right.getDimSize(1);
}

Cost MmOp::getCost() {
  return {matmulFlops(getSelf(), getMat2()), touchedBytes(*this)};
}

Cost AddmmOp::getCost() {
  return {matmulFlops(getMat1(), getMat2()) + numel(getResult()),
          touchedBytes(*this)};
}

/// Reductions and norms read their input; `perElement` operations for each.
static Cost reductionCost(Operation *op, Value input, double perElement) {
  return {perElement * numel(input), touchedBytes(op)};
}

Cost SumDimOp::getCost() { return reductionCost(*this, getSelf(), 1); }
Cost MeanDimOp::getCost() { return reductionCost(*this, getSelf(), 1); }
Cost RmsNormOp::getCost() { return reductionCost(*this, getSelf(), 4); }
Cost FusedRmsNormOp::getCost() { return reductionCost(*this, getSelf(), 4); }
Cost FusedRmsNormBackwardOp::getCost() {
  return reductionCost(*this, getSelf(), 10);
}
Cost LayerNormOp::getCost() { return reductionCost(*this, getSelf(), 6); }
Cost NativeLayerNormOp::getCost() { return reductionCost(*this, getSelf(), 6); }
Cost NativeLayerNormBackwardOp::getCost() {
  return reductionCost(*this, getSelf(), 14);
}
Cost LogSoftmaxOp::getCost() { return reductionCost(*this, getSelf(), 4); }
Cost LogSoftmaxBackwardDataOp::getCost() {
  return reductionCost(*this, getOutput(), 4);
}

Cost EmbeddingOp::getCost() {
  // Of the table only the rows that are read.
  return {0,
          2.0 * tensorBytes(getType()) + tensorBytes(getIndices().getType())};
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// A forward multiplies queries with keys and weights with values, a backward
/// three and two such products; a causal mask skips half of them.
template <typename OpT> static Cost attentionCost(OpT op, bool forward) {
  auto shape = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  };
  auto q = shape(op.getQuery()), k = shape(op.getKey());
  double scores = static_cast<double>(q[0]) * q[1] * q[2] * k[2] *
                  (op.getIsCausal() ? 0.5 : 1.0);
  double width = (forward ? 1.0 : 3.0) * q[3] +
                 (forward ? 1.0 : 2.0) * shape(op.getValue())[3];
  return {2.0 * scores * width, touchedBytes(op)};
}

Cost ScaledDotProductAttentionOp::getCost() {
  Cost cost = attentionCost(*this, /*forward=*/true);
  auto keys = cast<RankedTensorType>(getKey().getType()).getDimSize(2);
  // The first queries see fewer keys than a window holds.
  if (double window = getWindow(); window > 0 && window < double(keys))
    cost.flops *=
        window * (2 * double(keys) - window) / (double(keys) * double(keys));
  return cost;
}
Cost FlashAttentionForCpuOp::getCost() {
  return attentionCost(*this, /*forward=*/true);
}
Cost FlashAttentionOp::getCost() {
  return attentionCost(*this, /*forward=*/true);
}
Cost EfficientAttentionOp::getCost() {
  return attentionCost(*this, /*forward=*/true);
}
Cost CudnnAttentionOp::getCost() {
  return attentionCost(*this, /*forward=*/true);
}
Cost CudnnAttentionBackwardOp::getCost() {
  return attentionCost(*this, /*forward=*/false);
}
Cost FlashAttentionForCpuBackwardOp::getCost() {
  return attentionCost(*this, /*forward=*/false);
}
Cost FlashAttentionBackwardOp::getCost() {
  return attentionCost(*this, /*forward=*/false);
}
Cost EfficientAttentionBackwardOp::getCost() {
  return attentionCost(*this, /*forward=*/false);
}
Cost EfficientAttentionMaskBackwardOp::getCost() {
  return attentionCost(*this, /*forward=*/false);
}

// The numbers that weights are dropped by are not counted: flash attention
// draws 16 by ten rounds of two products, next to 4 D products and sums of a
// weight.
Cost DroppedFlashAttentionOp::getCost() {
  return attentionCost(*this, /*forward=*/true);
}
Cost DroppedEfficientAttentionOp::getCost() {
  return attentionCost(*this, /*forward=*/true);
}
Cost DroppedFlashAttentionBackwardOp::getCost() {
  return attentionCost(*this, /*forward=*/false);
}
Cost DroppedEfficientAttentionBackwardOp::getCost() {
  return attentionCost(*this, /*forward=*/false);
}

/// The share of all scores that is seen through a window: the first queries
/// see fewer keys than it holds.
static double seenShare(int64_t window, int64_t keys) {
  const auto w = static_cast<double>(std::min(window, keys)),
             n = static_cast<double>(keys);
  return w * (2 * n - w + 1) / (2 * n * n);
}

static Cost windowCost(Operation *op, Value query, Value key, int64_t before,
                       double products) {
  auto q = cast<RankedTensorType>(query.getType());
  const int64_t keys = cast<RankedTensorType>(key.getType()).getDimSize(1);
  const double scores = static_cast<double>(q.getNumElements()) *
                        static_cast<double>(keys) * seenShare(before + 1, keys);
  return {products * 2.0 * scores, touchedBytes(op)};
}
Cost WindowAttentionOp::getCost() {
  return windowCost(*this, getQuery(), getKey(),
                    static_cast<int64_t>(getBefore()), 2);
}
Cost WindowAttentionBackwardOp::getCost() {
  return windowCost(*this, getQuery(), getKey(),
                    static_cast<int64_t>(getBefore()), 5);
}

/// The blocks of the CPU kernel: rows of queries, columns of keys.
static std::pair<int64_t, int64_t> cpuBlocks(Value query, Value key) {
  int64_t rows = cast<RankedTensorType>(query.getType()).getDimSize(2);
  int64_t columns = cast<RankedTensorType>(key.getType()).getDimSize(2);
  int64_t block = rows >= 768 ? 256 : rows >= 192 ? 64 : 32;
  return {std::min(rows, block), std::min<int64_t>(columns, 512)};
}

static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static bool isReduced(Value value) {
  return cast<RankedTensorType>(value.getType())
             .getElementType()
             .getIntOrFloatBitWidth() < 32;
}

int64_t FlashAttentionForCpuOp::getWorkspaceBytes(Device) {
  auto [rows, columns] = cpuBlocks(getQuery(), getKey());
  int64_t dim = cast<RankedTensorType>(getQuery().getType()).getDimSize(3);
  // Scores, row maxima and sums, the output's accumulator; in bf16 and fp16
  // the scores once more, rounded.
  int64_t bytes = aligned(4 * (rows * columns + 2 * rows + rows * dim));
  return isReduced(getQuery()) ? bytes + aligned(2 * rows * columns) : bytes;
}

int64_t FlashAttentionForCpuBackwardOp::getWorkspaceBytes(Device) {
  auto [rows, columns] = cpuBlocks(getQuery(), getKey());
  int64_t bytes = aligned(4 * 2 * rows * columns) + aligned(4 * rows);
  return isReduced(getQuery()) ? bytes + aligned(4 * rows * columns) : bytes;
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// The CPU kernel sums the gradients of weight and bias into one row each, a
/// pair for each thread.
int64_t NativeLayerNormBackwardOp::getWorkspaceBytes(Device device) {
  if (device != Device::Cpu)
    return 0;
  auto weight = cast<RankedTensorType>(getWeight().getType());
  return aligned(2 * tensorBytes(weight));
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

// ATen wraps the scalar in a 0-d tensor of 64 bits and casts it, on the host;
// a mean divides its sum by such a scalar.
#define WRAPPED_SCALAR(OP)                                                     \
  int64_t OP::getWorkspaceBytes(Device) { return 2 * 64; }
WRAPPED_SCALAR(AddScalarOp)
WRAPPED_SCALAR(SubScalarOp)
WRAPPED_SCALAR(RsubScalarOp)
WRAPPED_SCALAR(MulScalarOp)
WRAPPED_SCALAR(DivScalarOp)
WRAPPED_SCALAR(PowScalarOp)
WRAPPED_SCALAR(GtScalarOp)
WRAPPED_SCALAR(LtScalarOp)
WRAPPED_SCALAR(MeanDimOp)
