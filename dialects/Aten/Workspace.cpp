//===- Workspace.cpp - What CPU kernels allocate inside ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Measured with torch 2.15's memory profiler on one thread.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

static int64_t bytesOf(Value value) {
  return alignedBytes(tensorBytes(value.getType()));
}

/// A tensor in oneDNN's blocked format: channels, and a weight's outputs, in
/// blocks of 16.
static int64_t blockedBytes(Value value, bool weight) {
  SmallVector<int64_t> shape(shapeOf(value));
  for (size_t i = weight ? 0 : 1; i < 2; ++i)
    shape[i] = (shape[i] + 15) / 16 * 16;
  return alignedBytes(tensorBytes(tensorType(value).clone(shape)));
}

/// Indices of 32 bits are widened.
static int64_t widenedBytes(ValueRange indices) {
  int64_t bytes = 0;
  for (Value index : indices)
    if (!elementOf(index).isInteger(64))
      bytes += alignedBytes(8 * tensorType(index).getNumElements());
  return bytes;
}

/// Truth values of each element.
static int64_t truthBytes(Value value) {
  int64_t width = elementOf(value).getIntOrFloatBitWidth();
  return width <= 8 ? 0 : alignedBytes(tensorType(value).getNumElements());
}

int64_t aten::kernelWorkspaceBytes(Operation *op) {
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case<AnyDimsOp, AllDimsOp>(
          [](auto reduce) { return truthBytes(reduce.getSelf()); })
      .Case([](LogsumexpOp reduce) {
        // x less its maximum, and maxima and sums twice.
        return 2 * bytesOf(reduce.getSelf()) + 4 * bytesOf(reduce.getResult());
      })
      .Case<IndexTensorOp, IndexPutOp>(
          [](auto index) { return widenedBytes(index.getIndices()); })
      .Case([](ConvolutionOp conv) {
        return blockedBytes(conv.getInput(), false) +
               blockedBytes(conv.getWeight(), true) +
               blockedBytes(conv.getResult(), false);
      })
      .Case([](ConvolutionBackwardOp conv) {
        return 2 * (blockedBytes(conv.getInput(), false) +
                    blockedBytes(conv.getWeight(), true)) +
               blockedBytes(conv.getGradOutput(), false);
      })
      .Case([](ProdDimIntOp reduce) {
        // Factors of another type are cast.
        Type type = elementOf(reduce.getResult());
        return elementOf(reduce.getSelf()) == type
                   ? 0
                   : alignedBytes(
                         tensorBytes(tensorType(reduce.getSelf()).clone(type)));
      })
      .Case([](UpsampleBilinear2dOp resize) {
        return bytesOf(resize.getSelf()) + bytesOf(resize.getOutput());
      })
      .Case<BatchNormNoStatsOp, BatchNormNoTrainingOp>(
          [](auto norm) { return 3 * bytesOf(norm.getWeight()); })
      .Case<BatchNormBackwardOp, BatchNormEvalBackwardOp>(
          [](auto norm) { return bytesOf(norm.getInput()); })
      .Case([](NativeGroupNormBackwardOp norm) {
        int64_t sums = norm.getN() * norm.getC();
        int64_t size = elementOf(norm.getInput()).getIntOrFloatBitWidth() / 8;
        return 2 * alignedBytes(sums * size);
      })
      .Default([](Operation *) { return 0; });
}
