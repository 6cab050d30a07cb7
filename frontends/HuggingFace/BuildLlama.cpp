//===- BuildLlama.cpp - Segments and graph of the Llama family ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/BuildModel.h"

#include "frontends/HuggingFace/FunctionWriter.h"
#include <cmath>
#include <numbers>

using namespace accel;
using namespace accel::huggingface;
using namespace accel::aten;
using mlir::OpBuilder;
using mlir::RankedTensorType;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;

namespace {

class SegmentBuilder {
public:
  SegmentBuilder(OpBuilder &builder, const LlamaConfig &config,
                 const BuildOptions &options)
      : builder(builder), config(config), batch(options.microBatch),
        sequence(options.sequenceLength), tokens(batch * sequence),
        f32(builder.getF32Type()),
        hiddenType(tensor({batch, sequence, config.hiddenSize})),
        tableType(tensor({sequence, config.headDim})),
        idsType(
            RankedTensorType::get({batch, sequence}, builder.getI64Type())) {}

  /// (ids [B, S]) -> hidden [B, S, hidden_size].
  mlir::func::FuncOp embedding() {
    FunctionWriter f(builder, "Embedding", "model.embed_tokens");
    f.input(idsType);
    f.param("weight", {config.vocabSize, config.hiddenSize});
    auto function = f.begin({hiddenType});
    f.end(f.op<EmbeddingOp>(f.param("weight"), f.argument(0),
                            uint64_t(config.paddingIndex.value_or(-1))));
    return function;
  }

  /// (hidden) -> cos, sin [S, head_dim] in the dtype of hidden.
  mlir::func::FuncOp rotary() {
    std::string name = config.classPrefix + "RotaryEmbedding";
    FunctionWriter f(builder, name, "model.rotary_emb");
    f.input(hiddenType);
    auto function = f.begin({tableType, tableType});
    Value inverse = inverseFrequencies(f);
    Value positions =
        f.op<ToCopyOp>(f.op<ArangeOp>(uint64_t(0), uint64_t(sequence),
                                      uint64_t(1), builder.getI64Type()),
                       f32);
    Value angles =
        f.op<MulTensorOp>(f.op<UnsqueezeOp>(positions, uint64_t(1)), inverse);
    Value both = f.op<CatOp>(ValueRange{angles, angles}, uint64_t(1));
    Value cos = f.op<TypeAsOp>(f.op<CosOp>(both), f.argument(0));
    Value sin = f.op<TypeAsOp>(f.op<SinOp>(both), f.argument(0));
    f.end({cos, sin});
    return function;
  }

  /// (hidden, cos, sin) -> hidden.
  mlir::func::FuncOp layer() {
    std::string name = config.classPrefix + "DecoderLayer";
    FunctionWriter f(builder, name, "model.layers.*");
    f.input(hiddenType);
    f.input(tableType);
    f.input(tableType);
    declareLayer(f);
    auto function = f.begin({hiddenType});
    Value hidden = f.argument(0);
    Value normed = norm(f, hidden, "input_layernorm");
    Value attended = attention(f, normed, f.argument(1), f.argument(2));
    f.enter("");
    hidden = f.op<AddTensorOp>(hidden, attended);
    normed = norm(f, hidden, "post_attention_layernorm");
    Value fed = mlp(f, normed);
    f.enter("");
    f.end(f.op<AddTensorOp>(hidden, fed));
    return function;
  }

  /// (hidden, labels [B, S]) -> 0-d loss.
  mlir::func::FuncOp head() {
    std::string name = config.classPrefix + "Head";
    llvm::StringRef table = config.tieWordEmbeddings
                                ? "model.embed_tokens.weight"
                                : "lm_head.weight";
    FunctionWriter f(builder, name, "");
    f.input(hiddenType);
    f.input(idsType);
    f.param("model.norm.weight", {config.hiddenSize});
    f.param(table, {config.vocabSize, config.hiddenSize});
    auto function = f.begin({tensor({})});
    Value normed = norm(f, f.argument(0), "model.norm");
    f.enter("lm_head");
    Value rows = f.view(normed, {tokens, config.hiddenSize});
    Value logits = f.op<MmOp>(rows, f.op<TOp>(f.param(table)));
    f.enter("");
    f.end(f.crossEntropy(logits, f.argument(1)));
    return function;
  }

private:
  RankedTensorType tensor(llvm::ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, f32);
  }

