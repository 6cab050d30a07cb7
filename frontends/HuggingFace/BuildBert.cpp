//===- BuildBert.cpp - Segments and graph of BERT and RoBERTa -------------===//
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

constexpr const char *projections[] = {"query", "key", "value"};

class BertForward {
public:
  BertForward(OpBuilder &builder, const BertConfig &config,
              const BuildOptions &options)
      : builder(builder), config(config), batch(options.microBatch),
        sequence(options.sequenceLength), tokens(batch * sequence),
        hidden(config.hiddenSize),
        masked(options.inputs.count("attention_mask")),
        typed(options.inputs.count("token_type_ids")),
        embeddingsPath(std::string(config.base()) + ".embeddings"),
        layerPath(std::string(config.base()) + ".encoder.layer.*"),
        hiddenType(RankedTensorType::get({batch, sequence, hidden},
                                         builder.getF32Type())),
        idsType(
            RankedTensorType::get({batch, sequence}, builder.getI64Type())) {}

  /// (ids [B, S], token types [B, S] if there are any) -> hidden.
  mlir::func::FuncOp embeddings() {
    EncoderWriter f(builder, "Embeddings", embeddingsPath);
    f.input(idsType);
    if (typed)
      f.input(idsType);
    f.param("word_embeddings.weight", {config.vocabSize, hidden});
    f.param("token_type_embeddings.weight", {config.typeVocabSize, hidden});
    f.param("position_embeddings.weight", {config.positionRows, hidden});
    f.declareNorm("LayerNorm", hidden);
    auto function = f.begin({hiddenType});
    const int64_t padding = config.padding.value_or(-1);
    Value positions = config.roberta ? countedPositions(f) : Value();
    Value x = f.lookUp("word_embeddings", f.argument(0), padding);
    // Without types all are of type 0: one list of them for each list of
    // positions.
    Value types =
        typed ? f.lookUp("token_type_embeddings", f.argument(1))
              : f.firstRows("token_type_embeddings", 1,
                            config.roberta ? batch : 1, batch, sequence);
    f.enter("");
    x = f.op<AddTensorOp>(x, types);
    if (config.roberta) {
      Value rows = f.lookUp("position_embeddings", positions, padding);
      f.enter("");
      x = f.op<AddTensorOp>(x, rows);
    } else {
      Value rows = f.firstRows("position_embeddings", sequence, 1, 1, sequence);
      f.enter("");
      x = f.op<AddTensorOp>(x, rows);
    }
    x = f.norm(x, "LayerNorm", config.layerNormEps);
    f.enter("dropout");
    f.end(f.dropout(x, config.hiddenDropout));
    return function;
  }

  /// (hidden, added mask if there is any) -> hidden.
  mlir::func::FuncOp layer() {
    EncoderWriter f(builder, config.roberta ? "RobertaLayer" : "BertLayer",
                    layerPath);
    f.input(hiddenType);
    if (masked)
      f.input(f.floats({batch, 1, 1, sequence}));
    for (const char *part : projections)
      f.declareLinear((llvm::Twine("attention.self.") + part).str(), hidden,
                      hidden);
    declareOutput(f, "attention.output", hidden);
    f.declareLinear("intermediate.dense", hidden, config.intermediateSize);
    declareOutput(f, "output", config.intermediateSize);
    auto function = f.begin({hiddenType});
    Value x = f.view(f.argument(0), {tokens, hidden});
    Value parts[3];
    for (auto [i, part] : llvm::enumerate(projections))
      parts[i] = f.linear(x, (llvm::Twine("attention.self.") + part).str());
    f.enter("attention.self");
    const int64_t headDim = hidden / config.heads;
    AttentionShape shape{batch,
                         sequence,
                         sequence,
                         config.heads,
                         headDim,
                         /*causal=*/false,
                         std::pow(double(headDim), -0.5),
                         config.attentionDropout};
    Value mixed = f.attention(shape, parts[0], parts[1], parts[2],
                              masked ? f.argument(1) : Value());
    x = output(f, mixed, x, "attention.output");
    Value inner = f.linear(x, "intermediate.dense");
    f.enter("intermediate.intermediate_act_fn");
    inner = activate(f, config.activation, inner);
    x = output(f, inner, x, "output");
    f.enter("");
    f.end(f.view(x, hiddenType.getShape()));
    return function;
  }

