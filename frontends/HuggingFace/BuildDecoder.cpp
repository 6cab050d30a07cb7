//===- BuildDecoder.cpp - Segments and graph of a decoder -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Eager.h"
#include "frontends/HuggingFace/Activate.h"
#include "frontends/HuggingFace/BuildMixture.h"
#include "frontends/HuggingFace/BuildModel.h"
#include "frontends/HuggingFace/BuildTower.h"
#include "frontends/HuggingFace/DecoderParts.h"
#include "frontends/HuggingFace/RopeTables.h"
#include "frontends/HuggingFace/TokenPredictors.h"

using namespace accel;
using namespace accel::huggingface;
using namespace accel::aten;
using mlir::OpBuilder;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::ValueRange;

namespace {

class DecoderForward {
public:
  DecoderForward(OpBuilder &builder, const Decoder &decoder,
                 const ModelInfo &info, const BuildOptions &options)
      : builder(builder), d(decoder), info(info), batch(options.microBatch),
        sequence(options.sequenceLength), tokens(batch * sequence),
        documents(options.hasDocuments()),
        hiddenType(tensor({batch, sequence, d.hiddenSize})),
        idsType(
            RankedTensorType::get({batch, sequence}, builder.getI64Type())) {}

  bool hasAlibi() const { return d.alibi != Decoder::Alibi::None; }

  /// Layers read a mask that is made once: that of documents, or all of it
  /// where attention is no kernel.
  bool takesMask() const { return documents || !d.attention.sinks.empty(); }

  /// Where the embedding is called: its own module, or the one that adds
  /// positions or projects.
  std::string embeddingPath() const {
    bool alone = d.positions.empty() && d.projectIn.empty();
    return alone ? d.embedding : parentOf(d.embedding);
  }

  std::string basePath() const { return parentOf(d.embedding); }

  /// The embedding reads where each token is in its document.
  bool embedsPositions() const { return documents && !d.positions.empty(); }

  /// (ids [B, S], positions in documents [B, S] where it reads them) -> hidden
  /// [B, S, hidden_size].
  mlir::func::FuncOp embedding() {
    std::string path = embeddingPath();
    FunctionWriter f(builder, "Embedding", path);
    DecoderParts parts(f, d);
    auto relative = [&](const std::string &fqn) {
      return fqn == path ? std::string() : fqn.substr(path.size() + 1);
    };
    f.input(idsType);
    if (embedsPositions())
      f.input(idsType);
    for (const std::string &fqn : {d.embedding, d.positions, d.projectIn})
      if (!fqn.empty())
        declare(f, fqn, relative(fqn));
    auto function = f.begin({hiddenType});
    Value hidden = rows(f, relative(d.embedding), f.argument(0),
                        d.paddingIndex.value_or(-1));
    if (d.embeddingScale != 1)
      hidden = f.op<MulTensorOp>(hidden, number(f, d.embeddingScale, hidden));
    if (d.embeddingFactor != 1) {
      f.enter("");
      hidden = f.op<MulScalarOp>(hidden, d.embeddingFactor);
    }
    if (!d.projectIn.empty()) {
      int64_t width = f.shape(hidden).back();
      hidden =
          parts.linear(f.view(hidden, {tokens, width}), relative(d.projectIn));
      hidden = f.view(hidden, hiddenType.getShape());
    }
    if (!d.positions.empty()) {
      f.enter("");
      int64_t first = d.positionOffset;
      Value positions;
      if (documents) {
        positions = f.argument(1);
        if (first)
          positions = f.op<AddScalarOp>(positions, first);
      } else {
        positions = f.op<ArangeOp>(uint64_t(first), uint64_t(first + sequence),
                                   uint64_t(1), builder.getI64Type());
        positions = f.op<UnsqueezeOp>(positions, uint64_t(0));
      }
      if (d.positionsOfMask && !documents)
        positions.getDefiningOp()->setAttr(perSampleAttr,
                                           builder.getI64IntegerAttr(batch));
      Value learned = rows(f, relative(d.positions), positions, -1);
      f.enter("");
      hidden = f.op<AddTensorOp>(hidden, learned);
    }
    f.enter("");
    f.end(f.dropout(hidden, d.dropout.embedding));
    return function;
  }

