//===- BuildVit.cpp - Segments and graph of ViT ---------------------------===//
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

constexpr const char *projections[] = {"q_proj", "k_proj", "v_proj"};

class VitForward {
public:
  VitForward(OpBuilder &builder, const VitConfig &config,
             const BuildOptions &options)
      : builder(builder), config(config), batch(options.microBatch),
        tokens(config.patches() + 1), hidden(config.hiddenSize),
        hiddenType(RankedTensorType::get({batch, tokens, hidden},
                                         builder.getF32Type())) {}

  RankedTensorType pixels() const {
    return RankedTensorType::get(
        {batch, config.channels, config.image[0], config.image[1]},
        builder.getF32Type());
  }
  RankedTensorType labels() const {
    return labelsType(builder, batch, config.classifier);
  }

  /// (pixels [B, C, height, width]) -> hidden [B, 1 + patches, hidden].
  mlir::func::FuncOp embeddings() {
    EncoderWriter f(builder, "ViTEmbeddings", "vit.embeddings");
    const auto [high, wide] = config.patch;
    f.input(pixels());
    f.param("cls_token", {1, 1, hidden});
    f.param("position_embeddings", {1, tokens, hidden});
    f.param("patch_embeddings.projection.weight",
            {hidden, config.channels, high, wide});
    f.param("patch_embeddings.projection.bias", {hidden});
    auto function = f.begin({hiddenType});
    Value patches = projected(f, f.argument(0));
    f.enter("");
    Value token = f.op<ExpandOp>(f.param("cls_token"),
                                 llvm::ArrayRef<int64_t>{batch, 1, hidden});
    Value x = f.op<CatOp>(ValueRange{token, patches}, uint64_t(1));
    x = f.op<AddTensorOp>(x, f.param("position_embeddings"));
    f.enter("dropout");
    f.end(f.dropout(x, config.hiddenDropout));
    return function;
  }

  /// (hidden) -> hidden.
  mlir::func::FuncOp layer() {
    EncoderWriter f(builder, "ViTLayer", "vit.layers.*");
    const int64_t mixed = config.heads * config.headDim;
    f.input(hiddenType);
    for (const char *part : projections)
      f.declareLinear((llvm::Twine("attention.") + part).str(), hidden, mixed,
                      config.qkvBias);
    f.declareLinear("attention.o_proj", mixed, hidden);
    f.declareNorm("layernorm_before", hidden);
    f.declareNorm("layernorm_after", hidden);
    f.declareLinear("mlp.fc1", hidden, config.intermediateSize);
    f.declareLinear("mlp.fc2", config.intermediateSize, hidden);
    auto function = f.begin({hiddenType});
    Value x = f.argument(0);
    Value normed = rows(f, f.norm(x, "layernorm_before", config.layerNormEps));
    Value parts[3];
    for (auto [i, part] : llvm::enumerate(projections))
      parts[i] = f.linear(normed, (llvm::Twine("attention.") + part).str());
    f.enter("attention");
    AttentionShape shape{batch,
                         tokens,
                         tokens,
                         config.heads,
                         config.headDim,
                         /*causal=*/false,
                         std::pow(double(config.headDim), -0.5),
                         config.attentionDropout};
    Value attended = f.linear(f.attention(shape, parts[0], parts[1], parts[2]),
                              "attention.o_proj");
    x = added(f, attended, x);
    normed = rows(f, f.norm(x, "layernorm_after", config.layerNormEps));
    Value inner = f.linear(normed, "mlp.fc1");
    f.enter("mlp.activation_fn");
    inner = activate(f, config.activation, inner);
    f.end(added(f, f.linear(inner, "mlp.fc2"), x));
    return function;
  }

  /// (hidden, labels) -> 0-d loss.
  mlir::func::FuncOp head() {
    EncoderWriter f(builder, "Classifier", "");
    f.input(hiddenType);
    f.input(labels());
    f.declareNorm("vit.layernorm", hidden);
    f.declareLinear("classifier", hidden, config.classifier.labels);
    auto function = f.begin({f.floats({})});
    Value x = f.norm(f.argument(0), "vit.layernorm", config.layerNormEps);
    Value logits = f.linear(f.firstToken(x), "classifier");
    f.enter("");
    f.end(f.classify(logits, f.argument(1), config.classifier));
    return function;
  }

private:
  /// What is left of `rows` after the layer's dropout, and the residual.
  Value added(EncoderWriter &f, Value rows, Value residual) {
    f.enter("dropout");
    Value left =
        f.dropout(f.view(rows, hiddenType.getShape()), config.hiddenDropout);
    f.enter("");
    return f.op<AddTensorOp>(left, residual);
  }
  Value rows(EncoderWriter &f, Value x) {
    return f.view(x, {batch * tokens, hidden});
  }

  /// A convolution whose stride is its kernel, as one matmul: each patch is a
  /// row. Rows and columns of pixels that fill no patch are left out.
  Value projected(EncoderWriter &f, Value pixels) {
    const auto [high, wide] = config.patch;
    const int64_t down = config.image[0] / high,
                  across = config.image[1] / wide;
    const int64_t channels = config.channels, size = channels * high * wide;
    f.enter("patch_embeddings.projection");
    if (down * high != config.image[0])
      pixels = f.slice(pixels, 2, 0, down * high);
    if (across * wide != config.image[1])
      pixels = f.slice(pixels, 3, 0, across * wide);
    if (down * high != config.image[0] || across * wide != config.image[1])
      pixels = f.contiguous(pixels);
    Value grid = f.view(pixels, {batch, channels, down, high, across, wide});
    grid = f.op<PermuteOp>(grid, llvm::ArrayRef<int64_t>{0, 2, 4, 1, 3, 5});
    Value patches =
        f.view(f.contiguous(grid), {batch * config.patches(), size});
    Value weight =
        f.view(f.param("patch_embeddings.projection.weight"), {hidden, size});
    Value x = f.op<AddmmOp>(f.param("patch_embeddings.projection.bias"),
                            patches, f.op<TOp>(weight));
    return f.view(x, {batch, config.patches(), hidden});
  }

  OpBuilder &builder;
  const VitConfig &config;
  int64_t batch, tokens, hidden;
  RankedTensorType hiddenType;
};

} // namespace

void accel::huggingface::buildSegments(OpBuilder &builder,
                                       const VitConfig &config,
                                       const BuildOptions &options) {
  VitForward segments(builder, config, options);
  auto embeddings = segments.embeddings();
  auto layer = segments.layer();
  auto head = segments.head();
  GraphWriter graph(builder, {{"pixel_values", segments.pixels()},
                              {"labels", segments.labels()}});
  Value hidden =
      graph.call(embeddings, graph.input("pixel_values"), "vit.embeddings")
          .front();
  for (int64_t i = 0; i < config.layers; ++i)
    hidden =
        graph.call(layer, hidden, "vit.layers." + std::to_string(i)).front();
  graph.end(graph.call(head, {hidden, graph.labels()}, "").front());
}
