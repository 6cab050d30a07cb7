//===- EncoderWriter.cpp - Layers of encoders as operators ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/EncoderWriter.h"

#include "dialects/Aten/Eager.h"

using namespace accel;
using namespace accel::huggingface;
using namespace accel::aten;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::ValueRange;

void EncoderWriter::declareLinear(llvm::StringRef module, int64_t in,
                                  int64_t out, bool bias) {
  param((module + ".weight").str(), {out, in});
  if (bias)
    param((module + ".bias").str(), {out});
}

void EncoderWriter::declareNorm(llvm::StringRef module, int64_t size) {
  param((module + ".weight").str(), {size});
  param((module + ".bias").str(), {size});
}

Value EncoderWriter::linear(Value rows, llvm::StringRef module) {
  enter(module);
  Value weight = op<TOp>(param((module + ".weight").str()));
  if (Value bias = find((module + ".bias").str()))
    return op<AddmmOp>(bias, rows, weight);
  return op<MmOp>(rows, weight);
}

Value EncoderWriter::norm(Value x, llvm::StringRef module, double eps) {
  enter(module);
  return op<LayerNormOp>(x, param((module + ".weight").str()),
                         param((module + ".bias").str()), number(eps));
}

Value EncoderWriter::lookUp(llvm::StringRef module, Value indices,
                            int64_t padding) {
  enter(module);
  return op<EmbeddingOp>(param((module + ".weight").str()), indices,
                         uint64_t(padding));
}

Value EncoderWriter::marked(Value value, llvm::StringRef attribute,
                            llvm::StringRef how) {
  value.getDefiningOp()->setAttr(
      attribute, how.empty() ? mlir::Attribute(builder.getUnitAttr())
                             : builder.getStringAttr(how));
  return value;
}

Value EncoderWriter::firstRows(llvm::StringRef module, int64_t count,
                               int64_t held, int64_t used, int64_t tokens) {
  enter(module);
  Value rows = slice(param((module + ".weight").str()), 0, 0, count);
  rows.getDefiningOp()->setAttr(
      lookedUpAttr, builder.getDenseI64ArrayAttr({held, used, tokens}));
  return rows;
}

/// [batch * count, heads * headDim] -> [batch, heads, count, headDim].
Value EncoderWriter::splitHeads(const AttentionShape &s, Value rows,
                                int64_t count) {
  Value heads = view(rows, {s.batch, count, s.heads, s.headDim});
  return op<TransposeIntOp>(heads, uint64_t(1), uint64_t(2));
}

Value EncoderWriter::attention(const AttentionShape &s, Value query, Value key,
                               Value value, Value mask) {
  Value values = splitHeads(s, value, s.keys);
  Value keys = splitHeads(s, key, s.keys);
  Value mixed = op<ScaledDotProductAttentionOp>(
      splitHeads(s, query, s.rows), keys, values, mask, s.causal,
      number(s.scale), uint64_t(0), number(0), /*by_parts=*/unit(false),
      number(s.dropped), keyFor(s.dropped));
  if (s.byHeads)
    marked(mixed, byHeadsAttr);
  if (s.zeroBias)
    marked(mixed, maskedAttr, maskBias);
  mixed = op<TransposeIntOp>(mixed, uint64_t(1), uint64_t(2));
  return view(mixed, {s.batch * s.rows, s.heads * s.headDim});
}

Value EncoderWriter::biasedAttention(const AttentionShape &s, Value query,
                                     Value key, Value value, Value bias) {
  const int64_t matrices = s.batch * s.heads;
  auto matrix = [&](Value rows, int64_t count) {
    return view(marked(contiguous(splitHeads(s, rows, count)), mathAttr),
                {matrices, count, s.headDim});
  };
  Value q = matrix(query, s.rows);
  if (s.scale != 1)
    q = op<MulScalarOp>(q, s.scale);
  Value k = op<TransposeIntOp>(matrix(key, s.keys), uint64_t(1), uint64_t(2));
  Value scores = view(op<BmmOp>(q, k), {s.batch, s.heads, s.rows, s.keys});
  scores = op<AddTensorOp>(scores, bias);
  if (s.causal)
    marked(scores, biasedAttr, biasOrdered);
  scores = op<SoftmaxOp>(scores, uint64_t(3));
  scores = dropout(scores, s.dropped);
  Value mixed = op<BmmOp>(view(scores, {matrices, s.rows, s.keys}),
                          matrix(value, s.keys));
  mixed = marked(view(mixed, {s.batch, s.heads, s.rows, s.headDim}), mathAttr);
  mixed = contiguous(op<TransposeIntOp>(mixed, uint64_t(1), uint64_t(2)));
  return view(mixed, {s.batch * s.rows, s.heads * s.headDim});
}

