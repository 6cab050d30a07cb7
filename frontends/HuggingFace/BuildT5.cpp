//===- BuildT5.cpp - Segments and graph of T5 -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Eager.h"
#include "frontends/HuggingFace/Activate.h"
#include "frontends/HuggingFace/BuildModel.h"
#include "frontends/HuggingFace/EncoderWriter.h"

#include <cmath>

using namespace accel;
using namespace accel::huggingface;
using namespace accel::aten;
using mlir::OpBuilder;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::ValueRange;

namespace {

class T5Forward {
public:
  T5Forward(OpBuilder &builder, const T5Config &config,
            const BuildOptions &options)
      : builder(builder), config(config), batch(options.microBatch),
        source(options.sequenceLength),
        target(options.targetLength ? options.targetLength
                                    : options.sequenceLength),
        hidden(config.hiddenSize),
        masked(options.inputs.count("attention_mask")) {}

  RankedTensorType ids(bool decoder) const {
    return RankedTensorType::get({batch, decoder ? target : source},
                                 builder.getI64Type());
  }
  bool hasMask() const { return masked; }

  /// (ids [B, S]) -> hidden; or (labels [B, T]) -> hidden of the labels shifted
  /// by one.
  mlir::func::FuncOp embedding(bool decoder) {
    EncoderWriter f(builder, decoder ? "T5DecoderEmbedding" : "T5Embedding",
                    "");
    f.input(ids(decoder));
    f.param("shared.weight", {config.vocabSize, hidden});
    auto function = f.begin({state(decoder)});
    Value tokens = f.argument(0);
    if (decoder)
      tokens = f.shiftRight(tokens, config.start, config.padding);
    Value x = f.lookUp("shared", tokens);
    f.enter(decoder ? "decoder.dropout" : "encoder.dropout");
    f.end(f.dropout(x, config.dropout));
    return function;
  }

  /// () -> [1, heads, n, n], added to the scores of every layer of a stack; a
  /// decoder's also hides the keys behind the query.
  mlir::func::FuncOp positions(bool decoder) {
    EncoderWriter f(builder, decoder ? "T5DecoderPositions" : "T5Positions",
                    decoder ? "decoder.block.0.layer.0.SelfAttention"
                            : "encoder.block.0.layer.0.SelfAttention");
    const int64_t length = decoder ? target : source;
    f.param("relative_attention_bias.weight", {config.buckets, config.heads});
    auto function = f.begin({f.floats({1, config.heads, length, length})});
    f.enter("");
    // One row for each distance, then one distance for each pair.
    Value rows =
        f.lookUp("relative_attention_bias", buckets(f, length, !decoder));
    f.enter("");
    Value at = f.op<ArangeOp>(uint64_t(0), uint64_t(length), uint64_t(1),
                              builder.getI64Type());
    Value column = f.op<UnsqueezeOp>(at, uint64_t(1));
    Value pairs = f.op<SubTensorOp>(f.op<UnsqueezeOp>(at, uint64_t(0)), column);
    Value values = f.op<EmbeddingOp>(rows, f.op<AddScalarOp>(pairs, length - 1),
                                     uint64_t(-1));
    values = f.op<PermuteOp>(values, llvm::ArrayRef<int64_t>{2, 0, 1});
    values = f.contiguous(f.op<UnsqueezeOp>(values, uint64_t(0)));
    if (decoder)
      values = f.marked(
          f.op<AddTensorOp>(values,
                            f.op<TypeAsOp>(causal(f, pairs, length), values)),
          biasedAttr, biasPlain);
    f.end(values);
    return function;
  }

  /// (hidden, positions, mask) -> hidden; a decoder's also takes the encoder's
  /// output, and its mask is of the encoder's tokens.
  mlir::func::FuncOp block(bool decoder) {
    EncoderWriter f(builder, decoder ? "T5DecoderBlock" : "T5Block",
                    decoder ? "decoder.block.*" : "encoder.block.*");
    const int64_t length = decoder ? target : source;
    f.input(state(decoder));
    f.input(f.floats({1, config.heads, length, length}));
    if (decoder)
      f.input(state(false));
    if (masked)
      f.input(f.floats({batch, 1, 1, source}));
    declareAttention(f, "layer.0", "SelfAttention");
    if (decoder)
      declareAttention(f, "layer.1", "EncDecAttention");
    const char *last = decoder ? "layer.2" : "layer.1";
    declareFeedForward(f, last);
    auto function = f.begin({state(decoder)});
    Value x = f.argument(0), bias = f.argument(1);
    Value mask = masked ? f.argument(decoder ? 3 : 2) : Value();
    if (mask && !decoder) {
      f.enter("layer.0.SelfAttention");
      bias = f.marked(f.op<AddTensorOp>(bias, mask), biasedAttr, biasFilled);
    }
    Value normed = rows(f, norm(f, x, "layer.0"));
    x = attention(f, x, normed, normed, "layer.0.SelfAttention",
                  {batch, length, length, config.heads, config.headDim,
                   /*causal=*/decoder, 1, config.dropout},
                  bias);
    if (decoder) {
      normed = rows(f, norm(f, x, "layer.1"));
      x = attention(f, x, normed, rows(f, f.argument(2)),
                    "layer.1.EncDecAttention",
                    {batch, target, source, config.heads, config.headDim,
                     /*causal=*/false, 1, config.dropout, /*byHeads=*/false,
                     /*zeroBias=*/true},
                    {}, mask);
    }
    f.end(feedForward(f, x, last));
    return function;
  }