  /// theta^(-2i/d), scaled as the rope type asks for. A number divided by a
  /// tensor is PyTorch's reciprocal times the number.
  Value inverseFrequencies(FunctionWriter &f) {
    const Rope &rope = config.rope;
    Value steps =
        f.op<ArangeOp>(uint64_t(0), uint64_t(config.headDim), uint64_t(2), f32);
    Value exponents = f.op<DivScalarOp>(steps, double(config.headDim));
    Value inverse =
        f.op<ReciprocalOp>(f.op<PowScalarOp>(exponents, rope.theta));
    switch (rope.kind) {
    case Rope::Kind::Default:
      return inverse;
    case Rope::Kind::Linear:
      return f.op<DivScalarOp>(inverse, rope.factor);
    case Rope::Kind::Llama3:
      return llama3Frequencies(f, inverse);
    }
    llvm_unreachable("covered switch");
  }

  /// Llama 3.1: long wavelengths are divided by `factor`, short ones stay, and
  /// those between are interpolated.
  Value llama3Frequencies(FunctionWriter &f, Value inverse) {
    const Rope &rope = config.rope;
    double context = double(rope.originalMaxPositions);
    double longest = context / rope.lowFrequencyFactor;
    double shortest = context / rope.highFrequencyFactor;
    Value wavelength =
        f.op<MulScalarOp>(f.op<ReciprocalOp>(inverse), 2 * std::numbers::pi);
    Value isLong = f.op<GtScalarOp>(wavelength, longest);
    Value divided = f.op<DivScalarOp>(inverse, rope.factor);
    Value coarse = f.op<WhereSelfOp>(isLong, divided, inverse);
    Value turns = f.op<MulScalarOp>(f.op<ReciprocalOp>(wavelength), context);
    Value smooth =
        f.op<DivScalarOp>(f.op<SubScalarOp>(turns, rope.lowFrequencyFactor),
                          rope.highFrequencyFactor - rope.lowFrequencyFactor);
    Value far = f.op<DivScalarOp>(
        f.op<MulTensorOp>(f.op<RsubScalarOp>(smooth, 1.0), coarse),
        rope.factor);
    Value mixed = f.op<AddTensorOp>(far, f.op<MulTensorOp>(smooth, coarse));
    Value isShort = f.op<LtScalarOp>(wavelength, shortest);
    Value notShort = f.op<BitwiseNotOp>(isShort);
    Value notLong = f.op<BitwiseNotOp>(isLong);
    Value between = f.op<LogicalAndOp>(notShort, notLong);
    return f.op<WhereSelfOp>(between, mixed, coarse);
  }

  void declareLinear(FunctionWriter &f, llvm::StringRef module, int64_t out,
                     int64_t in, bool bias) {
    f.param((module + ".weight").str(), {out, in});
    if (bias)
      f.param((module + ".bias").str(), {out});
  }

  /// Parameters in the order of named_parameters().
  void declareLayer(FunctionWriter &f) {
    const LlamaConfig &c = config;
    int64_t queries = c.heads * c.headDim;
    int64_t keys = c.keyValueHeads * c.headDim;
    int64_t hidden = c.hiddenSize, inner = c.intermediateSize;
    bool bias = c.queryKeyValueBias;
    declareLinear(f, "self_attn.q_proj", queries, hidden, bias);
    declareLinear(f, "self_attn.k_proj", keys, hidden, bias);
    declareLinear(f, "self_attn.v_proj", keys, hidden, bias);
    declareLinear(f, "self_attn.o_proj", hidden, queries, c.outputBias);
    if (c.queryKeyNorm) {
      f.param("self_attn.q_norm.weight", {c.headDim});
      f.param("self_attn.k_norm.weight", {c.headDim});
    }
    declareLinear(f, "mlp.gate_proj", inner, hidden, c.mlpBias);
    declareLinear(f, "mlp.up_proj", inner, hidden, c.mlpBias);
    declareLinear(f, "mlp.down_proj", hidden, inner, c.mlpBias);
    f.param("input_layernorm.weight", {hidden});
    f.param("post_attention_layernorm.weight", {hidden});
  }

  /// `rows` [tokens, in] -> [tokens, out].
  Value linear(FunctionWriter &f, Value rows, llvm::StringRef module,
               bool bias) {
    f.enter(module);
    Value weight = f.op<TOp>(f.param((module + ".weight").str()));
    if (bias)
      return f.op<AddmmOp>(f.param((module + ".bias").str()), rows, weight);
    return f.op<MmOp>(rows, weight);
  }

