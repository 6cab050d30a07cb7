//===- BuildDecoder.cpp - Segments and graph of a decoder -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Eager.h"
#include "frontends/HuggingFace/Activate.h"
#include "frontends/HuggingFace/BuildMixture.h"
#include "frontends/HuggingFace/BuildModel.h"
#include "frontends/HuggingFace/RopeTables.h"

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
      : builder(builder), d(decoder), a(decoder.attention), info(info),
        batch(options.microBatch), sequence(options.sequenceLength),
        tokens(batch * sequence), documents(options.hasDocuments()),
        hiddenType(tensor({batch, sequence, d.hiddenSize})),
        idsType(
            RankedTensorType::get({batch, sequence}, builder.getI64Type())) {}

  bool hasAlibi() const { return d.alibi != Decoder::Alibi::None; }

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
    if (!d.projectIn.empty()) {
      int64_t width = f.shape(hidden).back();
      hidden =
          linear(f, f.view(hidden, {tokens, width}), relative(d.projectIn));
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
    auto [cos, sin] = ropeTables(f, rope, d.headDim, sequence);
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

  /// (hidden, cos and sin, or bias, and the documents' mask, where there are
  /// any) -> hidden; with a load balancing loss also what that needs of a layer
  /// with experts. `first` is a layer of the kind.
  mlir::func::FuncOp layer(const DecoderLayerKind &kind, int64_t first,
                           const std::string &suffix) {
    std::string name = d.layerClass + suffix, path = d.layers + ".*";
    FunctionWriter f(builder, name, path);
    f.input(hiddenType);
    for (int i = 0; i < 2 && !d.ropes.empty(); ++i)
      f.input(tableType(d.ropes[size_t(kind.rope)]));
    if (hasAlibi())
      f.input(biasType());
    if (documents)
      f.input(tensor({batch, 1, sequence, sequence}));
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

    Value x = f.argument(0);
    Value normed = norm(f, x, d.beforeAttention);
    Value attended = norm(f, attention(f, normed, kind), d.ofAttention);
    if (d.parallel) {
      if (d.beforeMlp != d.beforeAttention)
        normed = norm(f, x, d.beforeMlp);
      Value fed = mlp(f, normed);
      f.enter("");
      Value both = f.op<AddTensorOp>(fed, attended);
      f.end(f.op<AddTensorOp>(f.dropout(both, d.dropout.blocks), x));
      return function;
    }
    x = norm(f, residual(f, x, attended), d.afterAttention);
    MixtureValues mixed;
    Value before = norm(f, x, d.beforeMlp);
    if (kind.sparse)
      mixed =
          writeMixture(f, d.mixture, f.view(before, {tokens, d.hiddenSize}));
    Value fed = kind.sparse ? f.view(mixed.rows, hiddenType.getShape())
                            : mlp(f, before);
    fed = norm(f, fed, d.ofMlp);
    llvm::SmallVector<Value> results{norm(f, residual(f, x, fed), d.afterMlp)};
    if (mixed.counts)
      results.append({mixed.counts, mixed.probabilities});
    f.end(results);
    return function;
  }

  /// (hidden, labels [B, S]) -> 0-d loss; with a load balancing loss also takes
  /// the counts of all layers with experts, then their probabilities.
  mlir::func::FuncOp head() {
    // A tied head has no parameter of its own.
    std::string table = "lm_head.weight";
    if (!shapeOf(table))
      table = d.embedding + ".weight";
    std::string name = d.classPrefix + "Head";
    FunctionWriter f(builder, name, "");
    f.input(hiddenType);
    f.input(idsType);
    const size_t parts =
        d.mixture.auxiliary ? size_t(d.mixture.sparseLayers()) : 0;
    for (size_t i = 0; i < 2 * parts; ++i)
      f.input(tensor({d.mixture.experts}));
    for (const std::string &fqn : {d.finalNorm, d.projectOut})
      if (!fqn.empty())
        declare(f, fqn, fqn);
    f.param(table, *shapeOf(table));
    auto function = f.begin({tensor({})});
    for (size_t i = 0; i < 2 * parts; ++i)
      f.fixType(unsigned(2 + i));
    Value normed = norm(f, f.argument(0), d.finalNorm);
    Value rows = f.view(normed, {tokens, d.hiddenSize});
    if (!d.projectOut.empty())
      rows = linear(f, rows, d.projectOut);
    f.enter("lm_head");
    Value logits = f.op<MmOp>(rows, f.op<TOp>(f.param(table)));
    f.enter("");
    if (d.logitSoftcap != 0) {
      logits = f.op<TanhOp>(f.op<DivScalarOp>(logits, d.logitSoftcap));
      logits = f.op<MulScalarOp>(logits, d.logitSoftcap);
    }
    Value loss = f.crossEntropy(logits, f.argument(1));
    if (parts) {
      ValueRange given = function.getArguments().slice(2, 2 * parts);
      loss = addBalancingLoss(f, d.mixture, loss, given.take_front(parts),
                              given.drop_front(parts), tokens);
    }
    f.end(loss);
    return function;
  }

private:
  RankedTensorType tensor(llvm::ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getF32Type());
  }
  RankedTensorType tableType(const Rope &rope) {
    return tensor({sequence, rope.width(d.headDim)});
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

  /// `rows` [tokens, in] -> [tokens, out].
  Value linear(FunctionWriter &f, Value rows, const std::string &module) {
    f.enter(module);
    Value weight = f.op<TOp>(f.param(module + ".weight"));
    Value bias = f.find(module + ".bias");
    if (bias && !d.biasApart)
      return f.op<AddmmOp>(bias, rows, weight);
    Value product = f.op<MmOp>(rows, weight);
    return bias ? f.op<AddTensorOp>(product, bias) : product;
  }

  Value norm(FunctionWriter &f, Value x, const std::string &module) {
    if (module.empty())
      return x;
    f.enter(module);
    Value weight = f.param(module + ".weight");
    if (d.norm == Decoder::Norm::Layer)
      return f.op<LayerNormOp>(x, weight, f.find(module + ".bias"),
                               f.number(d.normEps));
    return f.op<RmsNormOp>(x, weight, f.number(d.normEps),
                           f.unit(d.norm != Decoder::Norm::Rms),
                           f.unit(d.norm == Decoder::Norm::RmsShifted));
  }

  Value residual(FunctionWriter &f, Value x, Value y) {
    f.enter("");
    return d.residualFirst ? f.op<AddTensorOp>(x, y) : f.op<AddTensorOp>(y, x);
  }

  Value slice(FunctionWriter &f, Value x, int64_t dim, int64_t begin,
              int64_t end) {
    return f.op<SliceTensorOp>(x, uint64_t(dim), uint64_t(begin), uint64_t(end),
                               uint64_t(1));
  }

  /// q, k and v, [B, S, heads, head_dim] each.
  struct Projected {
    Value q, k, v;
  };

  Projected project(FunctionWriter &f, Value rows) {
    switch (a.layout) {
    case DecoderAttention::Layout::Apart:
      return projectApart(f, rows);
    case DecoderAttention::Layout::Rows:
      return projectRows(f, rows);
    case DecoderAttention::Layout::Groups:
      return projectGroups(f, rows);
    }
    llvm_unreachable("covered switch");
  }

  Projected projectApart(FunctionWriter &f, Value rows) {
    auto heads = [&](const std::string &module, int64_t count, double scale,
                     const std::string &normModule) {
      Value x = linear(f, rows, module);
      if (scale != 1) {
        f.enter(a.path);
        x = f.op<MulScalarOp>(x, scale);
      }
      if (!a.normHeads)
        x = norm(f, x, normModule);
      return f.view(x, {batch, sequence, count, d.headDim});
    };
    Projected p;
    p.q = heads(a.query, d.heads, a.queryScale, a.queryNorm);
    p.k = heads(a.key, d.keyValueHeads, 1, a.keyNorm);
    p.v = heads(a.value, d.keyValueHeads, 1, "");
    if (a.normHeads) {
      p.q = norm(f, p.q, a.queryNorm);
      p.k = norm(f, p.k, a.keyNorm);
    }
    return p;
  }

  Projected projectRows(FunctionWriter &f, Value rows) {
    int64_t queries = d.heads * d.headDim, keys = d.keyValueHeads * d.headDim;
    Value joint = linear(f, rows, a.joint);
    f.enter(a.path);
    joint = f.view(joint, {batch, sequence, queries + 2 * keys});
    auto part = [&](int64_t begin, int64_t size) {
      return f.view(slice(f, joint, 2, begin, begin + size),
                    {batch, sequence, size / d.headDim, d.headDim});
    };
    Value q = part(0, queries), k = part(queries, keys);
    return {q, k, part(queries + keys, keys)};
  }

  Projected projectGroups(FunctionWriter &f, Value rows) {
    int64_t groups = d.keyValueHeads, served = d.heads / groups;
    Value joint = linear(f, rows, a.joint);
    f.enter(a.path);
    joint = f.view(joint, {batch, sequence, groups, served + 2, d.headDim});
    auto part = [&](int64_t begin, int64_t count) {
      Value x = slice(f, joint, 3, begin, begin + count);
      if (a.listed && count == 1)
        x.getDefiningOp()->setAttr(
            byListAttr, builder.getI64IntegerAttr(a.repeated ? served : 1));
      if (groups > 1 && count > 1) // not one piece in memory
        x = f.op<CloneOp>(x);
      return f.view(x, {batch, sequence, groups * count, d.headDim});
    };
    Value q = part(0, served), k = part(served, 1);
    return {q, k, part(served + 1, 1)};
  }

  Value rotated(FunctionWriter &f, Value x, Value cos, Value sin) {
    Value result = rotate(f, x, cos, sin);
    return d.wideRotary ? f.op<TypeAsOp>(result, x) : result;
  }

  Value attention(FunctionWriter &f, Value hidden,
                  const DecoderLayerKind &kind) {
    f.enter(a.path);
    Value rows = f.view(hidden, {tokens, d.hiddenSize});
    auto [q, k, v] = project(f, rows);
    f.enter(a.path);
    if (!d.ropes.empty()) {
      Value cos = f.op<UnsqueezeOp>(f.argument(1), uint64_t(1));
      Value sin = f.op<UnsqueezeOp>(f.argument(2), uint64_t(1));
      q = rotated(f, q, cos, sin);
      k = rotated(f, k, cos, sin);
    }
    auto headsFirst = [&](Value x) -> Value {
      return f.op<TransposeIntOp>(x, uint64_t(1), uint64_t(2));
    };
    q = headsFirst(q);
    k = headsFirst(k);
    v = headsFirst(v);
    Value mask;
    if (documents)
      mask = f.argument(d.ropes.empty() ? 1 : 3);
    else if (hasAlibi())
      mask = f.argument(1);
    // The documents' mask has the window.
    Value mixed =
        f.attention(q, k, v, a.scale, mask, documents ? 0 : kind.window,
                    a.softcap, a.byParts, d.dropout.attention);
    if (!a.masked.empty() && !documents)
      mixed.getDefiningOp()->setAttr(maskedAttr,
                                     builder.getStringAttr(a.masked));
    Value joined = f.view(headsFirst(mixed), {tokens, d.heads * d.headDim});
    Value out = linear(f, joined, a.output);
    return f.dropout(f.view(out, hiddenType.getShape()),
                     d.dropout.attentionOutput);
  }

  Value mlp(FunctionWriter &f, Value hidden) {
    f.enter(d.mlp.path);
    Value rows = f.view(hidden, {tokens, d.hiddenSize});
    Value down = linear(f, mlpInner(f, rows), d.mlp.down);
    return f.dropout(f.view(down, hiddenType.getShape()), d.dropout.mlpOutput);
  }

  Value mlpInner(FunctionWriter &f, Value rows) {
    auto act = [&](Value x) {
      f.enter(d.mlp.activationPath);
      return activate(f, d.mlp.activation, x);
    };
    if (d.mlp.layout == DecoderMlp::Layout::Plain)
      return act(linear(f, rows, d.mlp.up));
    if (d.mlp.layout == DecoderMlp::Layout::Gated) {
      Value gate = act(linear(f, rows, d.mlp.gate));
      Value up = linear(f, rows, d.mlp.up);
      f.enter(d.mlp.path);
      return f.op<MulTensorOp>(gate, up);
    }
    Value both = linear(f, rows, d.mlp.up);
    int64_t inner = f.shape(both).back() / 2;
    f.enter(d.mlp.path);
    Value gate = slice(f, both, 1, 0, inner);
    Value up = slice(f, both, 1, inner, 2 * inner);
    gate = act(gate);
    f.enter(d.mlp.path);
    return f.op<MulTensorOp>(up, gate);
  }

  OpBuilder &builder;
  const Decoder &d;
  const DecoderAttention &a;
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
                                       const BuildOptions &options) {
  DecoderForward segments(builder, decoder, info, options);
  auto embedding = segments.embedding();
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
    if (options.hasDocuments() && !llvm::is_contained(windows, kind.window)) {
      windows.push_back(kind.window);
      masks.push_back(documentMask(builder, segments.basePath(),
                                   decoder.hiddenSize, options, kind.window));
    }
  for (const DecoderLayerKind &kind : distinct) {
    std::string suffix = kind.window ? ".window" : ".full";
    if (ropes.size() > 1)
      suffix += "." + std::to_string(kind.rope);
    if (decoder.mixture.experts)
      suffix += kind.sparse ? ".sparse" : ".dense";
    layers.push_back(segments.layer(kind,
                                    llvm::find(kinds, kind) - kinds.begin(),
                                    distinct.size() > 1 ? suffix : ""));
  }
  auto head = segments.head();

  GraphWriter graph(builder, options);
  llvm::SmallVector<Value> embedded{graph.inputIds()};
  if (segments.embedsPositions())
    embedded.push_back(graph.input(positionsInput));
  Value hidden =
      graph.call(embedding, embedded, segments.embeddingPath()).front();
  llvm::SmallVector<llvm::SmallVector<Value>> positions;
  for (mlir::func::FuncOp function : rotary)
    positions.push_back(
        llvm::to_vector(graph.call(function, hidden, decoder.rotary)));
  if (bias)
    positions.push_back(
        llvm::to_vector(graph.call(bias, hidden, segments.basePath())));
  llvm::SmallVector<Value> hiding;
  for (mlir::func::FuncOp mask : masks)
    hiding.push_back(graph
                         .call(mask, {hidden, graph.input(positionsInput)},
                               segments.basePath())
                         .front());
  llvm::SmallVector<Value> counts, probabilities;
  for (auto [i, kind] : llvm::enumerate(kinds)) {
    llvm::SmallVector<Value> operands{hidden};
    if (bias)
      operands.append(positions.front());
    else if (!ropes.empty())
      operands.append(positions[llvm::find(ropes, kind.rope) - ropes.begin()]);
    if (!hiding.empty())
      operands.push_back(
          hiding[llvm::find(windows, kind.window) - windows.begin()]);
    ValueRange results =
        graph.call(layers[llvm::find(distinct, kind) - distinct.begin()],
                   operands, decoder.layers + "." + std::to_string(i));
    hidden = results.front();
    if (results.size() > 1) {
      counts.push_back(results[1]);
      probabilities.push_back(results[2]);
    }
  }
  llvm::SmallVector<Value> operands{hidden, graph.labels()};
  operands.append(counts);
  operands.append(probabilities);
  graph.end(graph.call(head, operands, "").front());
}