  /// (hidden) -> what every layer of the decoder reads.
  mlir::func::FuncOp encoderNorm() {
    EncoderWriter f(builder, "T5EncoderNorm", "encoder");
    f.input(state(false));
    f.param("final_layer_norm.weight", {hidden});
    auto function = f.begin({state(false)});
    f.enter("final_layer_norm");
    Value x = scaled(f, f.argument(0), "final_layer_norm.weight");
    f.enter("dropout");
    f.end(f.dropout(x, config.dropout));
    return function;
  }

  /// (hidden, labels) -> 0-d loss.
  mlir::func::FuncOp head() {
    EncoderWriter f(builder, "T5Head", "");
    f.input(state(true));
    f.input(ids(true));
    f.param("decoder.final_layer_norm.weight", {hidden});
    const char *weight = config.ownHead ? "lm_head.weight" : "shared.weight";
    f.param(weight, {config.vocabSize, hidden});
    auto function = f.begin({f.floats({})});
    f.enter("decoder.final_layer_norm");
    Value x = scaled(f, f.argument(0), "decoder.final_layer_norm.weight");
    f.enter("decoder.dropout");
    x = f.dropout(x, config.dropout);
    f.enter("");
    if (config.scaleOutput)
      x = f.op<MulScalarOp>(x, std::pow(double(hidden), -0.5));
    f.enter("lm_head");
    Value transposed = f.op<TOp>(f.param(weight));
    Value logits = f.op<MmOp>(rows(f, x), transposed);
    f.enter("");
    f.end(f.plainCrossEntropy(logits, f.argument(1)));
    return function;
  }

private:
  RankedTensorType state(bool decoder) const {
    return RankedTensorType::get({batch, decoder ? target : source, hidden},
                                 builder.getF32Type());
  }
  Value rows(EncoderWriter &f, Value x) {
    auto size = f.shape(x);
    return f.view(x, {size[0] * size[1], size[2]});
  }

  /// The bucket of each distance from 1 - length to length - 1 (of the key from
  /// the query): it changes at a few distances, so it is a sum of steps.
  Value buckets(EncoderWriter &f, int64_t length, bool bidirectional) {
    auto bucket = [&](int64_t distance) {
      return relativeBucket(distance, bidirectional, config.buckets,
                            config.maxDistance);
    };
    const int64_t first = 1 - length;
    Value distance =
        f.op<AddScalarOp>(f.op<ArangeOp>(uint64_t(0), uint64_t(2 * length - 1),
                                         uint64_t(1), builder.getI64Type()),
                          first);
    Value result =
        f.op<AddScalarOp>(f.op<ZerosLikeOp>(distance), bucket(first));
    for (int64_t d = first + 1; d < length; ++d) {
      const int64_t step = bucket(d) - bucket(d - 1);
      if (step == 0)
        continue;
      Value beyond = f.op<ToCopyOp>(f.op<GtScalarOp>(distance, d - 1), f.i64());
      if (step != 1)
        beyond = f.op<MulScalarOp>(beyond, step);
      result = f.op<AddTensorOp>(result, beyond);
    }
    return result;
  }

  void declareAttention(EncoderWriter &f, const std::string &layer,
                        const std::string &name) {
    const int64_t inner = config.inner();
    for (const char *part : {".q", ".k", ".v"})
      f.declareLinear(layer + "." + name + part, hidden, inner, false);
    f.declareLinear(layer + "." + name + ".o", inner, hidden, false);
    f.param(layer + ".layer_norm.weight", {hidden});
  }
  void declareFeedForward(EncoderWriter &f, const std::string &layer) {
    const int64_t inner = config.intermediateSize;
    const std::string fed = layer + ".DenseReluDense";
    for (const char *part : {".wi_0", ".wi_1"})
      if (config.gated)
        f.declareLinear(fed + part, hidden, inner, false);
    if (!config.gated)
      f.declareLinear(fed + ".wi", hidden, inner, false);
    f.declareLinear(fed + ".wo", inner, hidden, false);
    f.param(layer + ".layer_norm.weight", {hidden});
  }

