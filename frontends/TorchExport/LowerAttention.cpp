//===- LowerAttention.cpp - Rules for attention ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Attention is one operation, whether the model calls PyTorch's or multiplies
// itself: its kernel is the plan's to choose. Masks that only say which
// positions a query sees become its attributes, so that no tensor of them is
// made (transformers writes them as comparisons of counted positions). A mask
// that is trained, as T5's is, has a gradient, which no kernel gives: then the
// matmuls stay apart.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/AttentionMaskAnalysis.h"
#include "frontends/TorchExport/Lower.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;
using Results = Lowering::Results;
using Maybe = std::optional<Lowering::Results>;

namespace {

struct Attention {
  Value query, key, value, mask;
  bool causal = false, byParts = false;
  int64_t window = 0;
  double scale = 1, softcap = 0, dropped = 0;
};

/// The same in the memory order [B, S, H, D]: kernels for CPUs lay out their
/// result like the queries, others always so.
Value headsInside(Lowering &f, Value x) {
  Value turned = f.transpose(x, 1, 2);
  if (!turned || f.layouts().isContiguous(turned))
    return x;
  return f.transpose(f.make<aten::CloneOp>(turned), 1, 2);
}

Value make(Lowering &f, Attention a) {
  a.query = headsInside(f, a.query);
  const bool random = a.dropped > 0;
  auto &b = f.builder();
  SmallVector<Value, 4> operands = {a.query, a.key, a.value};
  if (a.mask)
    operands.push_back(a.mask);
  return f.make<aten::ScaledDotProductAttentionOp>(
      operands,
      {{"is_causal", b.getBoolAttr(a.causal)},
       {"scale", f.number(a.scale)},
       {"window", a.window ? f.integer(a.window) : Attribute()},
       {"softcap", a.softcap ? f.number(a.softcap) : Attribute()},
       {"by_parts", a.byParts ? Attribute(b.getUnitAttr()) : Attribute()},
       {"dropout_p", random ? f.number(a.dropped) : Attribute()},
       {"dropout_key", random ? f.integer(0) : Attribute()}});
}

/// What is added to scores where `seen` is false: minus infinity.
Value hideUnseen(Lowering &f, Value seen) {
  Value x = f.make<aten::ToCopyOp>(
      seen, {{"dtype", TypeAttr::get(f.builder().getF32Type())}});
  x = f.make<aten::ReciprocalOp>(x);
  return f.make<aten::RsubScalarOp>(x, {{"other", f.number(1)}});
}

/// A mask without the batch, heads and rows that it only repeats, in four
/// dimensions.
Value compact(Lowering &f, Value mask) {
  while (auto expand =
             mask ? mask.getDefiningOp<aten::ExpandOp>() : aten::ExpandOp()) {
    Value inner = expand.getSelf();
    if (f.rank(inner) < 1 || f.shape(inner).back() != f.shape(mask).back())
      break;
    mask = inner;
  }
  if (!mask || f.rank(mask) > 4 || f.rank(mask) < 2)
    return {};
  SmallVector<int64_t> size(4 - size_t(f.rank(mask)), 1);
  llvm::append_range(size, f.shape(mask));
  return f.reshape(mask, size);
}

/// Takes a band from a mask; false where it is none that attention has.
bool takeBand(Attention &a, const BandedMask &band) {
  if (band.whole())
    return true;
  if (!band.causal() || band.window() < 0)
    return false;
  a.causal = true;
  if (band.window() > 0)
    a.window = a.window ? std::min(a.window, band.window()) : band.window();
  return true;
}

/// Adds `mask` to what hides keys; false where it must stay an operand of the
/// scores because it is trained.
bool addMask(Lowering &f, Attention &a, Value mask) {
  if (!f.isFloat(mask)) {
    auto band = bandedMaskOf(mask);
    if (band && takeBand(a, *band))
      return true;
    mask = compact(f, mask);
    mask = mask ? hideUnseen(f, mask) : Value();
  } else {
    Attention with = a;
    auto added = addedMaskOf(mask);
    if (added && takeBand(with, added->band)) {
      a = with;
      mask = added->bias;
      if (!mask)
        return true;
    }
    if (f.isTrained(mask))
      return false;
    mask = compact(f, mask);
  }
  if (!mask)
    return false;
  a.mask = a.mask ? f.make<aten::AddTensorOp>({a.mask, mask}) : mask;
  return bool(a.mask);
}

/// Matmul, trained bias, softmax, matmul, as PyTorch's attention for CPUs
/// without a kernel; the result lies in memory as a kernel leaves it.
Value byParts(Lowering &f, const Attention &a, Value bias) {
  ArrayRef<int64_t> q = f.shape(a.query), k = f.shape(a.key);
  if (q.size() != 4 || k.size() != 4 || q[1] != k[1] || a.dropped > 0)
    return {};
  const int64_t matrices = q[0] * q[1];
  auto matrix = [&](Value x) {
    return f.reshape(x, {matrices, f.shape(x)[2], f.shape(x)[3]});
  };
  Value query = matrix(a.query);
  if (a.scale != 1)
    query = f.make<aten::MulScalarOp>(query, {{"other", f.number(a.scale)}});
  Value scores = f.make<aten::BmmOp>({query, f.transpose(matrix(a.key), 1, 2)});
  scores = f.view(scores, {q[0], q[1], q[2], k[2]});
  scores = f.make<aten::AddTensorOp>({scores, bias});
  scores = f.make<aten::SoftmaxOp>(scores, {{"dim", f.integer(3)}});
  Value mixed = f.make<aten::BmmOp>(
      {f.view(scores, {matrices, q[2], k[2]}), matrix(a.value)});
  mixed = f.view(mixed, {q[0], q[1], q[2], f.shape(a.value)[3]});
  return f.transpose(f.contiguous(f.transpose(mixed, 1, 2)), 1, 2);
}

Maybe attention(Lowering &f, const Call &call) {
  Attention a;
  a.query = call.tensor("query");
  a.key = call.tensor("key");
  a.value = call.tensor("value");
  if (!a.query || !a.key || !a.value || f.rank(a.query) != 4)
    return std::nullopt;
  a.dropped = call.number("dropout_p").value_or(0);
  a.causal = call.flag("is_causal");
  a.scale = call.number("scale").value_or(
      1.0 / std::sqrt(double(f.shape(a.query).back())));
  if (Value mask = call.tensor("attn_mask"); mask && !addMask(f, a, mask)) {
    if (!f.isFloat(mask) || f.rank(mask) != 4)
      return std::nullopt;
    return Results{byParts(f, a, mask)};
  }
  return Results{make(f, a)};
}

//===----------------------------------------------------------------------===//
// Attention that a model multiplies out
//===----------------------------------------------------------------------===//

/// Past casts between floating-point types.
Value throughCasts(Value value) {
  while (Operation *op = value ? value.getDefiningOp() : nullptr) {
    if (!isa<aten::ToCopyOp, aten::TypeAsOp>(op) ||
        !Lowering::isFloat(op->getOperand(0)))
      break;
    value = op->getOperand(0);
  }
  return value;
}

std::optional<double> factorOf(Operation *op) {
  auto valueOf = [](TypedAttr attr) -> std::optional<double> {
    if (auto number = dyn_cast<FloatAttr>(Attribute(attr)))
      return number.getValueAsDouble();
    if (auto integer = dyn_cast<IntegerAttr>(Attribute(attr)))
      return double(integer.getInt());
    return std::nullopt;
  };
  if (auto product = dyn_cast<aten::MulScalarOp>(op))
    return valueOf(product.getOther());
  if (auto quotient = dyn_cast<aten::DivScalarOp>(op)) {
    auto value = valueOf(quotient.getOther());
    if (value && *value != 0)
      return 1.0 / *value;
  }
  return std::nullopt;
}

/// c of c tanh(x / c).
Value uncapped(Value value, double &cap) {
  auto outer = value.getDefiningOp<aten::MulScalarOp>();
  auto tanh =
      outer ? outer.getSelf().getDefiningOp<aten::TanhOp>() : aten::TanhOp();
  Operation *inner = tanh ? tanh.getSelf().getDefiningOp() : nullptr;
  if (!inner)
    return value;
  auto up = factorOf(outer), down = factorOf(inner);
  if (!up || !down || *up <= 0 || std::abs(*up * *down - 1) > 1e-12)
    return value;
  cap = *up;
  return inner->getOperand(0);
}

/// Past masks that are added to scores or fill them; null where one cannot be
/// an operand of attention.
Value unmasked(Lowering &f, Value scores, Attention &a) {
  for (int steps = 0; steps < 8; ++steps) {
    scores = throughCasts(scores);
    if (auto filled = scores.getDefiningOp<aten::MaskedFillScalarOp>()) {
      auto band = bandedMaskOf(filled.getMask(), /*inverted=*/true);
      if (!band || !hides(filled.getValue()) || !takeBand(a, *band))
        return {};
      scores = filled.getSelf();
      continue;
    }
    auto sum = scores.getDefiningOp<aten::AddTensorOp>();
    if (!sum)
      return scores;
    Value mask = sum.getOther();
    scores = sum.getSelf();
    if (f.isTrained(mask)) {
      if (f.isTrained(scores))
        return {};
      std::swap(mask, scores);
    }
    if (!addMask(f, a, mask))
      return {};
  }
  return {};
}

} // namespace

