//===- BuildTower.cpp - A tower among a model's segments ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/BuildTower.h"

#include "frontends/HuggingFace/EncoderWriter.h"

using namespace accel;
using namespace accel::huggingface;
using namespace accel::aten;
using mlir::OpBuilder;
using mlir::RankedTensorType;
using mlir::Value;

/// (embedded tokens [B, S, hidden], ids [B, S], features) -> hidden.
static mlir::func::FuncOp mergedFeatures(OpBuilder &builder, const Tower &tower,
                                         const BuildOptions &options) {
  EncoderWriter f(builder, "MergedFeatures", "model");
  const int64_t batch = options.microBatch, sequence = options.sequenceLength;
  const int64_t rows =
      batch * options.images->perSample * tower.tokens(*options.images);
  RankedTensorType type = f.floats({batch, sequence, tower.outputSize});
  f.input(type);
  f.input(RankedTensorType::get({batch, sequence}, f.i64()));
  f.input(f.floats({rows, tower.outputSize}));
  auto function = f.begin({type});
  // masked_scatter: the tokens of images, in order, get the rows of features.
  Value images = f.op<EqScalarOp>(f.argument(1), tower.imageToken);
  Value number = f.op<CumsumOp>(
      f.op<ToCopyOp>(f.view(images, {batch * sequence}), f.i64()), uint64_t(0));
  number = f.op<ClampOp>(f.op<SubScalarOp>(number, int64_t(1)),
                         builder.getI64IntegerAttr(0),
                         builder.getI64IntegerAttr(rows - 1));
  Value taken = f.op<IndexSelectOp>(f.argument(2), number, uint64_t(0));
  f.end(f.op<WhereSelfOp>(f.op<UnsqueezeOp>(images, uint64_t(2)),
                          f.view(taken, type.getShape()), f.argument(0)));
  return function;
}

ImageReader::ImageReader(OpBuilder &builder, const Tower *tower,
                         const BuildOptions &options) {
  if (!options.images)
    return;
  this->tower = tower->kind == Tower::Kind::Clip
                    ? buildClip(builder, *tower, options)
                    : buildQwen(builder, *tower, options);
  merge = mergedFeatures(builder, *tower, options);
}

llvm::SmallVector<GraphWriter::Input> ImageReader::inputs() const {
  if (!tower)
    return {};
  return {tower->input()};
}

Value ImageReader::read(GraphWriter &graph, Value embedded) {
  if (!tower)
    return embedded;
  Value features = tower->call(graph);
  return graph.call(merge, {embedded, graph.inputIds(), features}, "model")
      .front();
}
