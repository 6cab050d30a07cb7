//===- BuildQwenTower.cpp - Segments of the towers of Qwen ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// As modeling_qwen2_vl.py and modeling_qwen2_5_vl.py of transformers 5.23. The
// second brings patches into the order of windows, and each window, or in the
// first each image, attends to itself by a call of its own.
// Here windows of one size are a batch of one call, and follow each other: the
// order of an image's windows is another, what they hold is the same.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/BuildTower.h"

#include "frontends/HuggingFace/Activate.h"
#include "frontends/HuggingFace/EncoderWriter.h"
#include "frontends/HuggingFace/RopeTables.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace accel;
using namespace accel::huggingface;
using namespace accel::aten;
using mlir::OpBuilder;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::ValueRange;

namespace {

constexpr const char *towerPath = "model.visual";

/// A number of sequences, all as long.
struct Attended {
  int64_t count, patches;
};

class QwenSegments : public TowerSegments {
public:
  QwenSegments(OpBuilder &builder, const Tower &tower,
               const BuildOptions &options)
      : builder(builder), t(tower),
        images(options.microBatch * options.images->perSample),
        patches(images * tower.patches(*options.images)),
        merged(tower.merge * tower.merge), hidden(tower.hiddenSize),
        headDim(hidden / tower.heads), cuts(tower.kind == Tower::Kind::Qwen25),
        hiddenType(floats({patches, hidden})),
        tableType(floats({patches, headDim})) {
    if (cuts)
      for (const Tower::Windows &windows : t.windowsOf(*options.images))
        cut.push_back({images * windows.count, windows.patches});
    embed = embedding();
    turn = rotary();
    for (int64_t i = 0; i < t.layers; ++i) {
      mlir::func::FuncOp &function = isWhole(i) ? whole : windowed;
      if (function)
        continue;
      const Attended one{images, patches / images};
      function = isWhole(i) ? layer(one, ".whole") : layer(cut, "");
    }
    project = merger();
  }

  GraphWriter::Input input() const override {
    return {"pixel_values", floats({patches, t.channels * t.frames *
                                                 t.patchSize * t.patchSize})};
  }

  Value call(GraphWriter &graph) override {
    const std::string path = towerPath;
    Value x = graph.call(embed, graph.input("pixel_values"), path).front();
    ValueRange tables = graph.call(turn, x, path + ".rotary_pos_emb");
    for (int64_t i = 0; i < t.layers; ++i)
      x = graph
              .call(isWhole(i) ? whole : windowed, {x, tables[0], tables[1]},
                    path + ".blocks." + std::to_string(i))
              .front();
    return graph.call(project, x, path).front();
  }

private:
  bool isWhole(int64_t i) const {
    return !cuts || llvm::is_contained(t.wholeLayers, i);
  }
  RankedTensorType floats(llvm::ArrayRef<int64_t> shape) const {
    return RankedTensorType::get(shape, builder.getF32Type());
  }

  /// Rows of tokens [n, width] in another order.
  Value reordered(EncoderWriter &f, Value x) {
    Value order = f.op<ArangeOp>(uint64_t(0), uint64_t(f.shape(x)[0]),
                                 uint64_t(1), f.i64());
    return f.op<IndexTensorOp>(x, ValueRange(order),
                               llvm::ArrayRef<int64_t>(0));
  }
  /// Patches, which stay with their token.
  Value byWindows(EncoderWriter &f, Value x) {
    if (!cuts)
      return x;
    const int64_t width = f.shape(x)[1];
    Value tokens = f.view(x, {patches / merged, merged, width});
    return f.view(reordered(f, tokens), {patches, width});
  }

  /// (patches [n, pixels of each], in fp32) -> hidden [n, hidden], by windows.
  mlir::func::FuncOp embedding() {
    EncoderWriter f(builder, "VisionPatchEmbed", towerPath);
    const std::string name = "patch_embed.proj";
    const int64_t kernel[] = {t.frames, t.patchSize, t.patchSize};
    const int64_t none[] = {0, 0, 0}, one[] = {1, 1, 1};
    f.input(input().second);
    f.param(name + ".weight",
            {hidden, t.channels, t.frames, t.patchSize, t.patchSize});
    auto function = f.begin({hiddenType});
    f.fixType(0);
    f.enter("patch_embed");
    Value weight = f.param(name + ".weight");
    Value pixels = f.op<TypeAsOp>(f.argument(0), weight);
    pixels = f.view(pixels,
                    {patches, t.channels, t.frames, t.patchSize, t.patchSize});
    f.enter(name);
    Value x = f.op<ConvolutionOp>(
        pixels, weight, Value(), llvm::ArrayRef<int64_t>(kernel),
        llvm::ArrayRef<int64_t>(none), llvm::ArrayRef<int64_t>(one), false,
        llvm::ArrayRef<int64_t>(none), uint64_t(1));
    f.enter("");
    f.end(byWindows(f, f.view(x, {patches, hidden})));
    return function;
  }