  /// (hidden) -> cos, sin [S, width], in the dtype of hidden or in fp32.
  mlir::func::FuncOp rotary(size_t index) {
    const Rope &rope = d.ropes[index];
    std::string name = d.classPrefix + "RotaryEmbedding" +
                       (index ? "." + std::to_string(index) : "");
    FunctionWriter f(builder, name, d.rotary);
    f.input(hiddenType);
    auto function = f.begin({tableType(rope), tableType(rope)});
    if (d.positionsOfMask && !documents)
      function->setAttr(perSampleAttr, builder.getI64IntegerAttr(batch));
    auto [cos, sin] = ropeTables(f, rope, d.headDim, sequence, tableOrder());
    if (!d.wideRotary) {
      cos = f.op<TypeAsOp>(cos, f.argument(0));
      sin = f.op<TypeAsOp>(sin, f.argument(0));
    }
    f.end({cos, sin});
    return function;
  }

  /// (hidden) -> what is added to the scores, [1, heads, 1, S].
  mlir::func::FuncOp positionBias() {
    std::string name = d.classPrefix + "Alibi", path = basePath();
    FunctionWriter f(builder, name, path);
    f.input(hiddenType);
    auto function = f.begin({biasType()});
    Value bias = alibi(f, d, sequence);
    if (!wideBias())
      bias = f.op<TypeAsOp>(bias, f.argument(0));
    f.end(bias);
    return function;
  }

  /// The router of these layers has a bias for its choice.
  bool biasesChoice(const DecoderLayerKind &kind) const {
    return kind.sparse && d.mixture.sigmoid;
  }

  /// (hidden, cos and sin, or bias, the documents' mask and the bias of the
  /// router's choice, where there are any) -> hidden; with a load balancing
  /// loss also what that needs of a layer with experts. `first` is a layer of
  /// the kind.
  mlir::func::FuncOp layer(const DecoderLayerKind &kind, int64_t first,
                           const std::string &suffix) {
    std::string name = d.layerClass + suffix, path = d.layers + ".*";
    FunctionWriter f(builder, name, path);
    DecoderParts parts(f, d);
    f.input(hiddenType);
    for (int i = 0; i < 2 && !d.ropes.empty(); ++i)
      f.input(tableType(d.ropes[size_t(kind.rope)]));
    if (hasAlibi())
      f.input(biasType());
    if (takesMask())
      f.input(tensor({batch, 1, sequence, sequence}));
    const unsigned choiceBias = f.inputs();
    if (biasesChoice(kind))
      f.input(tensor({d.mixture.experts}));
    f.params(info, d.layers + "." + std::to_string(first));
    llvm::SmallVector<mlir::Type> types{hiddenType};
    if (kind.sparse && d.mixture.auxiliary)
      types.append(2, tensor({d.mixture.experts}));
    auto function = f.begin(types);
    if (!d.ropes.empty() && d.wideRotary)
      for (unsigned i : {1, 2})
        f.fixType(i);
    if (hasAlibi() && wideBias())
      f.fixType(1);
    if (biasesChoice(kind))
      f.fixType(choiceBias);

    Value x = f.argument(0);
    const Value bias =
        biasesChoice(kind) ? Value(f.argument(choiceBias)) : Value();
    if (kind.blocks != DecoderLayerKind::Blocks::Both) {
      f.end(residual(f, x, alone(f, kind, parts.norm(x, d.beforeBlock), bias)));
      return function;
    }
    Value normed = parts.norm(x, d.beforeAttention);
    Value attended = parts.norm(
        kind.delta ? writeDelta(f, d, normed)
                   : writeAttention(f, d, kind, attentionInputs(f, normed)),
        d.ofAttention);
    if (d.parallel) {
      if (d.beforeMlp != d.beforeAttention)
        normed = parts.norm(x, d.beforeMlp);
      Value fed = mlp(f, normed, d.mlp);
      f.enter("");
      if (d.oneByOne) {
        f.end(f.op<AddTensorOp>(f.op<AddTensorOp>(x, attended), fed));
        return function;
      }
      Value both = f.op<AddTensorOp>(fed, attended);
      f.end(f.op<AddTensorOp>(f.dropout(both, d.dropout.blocks), x));
      return function;
    }
    x = parts.norm(residual(f, x, attended), d.afterAttention);
    MixtureValues mixed;
    Value before = parts.norm(x, d.beforeMlp);
    Value fed =
        kind.sparse ? experts(f, before, bias, mixed) : mlp(f, before, d.mlp);
    fed = parts.norm(fed, d.ofMlp);
    llvm::SmallVector<Value> results{
        parts.norm(residual(f, x, fed), d.afterMlp)};
    if (mixed.counts)
      results.append({mixed.counts, mixed.probabilities});
    f.end(results);
    return function;
  }

