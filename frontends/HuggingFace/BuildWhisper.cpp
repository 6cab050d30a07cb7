//===- BuildWhisper.cpp - Segments and graph of Whisper -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
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

constexpr double normEps = 1e-5; // nn.LayerNorm's own

class WhisperForward {
public:
  WhisperForward(OpBuilder &builder, const WhisperConfig &config,
                 const BuildOptions &options)
      : builder(builder), config(config), batch(options.microBatch),
        source(config.sourcePositions), target(options.sequenceLength),
        hidden(config.hiddenSize), sourceType(floats({batch, source, hidden})),
        targetType(floats({batch, target, hidden})),
        idsType(RankedTensorType::get({batch, target}, builder.getI64Type())) {}

  RankedTensorType features() const {
    return floats({batch, config.melBins, 2 * source});
  }
  RankedTensorType labels() const { return idsType; }

  /// (mel features [B, bins, 2 * positions]) -> hidden [B, positions, hidden].
  mlir::func::FuncOp front() {
    EncoderWriter f(builder, "WhisperFront", "model.encoder");
    f.input(features());
    f.param("conv1.weight", {hidden, config.melBins, 3});
    f.param("conv1.bias", {hidden});
    f.param("conv2.weight", {hidden, hidden, 3});
    f.param("conv2.bias", {hidden});
    f.param("embed_positions.weight", {source, hidden});
    auto function = f.begin({sourceType});
    f.enter("conv1");
    Value x = f.contiguous(
        f.op<TransposeIntOp>(f.argument(0), uint64_t(1), uint64_t(2)));
    x = activate(f, Activation::Gelu, convolution(f, x, "conv1", 1));
    x = activate(f, Activation::Gelu, convolution(f, x, "conv2", 2));
    f.enter("");
    x = f.op<AddTensorOp>(x, f.param("embed_positions.weight"));
    f.end(f.dropout(x, config.dropout));
    return function;
  }

  /// (hidden) -> hidden.
  mlir::func::FuncOp encoderLayer() {
    EncoderWriter f(builder, "WhisperEncoderLayer", "model.encoder.layers.*");
    f.input(sourceType);
    declareAttention(f, "self_attn");
    declareFeedForward(f, config.encoder);
    auto function = f.begin({sourceType});
    Value x = f.argument(0);
    Value normed = rows(f, f.norm(x, "self_attn_layer_norm", normEps));
    x = attention(f, x, normed, normed, "self_attn",
                  {batch, source, source, config.encoder.heads});
    f.end(feedForward(f, x));
    return function;
  }

  /// (hidden) -> what every layer of the decoder reads.
  mlir::func::FuncOp encoderNorm() {
    EncoderWriter f(builder, "WhisperEncoderNorm", "model.encoder");
    f.input(sourceType);
    f.declareNorm("layer_norm", hidden);
    auto function = f.begin({sourceType});
    f.end(f.norm(f.argument(0), "layer_norm", normEps));
    return function;
  }

  /// (labels) -> hidden of the labels shifted by one.
  mlir::func::FuncOp embedding() {
    EncoderWriter f(builder, "WhisperEmbedding", "model.decoder");
    f.input(idsType);
    f.param("embed_tokens.weight", {config.vocabSize, hidden});
    f.param("embed_positions.weight", {config.maxPositions, hidden});
    auto function = f.begin({targetType});
    Value ids = f.shiftRight(f.argument(0), config.start, *config.padding);
    Value x = f.lookUp("embed_tokens", ids, *config.padding);
    Value positions =
        f.firstRows("embed_positions", target, batch, batch, target);
    f.enter("");
    f.end(f.dropout(f.op<AddTensorOp>(x, positions), config.dropout));
    return function;
  }

  /// (hidden, encoder's output) -> hidden.
  mlir::func::FuncOp decoderLayer() {
    EncoderWriter f(builder, "WhisperDecoderLayer", "model.decoder.layers.*");
    f.input(targetType);
    f.input(sourceType);
    declareAttention(f, "self_attn");
    declareAttention(f, "encoder_attn");
    declareFeedForward(f, config.decoder);
    auto function = f.begin({targetType});
    Value x = f.argument(0);
    Value normed = rows(f, f.norm(x, "self_attn_layer_norm", normEps));
    x = attention(f, x, normed, normed, "self_attn",
                  {batch, target, target, config.decoder.heads, 0, true});
    normed = rows(f, f.norm(x, "encoder_attn_layer_norm", normEps));
    x = attention(f, x, normed, rows(f, f.argument(1)), "encoder_attn",
                  {batch, target, source, config.decoder.heads});
    f.end(feedForward(f, x));
    return function;
  }

  /// (hidden, labels) -> 0-d loss.
  mlir::func::FuncOp head() {
    const std::string table = config.tieWordEmbeddings
                                  ? "model.decoder.embed_tokens.weight"
                                  : "proj_out.weight";
    EncoderWriter f(builder, "WhisperHead", "");
    f.input(targetType);
    f.input(idsType);
    f.declareNorm("model.decoder.layer_norm", hidden);
    f.param(table, {config.vocabSize, hidden});
    auto function = f.begin({f.floats({})});
    Value x =
        rows(f, f.norm(f.argument(0), "model.decoder.layer_norm", normEps));
    f.enter("proj_out");
    Value logits = f.op<MmOp>(x, f.op<TOp>(f.param(table)));
    f.enter("");
    f.end(f.plainCrossEntropy(logits, f.argument(1)));
    return function;
  }

private:
  RankedTensorType floats(llvm::ArrayRef<int64_t> shape) const {
    return RankedTensorType::get(shape, builder.getF32Type());
  }
  Value rows(EncoderWriter &f, Value x) {
    auto size = f.shape(x);
    return f.view(x, {size[0] * size[1], size[2]});
  }