  /// (hidden, labels) -> 0-d loss.
  mlir::func::FuncOp head() {
    if (config.classifier)
      return classifier();
    const std::string head = config.roberta ? "lm_head" : "cls.predictions";
    const std::string dense =
        config.roberta ? "lm_head.dense" : "cls.predictions.transform.dense";
    const std::string norm = config.roberta
                                 ? "lm_head.layer_norm"
                                 : "cls.predictions.transform.LayerNorm";
    const std::string weight =
        config.tieWordEmbeddings
            ? std::string(config.base()) + ".embeddings.word_embeddings.weight"
            : head + ".decoder.weight";
    const std::string bias =
        head + (config.tieWordEmbeddings ? ".bias" : ".decoder.bias");
    EncoderWriter f(builder, "MaskedLMHead", "");
    f.input(hiddenType);
    f.input(idsType);
    f.param(weight, {config.vocabSize, hidden});
    f.param(bias, {config.vocabSize});
    f.declareLinear(dense, hidden, hidden);
    f.declareNorm(norm, hidden);
    auto function = f.begin({f.floats({})});
    Value x = f.linear(f.view(f.argument(0), {tokens, hidden}), dense);
    // RoBERTa's head is a gelu whatever the layers have.
    x = activate(f, config.roberta ? Activation::Gelu : config.activation, x);
    x = f.norm(x, norm, config.layerNormEps);
    f.enter(head + ".decoder");
    Value logits = f.op<AddmmOp>(f.param(bias), x, f.op<TOp>(f.param(weight)));
    f.enter("");
    f.end(f.plainCrossEntropy(logits, f.argument(1)));
    return function;
  }

  mlir::RankedTensorType labels() const {
    return config.classifier ? labelsType(builder, batch, *config.classifier)
                             : idsType;
  }
  mlir::RankedTensorType ids() const { return idsType; }
  bool hasMask() const { return masked; }
  bool hasTypes() const { return typed; }

private:
  /// RoBERTa counts the tokens that are no padding, from padding + 1.
  Value countedPositions(EncoderWriter &f) {
    Value ids = f.argument(0);
    Value real =
        f.op<ToCopyOp>(f.op<NeScalarOp>(ids, *config.padding), f.i64());
    Value count = f.op<CumsumOp>(real, uint64_t(1));
    count = f.op<MulTensorOp>(count, real);
    return f.op<AddScalarOp>(count, *config.padding);
  }

  void declareOutput(EncoderWriter &f, llvm::StringRef module, int64_t in) {
    f.declareLinear((module + ".dense").str(), in, hidden);
    f.declareNorm((module + ".LayerNorm").str(), hidden);
  }
  Value output(EncoderWriter &f, Value x, Value residual,
               llvm::StringRef module) {
    x = f.linear(x, (module + ".dense").str());
    f.enter((module + ".dropout").str());
    x = f.dropout(x, config.hiddenDropout);
    f.enter(module);
    x = f.op<AddTensorOp>(x, residual);
    return f.norm(x, (module + ".LayerNorm").str(), config.layerNormEps);
  }

  /// BERT's pooler and classifier, or RoBERTa's classification head: the same
  /// operators under other names.
  mlir::func::FuncOp classifier() {
    const char *dense =
        config.roberta ? "classifier.dense" : "bert.pooler.dense";
    const char *out = config.roberta ? "classifier.out_proj" : "classifier";
    EncoderWriter f(builder, "Classifier", "");
    f.input(hiddenType);
    f.input(labels());
    f.declareLinear(dense, hidden, hidden);
    f.declareLinear(out, hidden, config.classifier->labels);
    auto function = f.begin({f.floats({})});
    const char *drop = config.roberta ? "classifier.dropout" : "dropout";
    auto dropped = [&](Value x) {
      f.enter(drop);
      return f.dropout(x, config.classifierDropout);
    };
    Value pooled = f.firstToken(f.argument(0));
    if (config.roberta)
      pooled = dropped(pooled);
    pooled = dropped(f.op<TanhOp>(f.linear(pooled, dense)));
    Value logits = f.linear(pooled, out);
    f.enter("");
    f.end(f.classify(logits, f.argument(1), *config.classifier));
    return function;
  }

  OpBuilder &builder;
  const BertConfig &config;
  int64_t batch, sequence, tokens, hidden;
  bool masked, typed;
  std::string embeddingsPath, layerPath;
  RankedTensorType hiddenType, idsType;
};

} // namespace

void accel::huggingface::buildSegments(OpBuilder &builder,
                                       const BertConfig &config,
                                       const BuildOptions &options) {
  BertForward segments(builder, config, options);
  const std::string base = config.base();
  auto embeddings = segments.embeddings();
  mlir::func::FuncOp mask;
  if (segments.hasMask())
    mask = addedMask(builder, base, options.microBatch, options.sequenceLength);
  auto layer = segments.layer();
  auto head = segments.head();
  llvm::SmallVector<GraphWriter::Input> batch = {{"input_ids", segments.ids()},
                                                 {"labels", segments.labels()}};
  if (segments.hasMask())
    batch.push_back({"attention_mask", segments.ids()});
  if (segments.hasTypes())
    batch.push_back({"token_type_ids", segments.ids()});
  GraphWriter graph(builder, batch);
  llvm::SmallVector<Value> inputs = {graph.inputIds()};
  if (segments.hasTypes())
    inputs.push_back(graph.input("token_type_ids"));
  llvm::SmallVector<Value> state = {
      graph.call(embeddings, inputs, base + ".embeddings").front()};
  if (mask)
    state.push_back(
        graph.call(mask, graph.input("attention_mask"), base).front());
  for (int64_t i = 0; i < config.layers; ++i)
    state[0] =
        graph.call(layer, state, base + ".encoder.layer." + std::to_string(i))
            .front();
  graph.end(graph.call(head, {state[0], graph.labels()}, "").front());
}