/// The attention whose last matmul is weights times value; null for any other
/// matmul. transformers' eager attention is softmax(cap(q kT scale) + mask)
/// in fp32, cast back, times v.
Value Lowering::attentionOf(Value weights, Value value) {
  if (rank(weights) != 4 || rank(value) != 4)
    return {};
  Attention a;
  a.value = value;
  a.byParts = true;
  Value x = throughCasts(weights);
  if (auto dropout = x.getDefiningOp<aten::DropoutOp>()) {
    a.dropped = dropout.getP().convertToDouble();
    x = throughCasts(dropout.getSelf());
  }
  auto softmax = x.getDefiningOp<aten::SoftmaxOp>();
  if (!softmax || int64_t(softmax.getDim()) != 3)
    return {};
  x = unmasked(*this, softmax.getSelf(), a);
  if (!x)
    return {};
  x = throughCasts(uncapped(x, a.softcap));
  if (Operation *op = x.getDefiningOp())
    if (auto factor = factorOf(op)) {
      a.scale = *factor;
      x = throughCasts(op->getOperand(0));
    }
  auto product = products.find(x);
  if (product == products.end())
    return {};
  a.query = product->second.first;
  Value turned = product->second.second;
  if (auto transposed = turned.getDefiningOp<aten::TransposeIntOp>()) {
    auto [low, high] = std::minmax(
        {int64_t(transposed.getDim0()), int64_t(transposed.getDim1())});
    if (low == 2 && high == 3)
      a.key = transposed.getSelf();
  }
  if (!a.key || rank(a.query) != 4)
    return {};
  // Matmuls leave their result row by row.
  Value result = transpose(::make(*this, a), 1, 2);
  return result ? transpose(make<aten::CloneOp>(result), 1, 2) : Value();
}

void torchexport::addAttentionRules(llvm::StringMap<Lowering::Rule> &rules) {
  rules["aten::scaled_dot_product_attention"] = attention;
}
