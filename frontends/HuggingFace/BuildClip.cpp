//===- BuildClip.cpp - Segments of LLaVA's tower --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// As modeling_clip.py and modeling_llava.py of transformers 5.23. The layers
// behind the one that features come from run in transformers too; nothing reads
// what they give, and they are left out.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/BuildTower.h"

#include "frontends/HuggingFace/Activate.h"
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

constexpr const char *towerPath = "model.vision_tower";
constexpr const char *projectorPath = "model.multi_modal_projector";

class ClipSegments : public TowerSegments {
public:
  ClipSegments(OpBuilder &builder, const Tower &tower,
               const BuildOptions &options)
      : builder(builder), t(tower),
        images(options.microBatch * options.images->perSample),
        tokens(tower.patches(*options.images) + 1), hidden(tower.hiddenSize),
        hiddenType(floats({images, tokens, hidden})) {
    embed = embeddings();
    if (t.layersRead)
      encode = layer();
    project = projector();
  }

  GraphWriter::Input input() const override {
    return {"pixel_values",
            floats({images, t.channels, t.imageSize, t.imageSize})};
  }

  Value call(GraphWriter &graph) override {
    Value x = graph.call(embed, graph.input("pixel_values"), towerPath).front();
    for (int64_t i = 0; i < t.layersRead; ++i)
      x = graph
              .call(encode, x,
                    std::string(towerPath) + ".encoder.layers." +
                        std::to_string(i))
              .front();
    return graph.call(project, x, projectorPath).front();
  }

private:
  RankedTensorType floats(llvm::ArrayRef<int64_t> shape) const {
    return RankedTensorType::get(shape, builder.getF32Type());
  }
  Value rows(EncoderWriter &f, Value x) {
    return f.view(x, {images * tokens, hidden});
  }

  /// (pixels [images, C, side, side], in fp32) -> hidden, the class first.
  mlir::func::FuncOp embeddings() {
    EncoderWriter f(builder, "CLIPVisionEmbeddings", towerPath);
    const std::string patches = "embeddings.patch_embedding";
    f.input(input().second);
    f.param("embeddings.class_embedding", {hidden});
    f.param(patches + ".weight",
            {hidden, t.channels, t.patchSize, t.patchSize});
    f.param("embeddings.position_embedding.weight", {tokens, hidden});
    f.declareNorm("pre_layrnorm", hidden);
    auto function = f.begin({hiddenType});
    f.fixType(0);
    f.enter(patches);
    Value weight = f.param(patches + ".weight");
    const int64_t stride[] = {t.patchSize, t.patchSize}, none[] = {0, 0},
                  one[] = {1, 1};
    Value x = f.op<ConvolutionOp>(f.op<TypeAsOp>(f.argument(0), weight), weight,
                                  Value(), llvm::ArrayRef<int64_t>(stride),
                                  llvm::ArrayRef<int64_t>(none),
                                  llvm::ArrayRef<int64_t>(one), false,
                                  llvm::ArrayRef<int64_t>(none), uint64_t(1));
    f.enter("embeddings");
    x = f.op<TransposeIntOp>(f.view(x, {images, hidden, (tokens - 1)}),
                             uint64_t(1), uint64_t(2));
    Value token = f.op<ExpandOp>(
        f.view(f.param("embeddings.class_embedding"), {1, 1, hidden}),
        llvm::ArrayRef<int64_t>{images, 1, hidden});
    x = f.op<CatOp>(ValueRange{token, x}, uint64_t(1));
    Value places =
        f.firstRows("embeddings.position_embedding", tokens, 1, 1, tokens);
    f.enter("embeddings");
    x = f.op<AddTensorOp>(x, places);
    f.end(f.norm(x, "pre_layrnorm", t.normEps));
    return function;
  }

  /// (hidden) -> hidden.
  mlir::func::FuncOp layer() {
    EncoderWriter f(builder, "CLIPEncoderLayer",
                    "model.vision_tower.encoder.layers.*");
    f.input(hiddenType);
    for (const char *part : {"k_proj", "v_proj", "q_proj", "out_proj"})
      f.declareLinear((llvm::Twine("self_attn.") + part).str(), hidden, hidden);
    f.declareNorm("layer_norm1", hidden);
    f.declareLinear("mlp.fc1", hidden, t.intermediateSize);
    f.declareLinear("mlp.fc2", t.intermediateSize, hidden);
    f.declareNorm("layer_norm2", hidden);
    auto function = f.begin({hiddenType});
    Value x = f.argument(0);
    Value normed = rows(f, f.norm(x, "layer_norm1", t.normEps));
    Value query = f.linear(normed, "self_attn.q_proj");
    Value key = f.linear(normed, "self_attn.k_proj");
    Value value = f.linear(normed, "self_attn.v_proj");
    f.enter("self_attn");
    const int64_t size = hidden / t.heads;
    AttentionShape shape{images,
                         tokens,
                         tokens,
                         t.heads,
                         size,
                         /*causal=*/false,
                         std::pow(double(size), -0.5),
                         t.attentionDropout};
    Value attended =
        f.linear(f.attention(shape, query, key, value), "self_attn.out_proj");
    x = added(f, x, attended);
    normed = rows(f, f.norm(x, "layer_norm2", t.normEps));
    Value inner = f.linear(normed, "mlp.fc1");
    f.enter("mlp.activation_fn");
    inner = activate(f, t.activation, inner);
    f.end(added(f, x, f.linear(inner, "mlp.fc2")));
    return function;
  }

  Value added(EncoderWriter &f, Value residual, Value rows) {
    f.enter("");
    return f.op<AddTensorOp>(residual, f.view(rows, hiddenType.getShape()));
  }

  /// (hidden) -> features [images * tokens of each, outputSize].
  mlir::func::FuncOp projector() {
    EncoderWriter f(builder, "LlavaMultiModalProjector", projectorPath);
    const int64_t count = images * (tokens - !t.readsClass);
    f.input(hiddenType);
    f.declareLinear("linear_1", hidden, t.outputSize, t.projectorBias);
    f.declareLinear("linear_2", t.outputSize, t.outputSize, t.projectorBias);
    auto function = f.begin({floats({count, t.outputSize})});
    Value x = f.argument(0);
    if (!t.readsClass)
      x = f.contiguous(f.slice(x, 1, 1, tokens));
    x = f.linear(f.view(x, {count, hidden}), "linear_1");
    f.enter("act");
    x = activate(f, t.projector, x);
    x = f.linear(x, "linear_2");
    f.enter("");
    // Features of single images are joined again.
    f.end(f.contiguous(x));
    return function;
  }

  OpBuilder &builder;
  const Tower &t;
  int64_t images, tokens, hidden;
  RankedTensorType hiddenType;
  mlir::func::FuncOp embed, encode, project;
};

} // namespace

std::unique_ptr<TowerSegments>
accel::huggingface::buildClip(OpBuilder &builder, const Tower &tower,
                              const BuildOptions &options) {
  return std::make_unique<ClipSegments>(builder, tower, options);
}
