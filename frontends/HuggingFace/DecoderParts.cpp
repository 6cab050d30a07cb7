//===- DecoderParts.cpp - Blocks of a decoder as operators ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/DecoderParts.h"

#include "dialects/Aten/Eager.h"
#include "dialects/Aten/Fused.h"
#include "frontends/HuggingFace/RopeTables.h"

using namespace accel;
using namespace accel::huggingface;
using namespace accel::aten;
using mlir::Value;
using mlir::ValueRange;

Value DecoderParts::linear(Value rows, const std::string &module) {
  f.enter(module);
  Value weight = f.op<TOp>(f.param(module + ".weight"));
  Value bias = f.find(module + ".bias");
  if (bias && !d.biasApart)
    return f.op<AddmmOp>(bias, rows, weight);
  Value product = f.op<MmOp>(rows, weight);
  return bias ? f.op<AddTensorOp>(product, bias) : product;
}

Value DecoderParts::norm(Value x, const std::string &module) {
  return norm(x, module, d.normEps);
}
Value DecoderParts::norm(Value x, const std::string &module, double eps) {
  if (module.empty())
    return x;
  f.enter(module);
  Value weight = f.param(module + ".weight");
  if (d.norm == Decoder::Norm::LayerByParts)
    return layerNormByParts(x, weight, eps);
  if (d.norm == Decoder::Norm::Layer)
    return f.op<LayerNormOp>(x, weight, f.find(module + ".bias"),
                             f.number(eps));
  return f.op<RmsNormOp>(x, weight, f.number(eps),
                         f.unit(d.norm != Decoder::Norm::Rms),
                         f.unit(d.norm == Decoder::Norm::RmsShifted));
}

Value DecoderParts::layerNormByParts(Value x, Value weight, double eps) {
  Value wide = f.op<ToCopyOp>(x, f.f32());
  const int64_t last = int64_t(f.shape(x).size()) - 1;
  auto mean = [&](Value of) -> Value {
    return f.op<MeanDimOp>(of, llvm::ArrayRef<int64_t>{last}, true);
  };
  Value middle = mean(wide);
  Value variance =
      mean(f.op<PowTensorScalarOp>(f.op<SubTensorOp>(wide, middle), 2.0));
  Value centred = f.op<SubTensorOp>(wide, middle);
  Value scale = f.op<RsqrtOp>(f.op<AddScalarOp>(variance, eps));
  Value normed = f.op<MulTensorOp>(centred, scale);
  Value factor = f.op<ToCopyOp>(weight, f.f32());
  return f.op<TypeAsOp>(f.op<MulTensorOp>(factor, normed), x);
}

Value DecoderParts::slice(Value x, int64_t dim, int64_t begin, int64_t end) {
  return f.op<SliceTensorOp>(x, uint64_t(dim), uint64_t(begin), uint64_t(end),
                             uint64_t(1));
}

std::string accel::huggingface::suffixOf(const DecoderLayerKind &kind) {
  switch (kind.blocks) {
  case DecoderLayerKind::Blocks::Both:
    if (kind.delta)
      return ".linear";
    return kind.window ? ".window" : ".full";
  case DecoderLayerKind::Blocks::Attention:
    return ".attention";
  case DecoderLayerKind::Blocks::Mlp:
    return kind.sparse ? ".experts" : ".mlp";
  case DecoderLayerKind::Blocks::Mamba:
    return ".mamba";
  }
  llvm_unreachable("covered switch");
}

namespace {

class AttentionWriter : DecoderParts {
public:
  AttentionWriter(FunctionWriter &f, const Decoder &decoder,
                  const DecoderLayerKind &kind, const AttentionInputs &inputs)
      : DecoderParts(f, decoder), a(decoder.attention), kind(kind),
        inputs(inputs), batch(f.shape(inputs.hidden)[0]),
        sequence(f.shape(inputs.hidden)[1]), tokens(batch * sequence) {}