  /// (hidden) -> cos, sin [n, size of a head] of rows and columns, in fp32.
  mlir::func::FuncOp rotary() {
    EncoderWriter f(builder, "VisionRotaryEmbedding",
                    "model.visual.rotary_pos_emb");
    f.input(hiddenType);
    auto function = f.begin({tableType, tableType});
    const int64_t half = headDim / 2, count = half / 2;
    Value places = f.op<ArangeOp>(uint64_t(0), uint64_t(2 * patches),
                                  uint64_t(1), f.f32());
    places = f.view(places, {patches, 2, 1});
    Value powers =
        f.op<ArangeOp>(uint64_t(0), uint64_t(count), uint64_t(1), f.f32());
    powers = f.op<MulScalarOp>(powers, -2 * std::log(t.ropeTheta) /
                                           static_cast<double>(half));
    Value angles = f.op<MulTensorOp>(places, f.op<ExpOp>(powers));
    const auto table = [&](Value x) {
      Value both = f.view(x, {patches, half}); // rows beside columns
      return byWindows(f, f.op<CatOp>(ValueRange{both, both}, uint64_t(1)));
    };
    Value cos = f.op<CosOp>(angles), sin = f.op<SinOp>(angles);
    f.end({table(cos), table(sin)});
    return function;
  }

  mlir::func::FuncOp layer(llvm::ArrayRef<Attended> parts,
                           llvm::StringRef suffix) {
    const std::string name = "VisionBlock" + suffix.str();
    EncoderWriter f(builder, name, "model.visual.blocks.*");
    f.input(hiddenType);
    f.input(tableType);
    f.input(tableType);
    declareNorm(f, "norm1");
    declareNorm(f, "norm2");
    f.declareLinear("attn.qkv", hidden, 3 * hidden);
    f.declareLinear("attn.proj", hidden, hidden);
    const bool gated = t.kind == Tower::Kind::Qwen25;
    if (gated) {
      for (const char *part : {"mlp.gate_proj", "mlp.up_proj"})
        f.declareLinear(part, hidden, t.intermediateSize);
      f.declareLinear("mlp.down_proj", t.intermediateSize, hidden);
    } else {
      f.declareLinear("mlp.fc1", hidden, t.intermediateSize);
      f.declareLinear("mlp.fc2", t.intermediateSize, hidden);
    }
    auto function = f.begin({hiddenType});
    f.fixType(1);
    f.fixType(2);
    Value x = f.argument(0);
    Value mixed = attention(f, norm(f, x, "norm1"), parts);
    f.enter("");
    x = f.op<AddTensorOp>(x, mixed);
    Value rows = norm(f, x, "norm2");
    Value inner = f.linear(rows, gated ? "mlp.gate_proj" : "mlp.fc1");
    f.enter(gated ? "mlp.act_fn" : "mlp.act");
    inner = activate(f, t.activation, inner);
    if (gated) {
      Value up = f.linear(rows, "mlp.up_proj");
      f.enter("mlp");
      inner = f.op<MulTensorOp>(inner, up);
    }
    Value fed = f.linear(inner, gated ? "mlp.down_proj" : "mlp.fc2");
    f.enter("");
    f.end(f.op<AddTensorOp>(x, fed));
    return function;
  }

  void declareNorm(EncoderWriter &f, const std::string &module) {
    if (t.kind == Tower::Kind::Qwen2)
      f.declareNorm(module, hidden);
    else
      f.param(module + ".weight", {hidden});
  }
  Value norm(EncoderWriter &f, Value x, const std::string &module) {
    if (t.kind == Tower::Kind::Qwen2)
      return f.norm(x, module, t.normEps);
    f.enter(module);
    return f.op<RmsNormOp>(x, f.param(module + ".weight"), f.number(t.normEps),
                           f.unit(false), f.unit(false));
  }

