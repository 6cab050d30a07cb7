//===- BuildGpt2.cpp - Segments and graph of GPT-2 ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/Activate.h"
#include "frontends/HuggingFace/BuildModel.h"
#include "frontends/HuggingFace/FunctionWriter.h"

#include <cmath>

using namespace accel;
using namespace accel::huggingface;
using namespace accel::aten;
using mlir::OpBuilder;
using mlir::RankedTensorType;
using mlir::Value;

namespace {

class Gpt2Forward {
public:
  Gpt2Forward(OpBuilder &builder, const Gpt2Config &config,
              const BuildOptions &options)
      : builder(builder), config(config), batch(options.microBatch),
        sequence(options.sequenceLength), tokens(batch * sequence),
        documents(options.hasDocuments()),
        hiddenType(tensor({batch, sequence, config.hiddenSize})),
        idsType(
            RankedTensorType::get({batch, sequence}, builder.getI64Type())) {}

  /// The embedding reads where each token is in its document.
  bool embedsPositions() const { return documents && config.learnedPositions; }

  /// (ids [B, S], positions in documents [B, S] where it reads them) -> hidden
  /// [B, S, hidden].
  mlir::func::FuncOp embedding() {
    FunctionWriter f(builder, "Embedding", "transformer");
    f.input(idsType);
    if (embedsPositions())
      f.input(idsType);
    f.param("wte.weight", {config.vocabSize, config.hiddenSize});
    if (config.learnedPositions)
      f.param("wpe.weight", {config.maxPositions, config.hiddenSize});
    auto function = f.begin({hiddenType});
    auto rows = [&](llvm::StringRef module, Value indices) {
      f.enter(module);
      return f.op<EmbeddingOp>(f.param((module + ".weight").str()), indices,
                               uint64_t(-1));
    };
    Value hidden = rows("wte", f.argument(0));
    if (config.learnedPositions) {
      f.enter("");
      Value positions;
      if (documents) {
        positions = f.argument(1);
      } else {
        positions = f.op<ArangeOp>(uint64_t(0), uint64_t(sequence), uint64_t(1),
                                   builder.getI64Type());
        positions = f.op<UnsqueezeOp>(positions, uint64_t(0));
      }
      Value learned = rows("wpe", positions);
      f.enter("");
      hidden = f.op<AddTensorOp>(hidden, learned);
    }
    f.enter("drop");
    f.end(f.dropout(hidden, config.embeddingDropout));
    return function;
  }

  /// (hidden, the documents' mask where there are any) -> hidden.
  mlir::func::FuncOp layer() {
    FunctionWriter f(builder, "GPT2Block", "transformer.h.*");
    int64_t hidden = config.hiddenSize, inner = config.intermediateSize;
    f.input(hiddenType);
    if (documents)
      f.input(tensor({batch, 1, sequence, sequence}));
    declareNorm(f, "ln_1");
    declareLinear(f, "attn.c_attn", hidden, 3 * hidden);
    declareLinear(f, "attn.c_proj", hidden, hidden);
    declareNorm(f, "ln_2");
    declareLinear(f, "mlp.c_fc", hidden, inner);
    declareLinear(f, "mlp.c_proj", inner, hidden);
    auto function = f.begin({hiddenType});
    Value x = f.argument(0);
    Value attended = attention(f, norm(f, x, "ln_1"));
    f.enter("");
    x = f.op<AddTensorOp>(attended, x);
    Value fed = mlp(f, norm(f, x, "ln_2"));
    f.enter("");
    f.end(f.op<AddTensorOp>(x, fed));
    return function;
  }

  /// (hidden, labels [B, S]) -> 0-d loss.
  mlir::func::FuncOp head() {
    llvm::StringRef table =
        config.tieWordEmbeddings ? "transformer.wte.weight" : "lm_head.weight";
    FunctionWriter f(builder, "GPT2Head", "");
    f.input(hiddenType);
    f.input(idsType);
    declareNorm(f, "transformer.ln_f");
    f.param(table, {config.vocabSize, config.hiddenSize});
    auto function = f.begin({tensor({})});
    Value normed = norm(f, f.argument(0), "transformer.ln_f");
    f.enter("lm_head");
    Value rows = f.view(normed, {tokens, config.hiddenSize});
    Value logits = f.op<MmOp>(rows, f.op<TOp>(f.param(table)));
    f.enter("");
    f.end(f.crossEntropy(logits, f.argument(1)));
    return function;
  }

private:
  RankedTensorType tensor(llvm::ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getF32Type());
  }