  Value run() {
    f.enter(a.path);
    Value rows = f.view(inputs.hidden, {tokens, d.hiddenSize});
    auto [q, k, v] = project(rows);
    f.enter(a.path);
    if (!a.sinks.empty())
      return joined(withSinks(q, k, v));
    if (inputs.cos && kind.turns &&
        a.layout != DecoderAttention::Layout::Latent) {
      auto [cos, sin] = angles();
      q = rotated(q, cos, sin);
      k = rotated(k, cos, sin);
    }
    if (a.byPosition)
      q = scaledByPosition(q);
    if (a.normTurned) {
      q = norm(q, a.queryNorm);
      k = norm(k, a.keyNorm);
      f.enter(a.path);
    }
    q = headsFirst(q);
    k = headsFirst(k);
    v = headsFirst(v);
    Value mixed = f.attention(q, k, v, a.scale, inputs.added,
                              inputs.documents ? 0 : kind.window, a.softcap,
                              a.byParts, d.dropout.attention);
    if (!a.masked.empty() && !inputs.documents)
      mixed.getDefiningOp()->setAttr(
          maskedAttr, mlir::StringAttr::get(f.f32().getContext(), a.masked));
    if (d.joinsTurned && inputs.cos)
      mixed.getDefiningOp()->setAttr(joinedAttr,
                                     mlir::UnitAttr::get(f.f32().getContext()));
    return joined(mixed);
  }

private:
  /// Tokens and heads, or heads and tokens.
  Value headsFirst(Value x) {
    return f.op<TransposeIntOp>(x, uint64_t(1), uint64_t(2));
  }

  /// get_llama_4_attn_scale of modeling_ministral3.py; `q` is [B, S, heads,
  /// elements of a head].
  Value scaledByPosition(Value q) {
    Value positions =
        f.op<ArangeOp>(uint64_t(0), uint64_t(sequence), uint64_t(1), f.f32());
    Value steps = f.op<FloorOp>(f.op<DivScalarOp>(
        positions, static_cast<double>(a.byPosition->positions)));
    Value grown = f.op<LogOp>(f.op<AddScalarOp>(steps, 1.0));
    grown =
        f.op<AddScalarOp>(f.op<MulScalarOp>(grown, a.byPosition->beta), 1.0);
    Value scale = f.view(f.op<TypeAsOp>(grown, q), {sequence, 1, 1});
    return f.op<MulTensorOp>(q, scale);
  }

  /// The projection of what the heads give, [B, heads, S, elements of a head].
  Value joined(Value mixed) {
    Value rows =
        f.view(headsFirst(mixed), {tokens, d.heads * f.shape(mixed).back()});
    if (gate)
      rows = f.op<MulTensorOp>(rows, f.op<SigmoidOp>(gate));
    Value out = linear(rows, a.output);
    return f.dropout(f.view(out, f.shape(inputs.hidden)),
                     d.dropout.attentionOutput);
  }

  /// eager_attention_forward of modeling_gpt_oss.py, operator by operator: no
  /// kernel has the sinks' scores, nor their gradient. The greatest score of a
  /// row is taken from all of it first, in the scores' own dtype.
  Value withSinks(Value q, Value k, Value v) {
    const int64_t matrices = batch * d.heads;
    q = headsFirst(q);
    k = headsFirst(k);
    if (inputs.cos) {
      q = rotateHalves(f, q, inputs.cos, inputs.sin);
      k = rotateHalves(f, k, inputs.cos, inputs.sin);
    }
    k = repeatedHeads(k);
    v = repeatedHeads(headsFirst(v));
    auto each = [&](Value x) {
      return f.view(x, {matrices, sequence, f.shape(x).back()});
    };
    Value turned = f.op<TransposeIntOp>(each(k), uint64_t(1), uint64_t(2));
    Value scores = f.view(f.op<BmmOp>(each(q), turned),
                          {batch, d.heads, sequence, sequence});
    scores = f.op<MulScalarOp>(scores, a.scale);
    scores = f.op<AddTensorOp>(scores, inputs.added);
    Value sinks =
        f.op<ExpandOp>(f.view(f.param(a.sinks), {1, d.heads, 1, 1}),
                       llvm::ArrayRef<int64_t>{batch, d.heads, sequence, 1});
    scores = f.op<CatOp>(ValueRange{scores, sinks}, uint64_t(3));
    Value most = f.op<MaxDimOp>(scores, uint64_t(3), /*keepdim=*/true);
    scores = f.op<SubTensorOp>(scores, most);
    Value weights = f.op<SoftmaxOp>(scores, uint64_t(3));
    weights.getDefiningOp()->setAttr(ownTypeAttr, f.unit(true));
    weights = slice(weights, 3, 0, sequence);
    weights = f.op<TypeAsOp>(f.dropout(weights, d.dropout.attention), v);
    Value mixed = f.op<BmmOp>(each(weights), each(v));
    mixed = f.view(mixed, {batch, d.heads, sequence, d.headDim});
    return headsFirst(f.op<CloneOp>(headsFirst(mixed)));
  }