  /// Parts of dimension 1.
  llvm::SmallVector<Value> split(EncoderWriter &f, Value x,
                                 llvm::ArrayRef<int64_t> sizes) {
    if (sizes.size() == 1)
      return {x};
    llvm::SmallVector<Value> parts;
    int64_t begin = 0;
    for (int64_t size : sizes) {
      parts.push_back(f.slice(x, 1, begin, begin + size));
      begin += size;
    }
    return parts;
  }

  /// q and k are turned in fp32.
  Value turned(EncoderWriter &f, Value x, Value cos, Value sin) {
    Value wide = f.op<ToCopyOp>(x, f.f32());
    return f.op<TypeAsOp>(rotate(f, wide, cos, sin), x);
  }

  Value attention(EncoderWriter &f, Value rows,
                  llvm::ArrayRef<Attended> parts) {
    Value joint = f.linear(rows, "attn.qkv");
    f.enter("attn");
    llvm::SmallVector<Value> heads;
    const int64_t three[] = {hidden, hidden, hidden};
    for (Value each : split(f, joint, three))
      heads.push_back(f.view(each, {1, patches, t.heads, headDim}));
    Value cos = f.op<UnsqueezeOp>(f.argument(1), uint64_t(1));
    Value sin = f.op<UnsqueezeOp>(f.argument(2), uint64_t(1));
    for (size_t i : {0, 1})
      heads[i] = turned(f, heads[i], cos, sin);
    llvm::SmallVector<int64_t> sizes;
    for (const Attended &part : parts)
      sizes.push_back(part.count * part.patches);
    llvm::SmallVector<Value> queries = split(f, heads[0], sizes),
                             keys = split(f, heads[1], sizes),
                             values = split(f, heads[2], sizes), results;
    for (auto [i, part] : llvm::enumerate(parts)) {
      const auto each = [&, count = part.count,
                         length = part.patches](Value x) -> Value {
        x = f.view(x, {count, length, t.heads, headDim});
        return f.op<TransposeIntOp>(x, uint64_t(1), uint64_t(2));
      };
      Value mixed = f.op<ScaledDotProductAttentionOp>(
          each(queries[i]), each(keys[i]), each(values[i]), Value(),
          /*is_causal=*/false, f.number(std::pow(double(headDim), -0.5)),
          uint64_t(0), f.number(0), /*by_parts=*/f.unit(false), f.number(0),
          f.keyFor(0));
      mixed = f.op<TransposeIntOp>(mixed, uint64_t(1), uint64_t(2));
      results.push_back(f.view(mixed, {part.count * part.patches, hidden}));
    }
    return f.linear(f.op<CatOp>(results, uint64_t(0)), "attn.proj");
  }

  /// (hidden) -> features [tokens, outputSize], in the order of the image.
  mlir::func::FuncOp merger() {
    EncoderWriter f(builder, "VisionPatchMerger", towerPath);
    const int64_t tokens = patches / merged, width = merged * hidden;
    f.input(hiddenType);
    declareNorm(f, "merger.ln_q");
    f.declareLinear("merger.mlp.0", width, width);
    f.declareLinear("merger.mlp.2", width, t.outputSize);
    auto function = f.begin({floats({tokens, t.outputSize})});
    Value x = norm(f, f.argument(0), "merger.ln_q");
    x = f.linear(f.view(x, {tokens, width}), "merger.mlp.0");
    f.enter("merger.mlp.1");
    x = activate(f, Activation::Gelu, x);
    x = f.linear(x, "merger.mlp.2");
    f.enter("");
    // In order, and features of single images joined again.
    f.end(f.contiguous(cuts ? reordered(f, x) : x));
    return function;
  }

  OpBuilder &builder;
  const Tower &t;
  int64_t images, patches, merged, hidden, headDim;
  bool cuts; // images into windows
  RankedTensorType hiddenType, tableType;
  llvm::SmallVector<Attended> cut; // of all images
  mlir::func::FuncOp embed, turn, whole, windowed, project;
};

} // namespace

std::unique_ptr<TowerSegments>
accel::huggingface::buildQwen(OpBuilder &builder, const Tower &tower,
                              const BuildOptions &options) {
  return std::make_unique<QwenSegments>(builder, tower, options);
}