  /// (hidden of the layer before, ids [B, S]) -> what layer `index`, which
  /// predicts a further token, reads.
  mlir::func::FuncOp predictorInput(size_t index) {
    const std::string layer = d.layers + "." + std::to_string(index);
    FunctionWriter f(
        builder, d.classPrefix + "TokenPredictor." + std::to_string(index), "");
    DecoderParts parts(f, d);
    f.input(hiddenType);
    f.input(idsType);
    for (const std::string &fqn :
         {d.embedding, layer + ".enorm", layer + ".hnorm", layer + ".eh_proj"})
      declare(f, fqn, fqn);
    auto function = f.begin({hiddenType});
    Value next = parts.norm(
        rows(f, d.embedding, f.argument(1), d.paddingIndex.value_or(-1)),
        layer + ".enorm");
    Value before = parts.norm(f.argument(0), layer + ".hnorm");
    f.enter("");
    Value both = f.op<CatOp>(ValueRange{next, before}, uint64_t(2));
    Value joined = parts.linear(f.view(both, {tokens, 2 * d.hiddenSize}),
                                layer + ".eh_proj");
    f.end(f.view(joined, hiddenType.getShape()));
    return function;
  }

  /// (hidden, labels [B, S]) -> 0-d loss; with a load balancing loss also takes
  /// the counts of all layers with experts, then their probabilities; with
  /// layers that predict further tokens behind all else what each of them
  /// gives.
  mlir::func::FuncOp head() {
    // A tied head has no parameter of its own.
    std::string table = "lm_head.weight";
    if (!shapeOf(table))
      table = d.embedding + ".weight";
    std::string name = d.classPrefix + "Head";
    FunctionWriter f(builder, name, "");
    DecoderParts parts(f, d);
    f.input(hiddenType);
    f.input(idsType);
    const size_t routers =
        d.mixture.auxiliary ? size_t(d.mixture.sparseLayers()) : 0;
    for (size_t i = 0; i < 2 * routers; ++i)
      f.input(tensor({d.mixture.experts}));
    for (int64_t i = 0; i < d.tokenPredictors; ++i)
      f.input(hiddenType);
    for (const std::string &fqn : {d.finalNorm, d.projectOut})
      if (!fqn.empty())
        declare(f, fqn, fqn);
    for (int64_t i = 0; i < d.tokenPredictors; ++i)
      declare(f, predictorNorm(i), predictorNorm(i));
    f.param(table, *shapeOf(table));
    if (const std::vector<int64_t> *bias = shapeOf("lm_head.bias"))
      f.param("lm_head.bias", *bias);
    auto function = f.begin({tensor({})});
    for (size_t i = 0; i < 2 * routers; ++i)
      f.fixType(unsigned(2 + i));
    auto lossOf = [&](Value hidden, const std::string &norm) {
      return lossOfHead(f, hidden, norm, table);
    };
    Value loss = lossOf(f.argument(0), d.finalNorm);
    const double each =
        tokenPredictorWeight / static_cast<double>(d.tokenPredictors);
    for (int64_t i = 0; i < d.tokenPredictors; ++i) {
      Value further =
          lossOf(f.argument(unsigned(2 + 2 * routers + i)), predictorNorm(i));
      loss = f.op<AddTensorOp>(loss, f.op<MulScalarOp>(further, each));
    }
    if (routers) {
      ValueRange given = function.getArguments().slice(2, 2 * routers);
      loss = addBalancingLoss(f, d.mixture, loss, given.take_front(routers),
                              given.drop_front(routers), tokens);
    }
    f.end(loss);
    return function;
  }

private:
  std::string predictorNorm(int64_t i) const {
    const int64_t behind = (d.tokenPredictors - i - 1) * d.predictorLayers + 1;
    const size_t layer = d.kinds.size() - size_t(behind);
    return d.layers + "." + std::to_string(layer) + ".shared_head.norm";
  }