  /// Key heads [B, heads, S, D], in one piece, for each query head (repeat_kv).
  Value repeatedHeads(Value x) {
    const int64_t groups = d.keyValueHeads, served = d.heads / groups;
    if (served > 1) {
      x = f.op<UnsqueezeOp>(x, uint64_t(2));
      x = f.op<ExpandOp>(x, llvm::ArrayRef<int64_t>{batch, groups, served,
                                                    sequence, d.headDim});
    } else if (x.getDefiningOp<CatOp>()) {
      return x;
    }
    return f.view(f.op<CloneOp>(x), {batch, d.heads, sequence, d.headDim});
  }

  /// q, k and v, [B, S, heads, elements of a head] each, not turned.
  struct Projected {
    Value q, k, v;
  };

  Projected project(Value rows) {
    switch (a.layout) {
    case DecoderAttention::Layout::Apart:
      return projectApart(rows);
    case DecoderAttention::Layout::Rows:
      return projectRows(rows);
    case DecoderAttention::Layout::Groups:
      return projectGroups(rows);
    case DecoderAttention::Layout::Latent:
      return projectLatent(rows);
    }
    llvm_unreachable("covered switch");
  }

  /// Its parts are turned before they are joined.
  Projected projectLatent(Value rows) {
    const LatentAttention &l = a.latent;
    Value q = rows;
    if (!l.queryDown.empty())
      q = norm(linear(q, l.queryDown), l.queryNorm, l.normEps);
    q = linear(q, a.query);
    Value down = linear(rows, l.keyValueDown);
    f.enter(a.path);
    Value shared = slice(down, 1, l.rank, l.rank + l.turned);
    Value narrow = norm(slice(down, 1, 0, l.rank), l.keyValueNorm, l.normEps);
    Value up = linear(narrow, l.keyValueUp);
    f.enter(a.path);
    auto [cos, sin] = angles();
    auto turn = [&](Value x) {
      return l.pairs ? rotatePairs(f, x, cos, sin) : rotate(f, x, cos, sin);
    };
    auto join = [&](Value plain, Value turned) -> Value {
      return f.op<CatOp>(ValueRange{plain, turned}, uint64_t(3));
    };
    q = f.view(q, {batch, sequence, d.heads, l.plain + l.turned});
    Value plain = slice(q, 3, 0, l.plain);
    Value turned = turn(slice(q, 3, l.plain, l.plain + l.turned));
    q = join(plain, turned);
    turned = turn(f.view(shared, {batch, sequence, 1, l.turned}));
    turned = f.op<ExpandOp>(
        turned, llvm::ArrayRef<int64_t>{batch, sequence, d.heads, l.turned});
    up = f.view(up, {batch, sequence, d.heads, l.plain + l.value});
    Value k = join(slice(up, 3, 0, l.plain), turned);
    return {q, k, slice(up, 3, l.plain, l.plain + l.value)};
  }

  /// cos and sin, [S, 1, width].
  std::pair<Value, Value> angles() {
    Value cos = f.op<UnsqueezeOp>(inputs.cos, uint64_t(1));
    Value sin = f.op<UnsqueezeOp>(inputs.sin, uint64_t(1));
    if (d.turnsNeighbours && !d.neighboursOfTables)
      return {eachTwice(cos), eachTwice(sin)};
    return {cos, sin};
  }

  /// Each element of the first half of [S, 1, width] twice
  /// (repeat_interleave).
  Value eachTwice(Value table) {
    const int64_t width = f.shape(table).back();
    Value x = f.op<UnsqueezeOp>(slice(table, 2, 0, width / 2), uint64_t(3));
    x = f.op<ExpandOp>(x, llvm::ArrayRef<int64_t>{sequence, 1, width / 2, 2});
    return f.view(f.op<CloneOp>(x), {sequence, 1, width});
  }

  Projected projectApart(Value rows) {
    auto heads = [&](const std::string &module, int64_t count, double scale,
                     const std::string &normModule) {
      Value x = linear(rows, module);
      if (scale != 1) {
        f.enter(a.path);
        x = f.op<MulScalarOp>(x, scale);
      }
      if (!a.normHeads)
        x = norm(x, normModule);
      return f.view(x, {batch, sequence, count, d.headDim});
    };
    if (a.gated)
      return projectGated(rows, heads);
    Projected p;
    p.q = heads(a.query, d.heads, a.queryScale, a.queryNorm);
    p.k = heads(a.key, d.keyValueHeads, 1, a.keyNorm);
    p.v = heads(a.value, d.keyValueHeads, 1, "");
    if (a.normHeads && !a.normTurned) {
      p.q = norm(p.q, a.queryNorm);
      p.k = norm(p.k, a.keyNorm);
    }
    return p;
  }