  /// A convolution of 3 taps with a border of zeros, as one matmul: a row
  /// holds what the taps see. x [B, T, in] -> [B, T / stride, hidden].
  Value convolution(EncoderWriter &f, Value x, llvm::StringRef module,
                    int64_t stride) {
    f.enter(module);
    const int64_t length = f.shape(x)[1], in = f.shape(x)[2];
    Value border = f.op<ZerosLikeOp>(f.slice(x, 1, 0, 1));
    Value padded = f.op<CatOp>(ValueRange{border, x, border}, uint64_t(1));
    llvm::SmallVector<Value> taps;
    for (int64_t k = 0; k < 3; ++k)
      taps.push_back(f.slice(padded, 1, k, k + length, stride));
    const int64_t out = f.shape(taps[0])[1];
    Value seen = f.view(f.op<CatOp>(taps, uint64_t(2)), {batch * out, 3 * in});
    Value weight = f.op<PermuteOp>(f.param((module + ".weight").str()),
                                   llvm::ArrayRef<int64_t>{0, 2, 1});
    weight = f.view(f.contiguous(weight), {hidden, 3 * in});
    Value y = f.op<AddmmOp>(f.param((module + ".bias").str()), seen,
                            f.op<TOp>(weight));
    return f.view(y, {batch, out, hidden});
  }

  void declareAttention(EncoderWriter &f, llvm::StringRef name) {
    f.declareLinear((name + ".k_proj").str(), hidden, hidden, /*bias=*/false);
    for (const char *part : {".v_proj", ".q_proj", ".out_proj"})
      f.declareLinear((name + part).str(), hidden, hidden);
    f.declareNorm((name + "_layer_norm").str(), hidden);
  }
  void declareFeedForward(EncoderWriter &f, const WhisperConfig::Stack &stack) {
    f.declareLinear("fc1", hidden, stack.intermediateSize);
    f.declareLinear("fc2", stack.intermediateSize, hidden);
    f.declareNorm("final_layer_norm", hidden);
  }

  /// `queries` and `seen` are rows; the residual is `x`.
  Value attention(EncoderWriter &f, Value x, Value queries, Value seen,
                  llvm::StringRef name, AttentionShape shape) {
    shape.headDim = hidden / shape.heads;
    shape.dropped = config.attentionDropout;
    shape.byHeads = true;
    // transformers scales the queries and not the scores.
    Value q = f.linear(queries, (name + ".q_proj").str());
    f.enter(name);
    q = f.op<MulScalarOp>(q, std::pow(double(shape.headDim), -0.5));
    Value k = f.linear(seen, (name + ".k_proj").str());
    Value v = f.linear(seen, (name + ".v_proj").str());
    f.enter(name);
    Value out =
        f.linear(f.attention(shape, q, k, v), (name + ".out_proj").str());
    f.enter("");
    return f.op<AddTensorOp>(
        x, f.dropout(f.view(out, f.shape(x)), config.dropout));
  }

  Value feedForward(EncoderWriter &f, Value x) {
    Value inner =
        f.linear(rows(f, f.norm(x, "final_layer_norm", normEps)), "fc1");
    f.enter("activation_fn");
    inner = activate(f, config.activation, inner);
    inner = f.dropout(inner, config.activationDropout);
    Value out = f.linear(inner, "fc2");
    f.enter("");
    return f.op<AddTensorOp>(
        x, f.dropout(f.view(out, f.shape(x)), config.dropout));
  }

  OpBuilder &builder;
  const WhisperConfig &config;
  int64_t batch, source, target, hidden;
  RankedTensorType sourceType, targetType, idsType;
};

} // namespace

void accel::huggingface::buildSegments(OpBuilder &builder,
                                       const WhisperConfig &config,
                                       const BuildOptions &options) {
  WhisperForward segments(builder, config, options);
  auto front = segments.front();
  auto encoderLayer = segments.encoderLayer();
  auto encoderNorm = segments.encoderNorm();
  auto embedding = segments.embedding();
  auto decoderLayer = segments.decoderLayer();
  auto head = segments.head();
  GraphWriter graph(builder, {{"input_features", segments.features()},
                              {"labels", segments.labels()}});
  Value source =
      graph.call(front, graph.input("input_features"), "model.encoder").front();
  for (int64_t i = 0; i < config.encoder.layers; ++i)
    source = graph
                 .call(encoderLayer, source,
                       "model.encoder.layers." + std::to_string(i))
                 .front();
  source = graph.call(encoderNorm, source, "model.encoder").front();
  Value hidden = graph.call(embedding, graph.labels(), "model.decoder").front();
  for (int64_t i = 0; i < config.decoder.layers; ++i)
    hidden = graph
                 .call(decoderLayer, {hidden, source},
                       "model.decoder.layers." + std::to_string(i))
                 .front();
  graph.end(graph.call(head, {hidden, graph.labels()}, "").front());
}