  Value norm(EncoderWriter &f, Value x, const std::string &layer) {
    f.enter(layer + ".layer_norm");
    return scaled(f, x, layer + ".layer_norm.weight");
  }
  Value scaled(EncoderWriter &f, Value x, const std::string &weight) {
    Value normed =
        f.op<RmsNormOp>(x, f.param(weight), f.number(config.layerNormEps));
    return f.marked(normed, plainFactorAttr);
  }

  /// Added to scores: minus infinity where the key, `pairs` behind the query,
  /// comes after it.
  Value causal(EncoderWriter &f, Value pairs, int64_t length) {
    Value seen = f.op<ToCopyOp>(f.op<LtScalarOp>(pairs, int64_t(1)), f.f32());
    return f.view(f.added(seen), {1, 1, length, length});
  }

  /// `queries` and `seen` are rows; the residual is `x`. Scores are not scaled.
  Value attention(EncoderWriter &f, Value x, Value queries, Value seen,
                  const std::string &module, const AttentionShape &shape,
                  Value bias, Value mask = {}) {
    Value q = f.linear(queries, module + ".q");
    Value k = f.linear(seen, module + ".k");
    Value v = f.linear(seen, module + ".v");
    f.enter(module);
    Value mixed = bias ? f.biasedAttention(shape, q, k, v, bias)
                       : f.attention(shape, q, k, v, mask);
    Value out = f.linear(mixed, module + ".o");
    return added(f, x, out, module.substr(0, module.rfind('.')));
  }

  Value feedForward(EncoderWriter &f, Value x, const std::string &layer) {
    const std::string module = layer + ".DenseReluDense";
    Value normed = rows(f, norm(f, x, layer));
    Value inner;
    if (config.gated) {
      Value gate = f.linear(normed, module + ".wi_0");
      f.enter(module + ".act");
      gate = activate(f, config.activation, gate);
      Value up = f.linear(normed, module + ".wi_1");
      f.enter(module);
      inner = f.op<MulTensorOp>(gate, up);
    } else {
      inner = f.linear(normed, module + ".wi");
      f.enter(module + ".act");
      inner = activate(f, config.activation, inner);
    }
    f.enter(module + ".dropout");
    inner = f.dropout(inner, config.dropout);
    return added(f, x, f.linear(inner, module + ".wo"), layer);
  }

  /// The residual `x` and what is left of `rows` after the layer's dropout.
  Value added(EncoderWriter &f, Value x, Value rows, const std::string &layer) {
    f.enter(layer + ".dropout");
    Value left = f.dropout(f.view(rows, f.shape(x)), config.dropout);
    f.enter("");
    return f.op<AddTensorOp>(x, left);
  }

  OpBuilder &builder;
  const T5Config &config;
  int64_t batch, source, target, hidden;
  bool masked;
};

} // namespace

void accel::huggingface::buildSegments(OpBuilder &builder,
                                       const T5Config &config,
                                       const BuildOptions &options) {
  T5Forward segments(builder, config, options);
  auto embedding = segments.embedding(false);
  auto positions = segments.positions(false);
  mlir::func::FuncOp mask;
  if (segments.hasMask())
    mask = addedMask(builder, "encoder", options.microBatch,
                     options.sequenceLength);
  auto block = segments.block(false);
  auto norm = segments.encoderNorm();
  auto decoderEmbedding = segments.embedding(true);
  auto decoderPositions = segments.positions(true);
  auto decoderBlock = segments.block(true);
  auto head = segments.head();
  llvm::SmallVector<GraphWriter::Input> batch = {
      {"input_ids", segments.ids(false)}, {"labels", segments.ids(true)}};
  if (mask)
    batch.push_back({"attention_mask", segments.ids(false)});
  GraphWriter graph(builder, batch);
  llvm::SmallVector<Value> state = {
      graph.call(embedding, graph.inputIds(), "").front(),
      graph.call(positions, {}, "encoder.block.0.layer.0.SelfAttention")
          .front()};
  Value added;
  if (mask) {
    added = graph.call(mask, graph.input("attention_mask"), "encoder").front();
    state.push_back(added);
  }
  for (int64_t i = 0; i < config.layers; ++i)
    state[0] =
        graph.call(block, state, "encoder.block." + std::to_string(i)).front();
  Value encoded = graph.call(norm, state[0], "encoder").front();
  state = {
      graph.call(decoderEmbedding, graph.labels(), "").front(),
      graph.call(decoderPositions, {}, "decoder.block.0.layer.0.SelfAttention")
          .front(),
      encoded};
  if (added)
    state.push_back(added);
  for (int64_t i = 0; i < config.decoderLayers; ++i)
    state[0] =
        graph.call(decoderBlock, state, "decoder.block." + std::to_string(i))
            .front();
  graph.end(graph.call(head, {state[0], graph.labels()}, "").front());
}