  /// For each head its query, then its gate.
  template <typename Heads>
  Projected projectGated(Value rows, const Heads &heads) {
    Value both = linear(rows, a.query);
    f.enter(a.path);
    both = f.view(both, {batch, sequence, d.heads, 2 * d.headDim});
    Projected p;
    p.q = slice(both, 3, 0, d.headDim);
    gate = f.view(f.op<CloneOp>(slice(both, 3, d.headDim, 2 * d.headDim)),
                  {tokens, d.heads * d.headDim});
    p.q = norm(p.q, a.queryNorm);
    p.k = norm(heads(a.key, d.keyValueHeads, 1, ""), a.keyNorm);
    p.v = heads(a.value, d.keyValueHeads, 1, "");
    return p;
  }

  Projected projectRows(Value rows) {
    int64_t queries = d.heads * d.headDim, keys = d.keyValueHeads * d.headDim;
    Value joint = linear(rows, a.joint);
    f.enter(a.path);
    joint = f.view(joint, {batch, sequence, queries + 2 * keys});
    auto part = [&](int64_t begin, int64_t size) {
      return f.view(slice(joint, 2, begin, begin + size),
                    {batch, sequence, size / d.headDim, d.headDim});
    };
    Value q = part(0, queries), k = part(queries, keys);
    return {q, k, part(queries + keys, keys)};
  }

  Projected projectGroups(Value rows) {
    int64_t groups = d.keyValueHeads, served = d.heads / groups;
    Value joint = linear(rows, a.joint);
    f.enter(a.path);
    joint = f.view(joint, {batch, sequence, groups, served + 2, d.headDim});
    auto part = [&](int64_t begin, int64_t count) {
      Value x = slice(joint, 3, begin, begin + count);
      if (a.listed && count == 1)
        x.getDefiningOp()->setAttr(
            byListAttr,
            mlir::IntegerAttr::get(f.i64(), a.repeated ? served : 1));
      if (groups > 1 && count > 1) // not one piece in memory
        x = f.op<CloneOp>(x);
      return f.view(x, {batch, sequence, groups * count, d.headDim});
    };
    Value q = part(0, served), k = part(served, 1);
    return {q, k, part(served + 1, 1)};
  }

  Value rotated(Value x, Value cos, Value sin) {
    const Value own = x;
    if (d.turnsCopies)
      x = f.op<ToCopyOp>(x, f.f32());
    Value result = d.turnsNeighbours ? rotateNeighbours(f, x, cos, sin)
                                     : rotate(f, x, cos, sin);
    return d.wideRotary || d.turnsCopies ? f.op<TypeAsOp>(result, own) : result;
  }

  const DecoderAttention &a;
  const DecoderLayerKind &kind;
  const AttentionInputs &inputs;
  int64_t batch, sequence, tokens;
  Value gate; // [tokens, heads * elements of a head]; or null
};

} // namespace

Value accel::huggingface::writeAttention(FunctionWriter &f,
                                         const Decoder &decoder,
                                         const DecoderLayerKind &kind,
                                         const AttentionInputs &inputs) {
  return AttentionWriter(f, decoder, kind, inputs).run();
}

Value accel::huggingface::writeMamba(FunctionWriter &f, const Decoder &decoder,
                                     Value hidden) {
  const MambaMixer &m = decoder.mamba;
  DecoderParts parts(f, decoder);
  const int64_t batch = f.shape(hidden)[0], sequence = f.shape(hidden)[1];
  auto number = [](int64_t size) { return static_cast<uint64_t>(size); };
  f.enter(m.path);
  Value rows = f.view(hidden, {batch * sequence, decoder.hiddenSize});
  Value projected = parts.linear(rows, m.in);
  f.enter(m.path);
  projected = f.view(projected, {batch, sequence, f.shape(projected).back()});
  Value mixed = f.op<Mamba2MixerOp>(
      projected, f.param(m.convolution + ".weight"),
      f.param(m.convolution + ".bias"), f.param(m.stepBias), f.param(m.decay),
      f.param(m.skip), f.param(m.norm + ".weight"), number(m.groups),
      number(m.headDim), number(m.state), number(m.chunk),
      f.number(decoder.normEps), f.number(m.stepMin));
  mixed = f.view(mixed, {batch * sequence, m.heads * m.headDim});
  return f.view(parts.linear(mixed, m.out), f.shape(hidden));
}