  /// Logits of `hidden` behind its norm, and their loss against the labels.
  Value lossOfHead(FunctionWriter &f, Value hidden, const std::string &norm,
                   const std::string &table) {
    DecoderParts parts(f, d);
    Value rows = f.view(parts.norm(hidden, norm), {tokens, d.hiddenSize});
    if (!d.projectOut.empty())
      rows = parts.linear(rows, d.projectOut);
    f.enter("lm_head");
    Value factor = f.op<TOp>(f.param(table)), bias = f.find("lm_head.bias");
    Value logits =
        bias ? f.op<AddmmOp>(bias, rows, factor) : f.op<MmOp>(rows, factor);
    f.enter("");
    if (d.logitSoftcap != 0) {
      logits = f.op<TanhOp>(f.op<DivScalarOp>(logits, d.logitSoftcap));
      logits = f.op<MulScalarOp>(logits, d.logitSoftcap);
    }
    if (d.logitFactor != 1)
      logits = f.op<MulScalarOp>(logits, d.logitFactor);
    if (d.logitDivisor != 1)
      logits = f.op<DivScalarOp>(logits, d.logitDivisor);
    return f.crossEntropy(logits, f.argument(1));
  }

  RankedTensorType tensor(llvm::ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getF32Type());
  }
  RankedTensorType tableType(const Rope &rope) {
    const int64_t width = rope.width(d.headDim);
    return tensor({sequence, d.halfTables ? width / 2 : width});
  }
  RopeOrder tableOrder() const {
    return d.halfTables           ? RopeOrder::Once
           : d.neighboursOfTables ? RopeOrder::Neighbours
                                  : RopeOrder::Halves;
  }
  RankedTensorType biasType() { return tensor({1, d.heads, 1, sequence}); }
  /// MPT adds its bias to the scores in fp32; Falcon casts it.
  bool wideBias() const { return d.alibi == Decoder::Alibi::Mpt; }

  static std::string parentOf(const std::string &fqn) {
    size_t dot = fqn.rfind('.');
    return dot == std::string::npos ? "" : fqn.substr(0, dot);
  }
  const std::vector<int64_t> *shapeOf(const std::string &fqn) const {
    for (const ParameterInfo &parameter : info.parameters)
      if (parameter.fqn == fqn)
        return &parameter.shape;
    return nullptr;
  }
  /// Weight and bias, where they exist, of a module without children.
  void declare(FunctionWriter &f, const std::string &fqn,
               const std::string &relative) {
    for (const char *name : {"weight", "bias"})
      if (const std::vector<int64_t> *shape = shapeOf(fqn + "." + name))
        f.param(relative.empty() ? name : relative + "." + name, *shape);
  }

  /// A number of the dtype of `like`, [1].
  Value number(FunctionWriter &f, double value, Value like) {
    Value one = f.op<ArangeOp>(uint64_t(1), uint64_t(2), uint64_t(1), f.f32());
    return f.op<TypeAsOp>(f.op<MulScalarOp>(one, value), like);
  }

  Value rows(FunctionWriter &f, const std::string &module, Value indices,
             int64_t padding) {
    f.enter(module);
    Value table = f.param(module.empty() ? "weight" : module + ".weight");
    return f.op<EmbeddingOp>(table, indices, uint64_t(padding));
  }

  AttentionInputs attentionInputs(FunctionWriter &f, Value hidden) {
    AttentionInputs inputs;
    inputs.hidden = hidden;
    inputs.documents = documents;
    unsigned next = 1;
    if (!d.ropes.empty()) {
      inputs.cos = f.argument(next++);
      inputs.sin = f.argument(next++);
    }
    if (takesMask() || hasAlibi())
      inputs.added = f.argument(next);
    return inputs;
  }

  Value residual(FunctionWriter &f, Value x, Value y) {
    f.enter("");
    if (d.residualFactor != 1)
      y = f.op<MulScalarOp>(y, d.residualFactor);
    return d.residualFirst ? f.op<AddTensorOp>(x, y) : f.op<AddTensorOp>(y, x);
  }

  /// The block of a layer that has one alone.
  Value alone(FunctionWriter &f, const DecoderLayerKind &kind, Value normed,
              Value choiceBias) {
    MixtureValues ignored;
    if (kind.blocks == DecoderLayerKind::Blocks::Mamba)
      return writeMamba(f, d, normed);
    if (kind.blocks == DecoderLayerKind::Blocks::Attention)
      return writeAttention(f, d, kind, attentionInputs(f, normed));
    return kind.sparse ? experts(f, normed, choiceBias, ignored)
                       : mlp(f, normed, d.mlp);
  }