Value EncoderWriter::firstToken(Value x) {
  auto size = shape(x);
  return view(slice(x, 1, 0, 1), {size[0], size[2]});
}

Value EncoderWriter::shiftRight(Value labels, int64_t start, int64_t padding) {
  const int64_t length = shape(labels)[1];
  auto filled = [&](Value like, int64_t id) {
    return op<AddScalarOp>(op<ZerosLikeOp>(like), id);
  };
  Value ids = filled(slice(labels, 1, 0, 1), start);
  if (length > 1)
    ids = op<CatOp>(ValueRange{ids, slice(labels, 1, 0, length - 1)},
                    uint64_t(1));
  Value ignored = op<LtScalarOp>(ids, int64_t(0));
  return op<WhereSelfOp>(ignored, filled(ids, padding), ids);
}

Value EncoderWriter::plainCrossEntropy(Value logits, Value labels) {
  Value scores = marked(op<ToCopyOp>(logits, f32()), ownTypeAttr);
  Value flat = view(labels, {shape(logits).front()});
  Value logs = marked(op<LogSoftmaxOp>(scores, uint64_t(1)), ownTypeAttr);
  return op<NllLossForwardOp>(logs, flat, uint64_t(-100));
}

Value EncoderWriter::mean(Value x) {
  llvm::SmallVector<int64_t> all;
  for (size_t i = 0; i < shape(x).size(); ++i)
    all.push_back(int64_t(i));
  return op<MeanDimOp>(x, all, false);
}

/// -(y log s(x) + (1 - y) log s(-x)), of log_softmax of (x, 0).
Value EncoderWriter::logistic(Value logits, Value labels) {
  const uint64_t last = shape(logits).size();
  Value x = op<UnsqueezeOp>(logits, last);
  Value pair = op<CatOp>(ValueRange{x, op<ZerosLikeOp>(x)}, last);
  Value scores = op<LogSoftmaxOp>(pair, last);
  Value yes = view(slice(scores, last, 0, 1), shape(logits));
  Value no = view(slice(scores, last, 1, 2), shape(logits));
  Value hit = op<MulTensorOp>(yes, labels);
  Value miss = op<MulTensorOp>(no, op<RsubScalarOp>(labels, 1.0));
  return op<NegOp>(mean(op<AddTensorOp>(hit, miss)));
}

Value EncoderWriter::classify(Value logits, Value labels,
                              const ClassifierConfig &classifier) {
  if (classifier.problem == Problem::Single)
    return plainCrossEntropy(logits, labels);
  if (classifier.problem == Problem::Multiple)
    return logistic(logits, labels);
  Value off = op<SubTensorOp>(view(logits, shape(labels)), labels);
  return mean(op<PowTensorScalarOp>(off, 2.0));
}

RankedTensorType
accel::huggingface::labelsType(mlir::OpBuilder &builder, int64_t batch,
                               const ClassifierConfig &classifier) {
  if (classifier.problem == Problem::Single)
    return RankedTensorType::get({batch}, builder.getI64Type());
  if (classifier.problem == Problem::Regression && classifier.labels == 1)
    return RankedTensorType::get({batch}, builder.getF32Type());
  return RankedTensorType::get({batch, classifier.labels},
                               builder.getF32Type());
}

mlir::func::FuncOp accel::huggingface::addedMask(mlir::OpBuilder &builder,
                                                 llvm::StringRef path,
                                                 int64_t batch, int64_t keys) {
  EncoderWriter f(builder, "AttentionMask", path);
  f.input(RankedTensorType::get({batch, keys}, builder.getI64Type()));
  auto function = f.begin({f.floats({batch, 1, 1, keys})});
  Value mask = f.op<ToCopyOp>(f.argument(0), f.f32());
  f.end(f.view(f.added(mask), {batch, 1, 1, keys}));
  return function;
}