  Value norm(FunctionWriter &f, Value x, llvm::StringRef module) {
    f.enter(module);
    std::string name = (module + ".weight").str();
    return f.op<RmsNormOp>(x, f.param(name), f.number(config.rmsNormEps));
  }

  /// One of q, k, v: [tokens, hidden] -> [B, S, heads, head_dim].
  Value heads(FunctionWriter &f, Value rows, llvm::StringRef module,
              int64_t count) {
    Value x = linear(f, rows, module, config.queryKeyValueBias);
    return f.view(x, {batch, sequence, count, config.headDim});
  }

  /// x * cos + rotate_half(x) * sin, for x [B, S, heads, head_dim] and tables
  /// [S, 1, head_dim].
  Value rotate(FunctionWriter &f, Value x, Value cos, Value sin) {
    uint64_t half = uint64_t(config.headDim / 2), dim = 3;
    Value first = f.op<SliceTensorOp>(x, dim, uint64_t(0), half, uint64_t(1));
    Value second = f.op<SliceTensorOp>(x, dim, half, 2 * half, uint64_t(1));
    Value plain = f.op<MulTensorOp>(x, cos);
    Value turned = f.op<CatOp>(ValueRange{f.op<NegOp>(second), first}, dim);
    return f.op<AddTensorOp>(plain, f.op<MulTensorOp>(turned, sin));
  }

  Value attention(FunctionWriter &f, Value hidden, Value cos, Value sin) {
    f.enter("self_attn");
    Value rows = f.view(hidden, {tokens, config.hiddenSize});
    Value q = heads(f, rows, "self_attn.q_proj", config.heads);
    Value k = heads(f, rows, "self_attn.k_proj", config.keyValueHeads);
    Value v = heads(f, rows, "self_attn.v_proj", config.keyValueHeads);
    if (config.queryKeyNorm) {
      q = norm(f, q, "self_attn.q_norm");
      k = norm(f, k, "self_attn.k_norm");
    }
    f.enter("self_attn");
    cos = f.op<UnsqueezeOp>(cos, uint64_t(1));
    sin = f.op<UnsqueezeOp>(sin, uint64_t(1));
    q = rotate(f, q, cos, sin);
    k = rotate(f, k, cos, sin);
    auto headsFirst = [&](Value x) {
      return f.op<TransposeIntOp>(x, uint64_t(1), uint64_t(2));
    };
    q = headsFirst(q);
    k = headsFirst(k);
    v = headsFirst(v);
    Value mixed = f.op<ScaledDotProductAttentionOp>(
        q, k, v, /*is_causal=*/true,
        f.number(std::pow(double(config.headDim), -0.5)));
    Value joined =
        f.view(headsFirst(mixed), {tokens, config.heads * config.headDim});
    Value out = linear(f, joined, "self_attn.o_proj", config.outputBias);
    return f.view(out, hiddenType.getShape());
  }

  Value mlp(FunctionWriter &f, Value hidden) {
    f.enter("mlp");
    Value rows = f.view(hidden, {tokens, config.hiddenSize});
    Value gate = linear(f, rows, "mlp.gate_proj", config.mlpBias);
    f.enter("mlp.act_fn");
    gate = f.op<SiluOp>(gate);
    Value up = linear(f, rows, "mlp.up_proj", config.mlpBias);
    f.enter("mlp");
    Value product = f.op<MulTensorOp>(gate, up);
    Value down = linear(f, product, "mlp.down_proj", config.mlpBias);
    return f.view(down, hiddenType.getShape());
  }

  OpBuilder &builder;
  const LlamaConfig &config;
  int64_t batch, sequence, tokens;
  Type f32;
  RankedTensorType hiddenType, tableType, idsType;
};

} // namespace

void accel::huggingface::buildSegments(OpBuilder &builder,
                                       const LlamaConfig &config,
                                       const BuildOptions &options) {
  SegmentBuilder segments(builder, config, options);
  auto embedding = segments.embedding();
  auto rotary = segments.rotary();
  auto layer = segments.layer();
  auto head = segments.head();
  GraphWriter graph(builder, options);
  Value hidden =
      graph.call(embedding, graph.inputIds(), "model.embed_tokens").front();
  ValueRange tables = graph.call(rotary, hidden, "model.rotary_emb");
  for (int64_t i = 0; i < config.layers; ++i)
    hidden = graph
                 .call(layer, {hidden, tables[0], tables[1]},
                       "model.layers." + std::to_string(i))
                 .front();
  graph.end(graph.call(head, {hidden, graph.labels()}, "").front());
}