  /// Routed experts, between the projections to and from their width where they
  /// have one, and the shared one; `mixed` is what the first give.
  Value experts(FunctionWriter &f, Value hidden, Value choiceBias,
                MixtureValues &mixed) {
    const Mixture &m = d.mixture;
    DecoderParts parts(f, d);
    Value rows = f.view(hidden, {tokens, d.hiddenSize}), narrow;
    if (m.latentSize)
      narrow = parts.linear(rows, m.path + ".fc1_latent_proj");
    mixed = writeMixture(f, m, rows, choiceBias, narrow);
    Value sum = mixed.rows;
    if (m.latentSize)
      sum = parts.linear(sum, m.path + ".fc2_latent_proj");
    sum = f.view(sum, hiddenType.getShape());
    if (m.sharedSize) {
      Value shared = mlp(f, hidden, d.sharedMlp);
      if (!m.sharedGate.empty()) {
        // Qwen2-MoE's order: the shared expert, the others, this projection.
        shared.getDefiningOp()->setAttr(aheadAttr, f.unit(true));
        Value gate = parts.linear(rows, m.sharedGate);
        f.enter(m.path);
        gate = f.view(f.op<SigmoidOp>(gate), {batch, sequence, 1});
        shared = f.op<MulTensorOp>(gate, shared);
      }
      f.enter(m.path);
      sum = f.op<AddTensorOp>(sum, shared);
    }
    return sum;
  }

  Value mlp(FunctionWriter &f, Value hidden, const DecoderMlp &m) {
    DecoderParts parts(f, d);
    f.enter(m.path);
    Value rows = f.view(hidden, {tokens, d.hiddenSize});
    Value down = parts.linear(mlpInner(f, rows, m), m.down);
    return f.dropout(f.view(down, hiddenType.getShape()), d.dropout.mlpOutput);
  }

  Value mlpInner(FunctionWriter &f, Value rows, const DecoderMlp &m) {
    DecoderParts parts(f, d);
    auto act = [&](Value x) {
      f.enter(m.activationPath);
      return activate(f, m.activation, x);
    };
    if (m.layout == DecoderMlp::Layout::Plain)
      return act(parts.linear(rows, m.up));
    if (m.layout == DecoderMlp::Layout::Gated) {
      Value gate = act(parts.linear(rows, m.gate));
      Value up = parts.linear(rows, m.up);
      f.enter(m.path);
      return f.op<MulTensorOp>(gate, up);
    }
    Value both = parts.linear(rows, m.up);
    int64_t inner = f.shape(both).back() / 2;
    f.enter(m.path);
    Value gate = parts.slice(both, 1, 0, inner);
    Value up = parts.slice(both, 1, inner, 2 * inner);
    gate = act(gate);
    f.enter(m.path);
    return f.op<MulTensorOp>(up, gate);
  }

  OpBuilder &builder;
  const Decoder &d;
  const ModelInfo &info;
  int64_t batch, sequence, tokens;
  bool documents;
  RankedTensorType hiddenType, idsType;
};

} // namespace

/// The layers' kinds for sequences of this length: a window that is longer is
/// none. One that is as long hides nothing, but transformers makes a mask.
static std::vector<DecoderLayerKind> kindsOf(const Decoder &decoder,
                                             int64_t sequence) {
  std::vector<DecoderLayerKind> kinds = decoder.kinds;
  for (DecoderLayerKind &kind : kinds)
    if (kind.window > sequence)
      kind.window = 0;
  return kinds;
}