  void declareNorm(FunctionWriter &f, llvm::StringRef module) {
    f.param((module + ".weight").str(), {config.hiddenSize});
    if (config.biases)
      f.param((module + ".bias").str(), {config.hiddenSize});
  }
  void declareLinear(FunctionWriter &f, llvm::StringRef module, int64_t in,
                     int64_t out) {
    f.param((module + ".weight").str(), {in, out});
    if (config.biases)
      f.param((module + ".bias").str(), {out});
  }

  Value norm(FunctionWriter &f, Value x, llvm::StringRef module) {
    f.enter(module);
    Value bias = config.biases ? f.param((module + ".bias").str()) : Value();
    return f.op<LayerNormOp>(x, f.param((module + ".weight").str()), bias,
                             f.number(config.layerNormEps));
  }

  /// Conv1D: `rows` [tokens, in] -> [tokens, out].
  Value linear(FunctionWriter &f, Value rows, llvm::StringRef module) {
    f.enter(module);
    Value weight = f.param((module + ".weight").str());
    if (config.biases)
      return f.op<AddmmOp>(f.param((module + ".bias").str()), rows, weight);
    return f.op<MmOp>(rows, weight);
  }

  Value attention(FunctionWriter &f, Value normed) {
    int64_t hidden = config.hiddenSize, headDim = hidden / config.heads;
    Value rows = f.view(normed, {tokens, hidden});
    Value joint = linear(f, rows, "attn.c_attn");
    f.enter("attn");
    joint = f.view(joint, {batch, sequence, 3 * hidden});
    Value parts[3];
    for (int64_t i = 0; i < 3; ++i) {
      Value part = f.op<SliceTensorOp>(joint, uint64_t(2), uint64_t(i * hidden),
                                       uint64_t((i + 1) * hidden), uint64_t(1));
      part = f.view(part, {batch, sequence, config.heads, headDim});
      parts[i] = f.op<TransposeIntOp>(part, uint64_t(1), uint64_t(2));
    }
    double scale =
        config.scaleAttention ? std::pow(double(headDim), -0.5) : 1.0;
    Value mixed = f.attention(parts[0], parts[1], parts[2], scale,
                              documents ? f.argument(1) : Value(), 0, 0,
                              /*byParts=*/false, config.attentionDropout);
    mixed = f.op<TransposeIntOp>(mixed, uint64_t(1), uint64_t(2));
    Value out = linear(f, f.view(mixed, {tokens, hidden}), "attn.c_proj");
    f.enter("attn.resid_dropout");
    return f.dropout(f.view(out, hiddenType.getShape()),
                     config.residualDropout);
  }

  Value mlp(FunctionWriter &f, Value normed) {
    Value rows = f.view(normed, {tokens, config.hiddenSize});
    Value inner = linear(f, rows, "mlp.c_fc");
    f.enter("mlp.act");
    inner = activate(f, config.activation, inner);
    Value out = linear(f, inner, "mlp.c_proj");
    f.enter("mlp.dropout");
    return f.dropout(f.view(out, hiddenType.getShape()),
                     config.residualDropout);
  }

  OpBuilder &builder;
  const Gpt2Config &config;
  int64_t batch, sequence, tokens;
  bool documents;
  RankedTensorType hiddenType, idsType;
};

} // namespace

void accel::huggingface::buildSegments(OpBuilder &builder,
                                       const Gpt2Config &config,
                                       const BuildOptions &options) {
  Gpt2Forward segments(builder, config, options);
  auto embedding = segments.embedding();
  auto layer = segments.layer();
  auto head = segments.head();
  mlir::func::FuncOp mask;
  if (options.hasDocuments())
    mask = attentionMask(builder, "transformer", config.hiddenSize, options);
  GraphWriter graph(builder, options);
  const Value positions = graph.input(positionsInput);
  llvm::SmallVector<Value> embedded{graph.inputIds()};
  if (segments.embedsPositions())
    embedded.push_back(positions);
  Value hidden = graph.call(embedding, embedded, "transformer").front();
  llvm::SmallVector<Value> operands{hidden};
  if (mask)
    operands.append(
        llvm::to_vector(graph.call(mask, {hidden, positions}, "transformer")));
  for (int64_t i = 0; i < config.layers; ++i)
    operands.front() =
        graph.call(layer, operands, "transformer.h." + std::to_string(i))
            .front();
  hidden = operands.front();
  graph.end(graph.call(head, {hidden, graph.labels()}, "").front());
}