void accel::huggingface::buildSegments(OpBuilder &builder,
                                       const Decoder &decoder,
                                       const ModelInfo &info,
                                       const BuildOptions &options,
                                       const Tower *tower) {
  DecoderForward segments(builder, decoder, info, options);
  auto embedding = segments.embedding();
  ImageReader images(builder, tower, options);
  std::vector<DecoderLayerKind> kinds =
      kindsOf(decoder, options.sequenceLength);
  // Functions by rope and by kind, in order of first use.
  std::vector<int> ropes;
  std::vector<DecoderLayerKind> distinct;
  for (const DecoderLayerKind &kind : kinds) {
    if (!decoder.ropes.empty() && !llvm::is_contained(ropes, kind.rope))
      ropes.push_back(kind.rope);
    if (!llvm::is_contained(distinct, kind))
      distinct.push_back(kind);
  }
  llvm::SmallVector<mlir::func::FuncOp> rotary, layers;
  for (int rope : ropes)
    rotary.push_back(segments.rotary(size_t(rope)));
  mlir::func::FuncOp bias;
  if (segments.hasAlibi())
    bias = segments.positionBias();
  std::vector<int64_t> windows;
  llvm::SmallVector<mlir::func::FuncOp> masks;
  for (const DecoderLayerKind &kind : distinct)
    if (segments.takesMask() && !llvm::is_contained(windows, kind.window)) {
      windows.push_back(kind.window);
      const bool ordered = !decoder.attention.sinks.empty();
      masks.push_back(attentionMask(builder, segments.basePath(),
                                    decoder.hiddenSize, options, kind.window,
                                    ordered));
    }
  for (const DecoderLayerKind &kind : distinct) {
    std::string suffix = suffixOf(kind);
    if (ropes.size() > 1)
      suffix += "." + std::to_string(kind.rope);
    if (decoder.mixture.experts &&
        kind.blocks == DecoderLayerKind::Blocks::Both)
      suffix += kind.sparse ? ".sparse" : ".dense";
    if (!kind.turns)
      suffix += ".nope"; // no positional encoding
    layers.push_back(segments.layer(kind,
                                    llvm::find(kinds, kind) - kinds.begin(),
                                    distinct.size() > 1 ? suffix : ""));
  }
  auto head = segments.head();

  GraphWriter graph(builder, options, info.buffers, images.inputs());
  llvm::SmallVector<Value> embedded{graph.inputIds()};
  if (segments.embedsPositions())
    embedded.push_back(graph.input(positionsInput));
  Value hidden =
      graph.call(embedding, embedded, segments.embeddingPath()).front();
  hidden = images.read(graph, hidden);
  llvm::SmallVector<llvm::SmallVector<Value>> positions;
  for (mlir::func::FuncOp function : rotary)
    positions.push_back(
        llvm::to_vector(graph.call(function, hidden, decoder.rotary)));
  if (bias)
    positions.push_back(
        llvm::to_vector(graph.call(bias, hidden, segments.basePath())));
  llvm::SmallVector<Value> hiding;
  for (mlir::func::FuncOp mask : masks) {
    llvm::SmallVector<Value> operands{hidden};
    if (options.hasDocuments())
      operands.push_back(graph.input(positionsInput));
    hiding.push_back(graph.call(mask, operands, segments.basePath()).front());
  }
  llvm::SmallVector<Value> counts, probabilities;
  const auto each = static_cast<size_t>(decoder.predictorLayers);
  const size_t decoders = kinds.size() - size_t(decoder.tokenPredictors) * each;
  llvm::SmallVector<Value> ends; // of the decoder, and of predictors
  for (auto [i, kind] : llvm::enumerate(kinds)) {
    if (i >= decoders && (i - decoders) % each == 0) {
      ends.push_back(hidden);
      hidden =
          graph.call(segments.predictorInput(i), {hidden, graph.inputIds()}, "")
              .front();
    }
    llvm::SmallVector<Value> operands{hidden};
    if (bias)
      operands.append(positions.front());
    else if (!ropes.empty())
      operands.append(positions[llvm::find(ropes, kind.rope) - ropes.begin()]);
    if (!hiding.empty())
      operands.push_back(
          hiding[llvm::find(windows, kind.window) - windows.begin()]);
    if (segments.biasesChoice(kind))
      operands.push_back(graph.input(choiceBiasOf(decoder, i)));
    ValueRange results =
        graph.call(layers[llvm::find(distinct, kind) - distinct.begin()],
                   operands, decoder.layers + "." + std::to_string(i));
    hidden = results.front();
    if (kind.window != decoder.kinds[i].window &&
        (decoder.attention.byParts || options.eagerAttention))
      hidden.getDefiningOp()->setAttr(
          aten::wholeWindowAttr,
          builder.getI64IntegerAttr(decoder.kinds[i].window));
    if (results.size() > 1) {
      counts.push_back(results[1]);
      probabilities.push_back(results[2]);
    }
  }
  ends.push_back(hidden);
  llvm::SmallVector<Value> operands{ends.front(), graph.labels()};
  operands.append(counts);
  operands.append(probabilities);
  operands.append(ends.begin() + 1, ends.end());
  graph.end(graph.call(head, operands, "").front());
}
