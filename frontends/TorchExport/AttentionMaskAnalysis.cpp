//===- AttentionMaskAnalysis.cpp - Masks that only tell positions apart ---===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/AttentionMaskAnalysis.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Types.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;
using aten::tensorType;

namespace {

/// Masks are made in a few steps.
constexpr int maxSteps = 64;

/// An integer that is linear in the position: constant + factors . index.
struct Linear {
  int64_t constant = 0;
  SmallVector<int64_t, 4> factors; // by dimension
};

ArrayRef<int64_t> shapeOf(Value value) { return tensorType(value).getShape(); }

std::optional<int64_t> integerOf(TypedAttr attr) {
  if (auto integer = dyn_cast<IntegerAttr>(Attribute(attr)))
    return integer.getInt();
  return std::nullopt;
}

/// Sums stay exact: positions and constants are far below this.
bool small(int64_t value) {
  return value < (1LL << 40) && value > -(1LL << 40);
}

std::optional<Linear> checked(Linear value) {
  if (!small(value.constant) ||
      !llvm::all_of(value.factors, [](int64_t f) { return small(f); }))
    return std::nullopt;
  return value;
}

/// Factors of dimensions in another shape with the same sizes but for ones.
std::optional<Linear> reshaped(const Linear &from, ArrayRef<int64_t> before,
                               ArrayRef<int64_t> after) {
  Linear result{from.constant, SmallVector<int64_t, 4>(after.size(), 0)};
  size_t at = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] == 1)
      continue;
    while (at < after.size() && after[at] == 1)
      ++at;
    if (at == after.size() || after[at] != before[i])
      return std::nullopt;
    result.factors[at++] = from.factors[i];
  }
  for (; at < after.size(); ++at)
    if (after[at] != 1)
      return std::nullopt;
  return result;
}

/// The factors as those of a tensor that `rank` dimensions are broadcast to.
Linear broadcast(Linear value, size_t rank) {
  value.factors.insert(value.factors.begin(), rank - value.factors.size(), 0);
  return value;
}

std::optional<Linear> linearOf(Value value, int steps);

std::optional<Linear> sumOf(Value a, Value b, int sign, int steps) {
  auto x = linearOf(a, steps), y = linearOf(b, steps);
  if (!x || !y)
    return std::nullopt;
  const size_t rank = std::max(x->factors.size(), y->factors.size());
  Linear sum = broadcast(*x, rank), other = broadcast(*y, rank);
  sum.constant += sign * other.constant;
  for (size_t i = 0; i < rank; ++i)
    sum.factors[i] += sign * other.factors[i];
  return checked(sum);
}

std::optional<Linear> shifted(Value value, TypedAttr by, int sign, int steps) {
  auto x = linearOf(value, steps);
  auto c = integerOf(by);
  if (!x || !c || !small(*c))
    return std::nullopt;
  x->constant += sign * *c;
  return checked(*x);
}

std::optional<Linear> linearOf(Value value, int steps) {
  Operation *op = value.getDefiningOp();
  if (!op || --steps < 0 || !tensorType(value).getElementType().isInteger())
    return std::nullopt;
  using Maybe = std::optional<Linear>;
  return llvm::TypeSwitch<Operation *, Maybe>(op)
      .Case([&](aten::ArangeOp range) -> Maybe {
        return checked({int64_t(range.getStart()), {int64_t(range.getStep())}});
      })
      .Case([&](aten::FullOp full) -> Maybe {
        auto c = integerOf(full.getFillValue());
        if (!c)
          return std::nullopt;
        return checked({*c, SmallVector<int64_t, 4>(shapeOf(value).size(), 0)});
      })
      .Case([&](aten::AddTensorOp add) {
        return sumOf(add.getSelf(), add.getOther(), 1, steps);
      })
      .Case([&](aten::SubTensorOp sub) {
        return sumOf(sub.getSelf(), sub.getOther(), -1, steps);
      })
      .Case([&](aten::AddScalarOp add) {
        return shifted(add.getSelf(), add.getOther(), 1, steps);
      })
      .Case([&](aten::SubScalarOp sub) {
        return shifted(sub.getSelf(), sub.getOther(), -1, steps);
      })
      .Case(
          [&](aten::CloneOp clone) { return linearOf(clone.getSelf(), steps); })
      .Case(
          [&](aten::ToCopyOp copy) { return linearOf(copy.getSelf(), steps); })
      .Case([&](aten::ExpandOp expand) -> Maybe {
        auto x = linearOf(expand.getSelf(), steps);
        if (!x)
          return std::nullopt;
        return broadcast(*x, shapeOf(value).size());
      })
      .Case<aten::ViewOp, aten::UnsqueezeOp, aten::SqueezeDimOp>(
          [&](auto same) -> Maybe {
            auto x = linearOf(same.getSelf(), steps);
            if (!x)
              return std::nullopt;
            return reshaped(*x, shapeOf(same.getSelf()), shapeOf(value));
          })
      .Default([](Operation *) { return std::nullopt; });
}

/// Where `x` > `least`, of what is linear in the last two dimensions alone.
std::optional<BandedMask> aboveOf(const Linear &x, ArrayRef<int64_t> shape,
                                  int64_t least) {
  const size_t rank = x.factors.size();
  if (rank < 2 || rank != shape.size())
    return std::nullopt;
  for (size_t i = 0; i + 2 < rank; ++i)
    if (shape[i] != 1 && x.factors[i] != 0)
      return std::nullopt;
  // constant + row * i + column * j > least, so that sign (j - i) > least -
  // constant.
  const int64_t row = x.factors[rank - 2], column = x.factors[rank - 1];
  const int64_t bound = least - x.constant;
  BandedMask band;
  if (row == -1 && column == 1)
    band.behind = -(bound + 1);
  else if (row == 1 && column == -1)
    band.ahead = -(bound + 1);
  else
    return std::nullopt;
  return band;
}

/// Where a > b (or >= with `equal`), or where it is not.
std::optional<BandedMask> compare(Value result, Value a, Value b, bool equal,
                                  bool inverted, int steps) {
  if (inverted) { // a <= b is b >= a
    std::swap(a, b);
    equal = !equal;
  }
  auto difference = sumOf(a, b, -1, steps);
  if (!difference)
    return std::nullopt;
  return aboveOf(*difference, shapeOf(result), equal ? -1 : 0);
}

/// Where `sign` * (x - c) > 0, or >= 0 with `equal`, or where it is not.
std::optional<BandedMask> compareWith(Value result, Value x, TypedAttr c,
                                      int sign, bool equal, bool inverted,
                                      int steps) {
  auto difference = shifted(x, c, -1, steps);
  if (!difference)
    return std::nullopt;
  if (inverted) {
    sign = -sign;
    equal = !equal;
  }
  difference->constant *= sign;
  for (int64_t &factor : difference->factors)
    factor *= sign;
  return aboveOf(*difference, shapeOf(result), equal ? -1 : 0);
}

/// True of a number everywhere that `test` holds of.
bool isFull(Value value, llvm::function_ref<bool(Attribute)> test,
            int steps = maxSteps) {
  Operation *op = value ? value.getDefiningOp() : nullptr;
  if (!op || --steps < 0)
    return false;
  if (auto full = dyn_cast<aten::FullOp>(op))
    return test(full.getFillValue());
  if (auto full = dyn_cast<aten::FullLikeOp>(op))
    return test(full.getFillValue());
  if (isa<aten::ZerosLikeOp>(op))
    return test(FloatAttr::get(Float64Type::get(value.getContext()), 0.0));
  if (isa<aten::ExpandOp, aten::ViewOp, aten::ToCopyOp, aten::TypeAsOp>(op))
    return isFull(op->getOperand(0), test, steps);
  return false;
}

std::optional<double> numberOf(Attribute attr) {
  if (auto number = dyn_cast<FloatAttr>(attr))
    return number.getValueAsDouble();
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return double(integer.getInt());
  return std::nullopt;
}
bool isZero(Attribute attr) { return numberOf(attr) == 0.0; }
bool isNotZero(Attribute attr) {
  auto number = numberOf(attr);
  return number && *number != 0.0;
}

std::optional<BandedMask> both(std::optional<BandedMask> a,
                               std::optional<BandedMask> b) {
  if (!a || !b)
    return std::nullopt;
  return BandedMask{std::min(a->ahead, b->ahead),
                    std::min(a->behind, b->behind)};
}

std::optional<BandedMask> bandAt(Value value, bool inverted, int steps);

/// A truth value made of a number: where that is not 0.
std::optional<BandedMask> ofNumber(Value number, bool inverted, int steps) {
  if (tensorType(number).getElementType().isInteger(1))
    return bandAt(number, inverted, steps);
  auto where = number.getDefiningOp<aten::WhereSelfOp>();
  if (!where)
    return std::nullopt;
  if (isFull(where.getSelf(), isZero) && isFull(where.getOther(), isNotZero))
    return bandAt(where.getCondition(), !inverted, steps);
  if (isFull(where.getSelf(), isNotZero) && isFull(where.getOther(), isZero))
    return bandAt(where.getCondition(), inverted, steps);
  return std::nullopt;
}

/// A comparison of an additive mask with a number that tells its two values
/// apart: x < c, or with `sign` 1 x > c.
std::optional<BandedMask> ofAdded(Value added, TypedAttr number, int sign,
                                  bool inverted, int steps) {
  auto where = added.getDefiningOp<aten::WhereSelfOp>();
  auto c = numberOf(number);
  if (!where || !c || *c > -1e-6 || *c <= -1e4)
    return std::nullopt;
  const bool seenFirst =
      isFull(where.getSelf(), isZero) && isFull(where.getOther(), hides);
  if (!seenFirst &&
      !(isFull(where.getSelf(), hides) && isFull(where.getOther(), isZero)))
    return std::nullopt;
  // x < c where it hides.
  return bandAt(where.getCondition(), inverted == (seenFirst == (sign > 0)),
                steps);
}

std::optional<BandedMask> bandAt(Value value, bool inverted, int steps) {
  Operation *op = value.getDefiningOp();
  if (!op || --steps < 0)
    return std::nullopt;
  if (isFull(value, inverted ? isZero : isNotZero))
    return BandedMask();
  using Maybe = std::optional<BandedMask>;
  auto joined = [&](Value a, Value b, bool conjunction) -> Maybe {
    if (conjunction == inverted)
      return std::nullopt;
    return both(bandAt(a, inverted, steps), bandAt(b, inverted, steps));
  };
  auto of = [&](auto op, bool swapped, bool equal) {
    Value a = op.getSelf(), b = op.getOther();
    return compare(value, swapped ? b : a, swapped ? a : b, equal, inverted,
                   steps);
  };
  auto with = [&](auto op, int sign, bool equal) -> Maybe {
    if (isa<FloatType>(tensorType(op.getSelf()).getElementType()))
      return ofAdded(op.getSelf(), op.getOther(), sign, inverted, steps);
    return compareWith(value, op.getSelf(), op.getOther(), sign, equal,
                       inverted, steps);
  };
  return llvm::TypeSwitch<Operation *, Maybe>(op)
      .Case([&](aten::GtTensorOp x) { return of(x, false, false); })
      .Case([&](aten::GeTensorOp x) { return of(x, false, true); })
      .Case([&](aten::LtTensorOp x) { return of(x, true, false); })
      .Case([&](aten::LeTensorOp x) { return of(x, true, true); })
      .Case([&](aten::GtScalarOp x) { return with(x, 1, false); })
      .Case([&](aten::GeScalarOp x) { return with(x, 1, true); })
      .Case([&](aten::LtScalarOp x) { return with(x, -1, false); })
      .Case([&](aten::LeScalarOp x) { return with(x, -1, true); })
      .Case<aten::BitwiseAndTensorOp, aten::LogicalAndOp>([&](auto x) {
        return joined(x.getSelf(), x.getOther(), /*conjunction=*/true);
      })
      .Case<aten::BitwiseOrTensorOp, aten::LogicalOrOp>([&](auto x) {
        return joined(x.getSelf(), x.getOther(), /*conjunction=*/false);
      })
      .Case<aten::BitwiseNotOp, aten::LogicalNotOp>(
          [&](auto x) { return bandAt(x.getSelf(), !inverted, steps); })
      .Case([&](aten::ToCopyOp x) {
        return ofNumber(x.getSelf(), inverted, steps);
      })
      .Case<aten::ExpandOp, aten::UnsqueezeOp, aten::ViewOp, aten::CloneOp>(
          [&](auto x) -> Maybe {
            ArrayRef<int64_t> from = shapeOf(x.getSelf());
            if (from.size() < 2 ||
                from.take_back(2) != shapeOf(value).take_back(2))
              return std::nullopt;
            return bandAt(x.getSelf(), inverted, steps);
          })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<AddedMask> addedAt(Value mask, int steps) {
  Operation *op = mask.getDefiningOp();
  if (!op || --steps < 0)
    return std::nullopt;
  if (isa<aten::ToCopyOp, aten::TypeAsOp, aten::CloneOp>(op))
    return addedAt(op->getOperand(0), steps);
  if (auto expand = dyn_cast<aten::ExpandOp>(op)) {
    ArrayRef<int64_t> from = shapeOf(expand.getSelf());
    if (from.size() >= 2 && from.take_back(2) == shapeOf(mask).take_back(2))
      return addedAt(expand.getSelf(), steps);
    return std::nullopt;
  }
  if (auto where = dyn_cast<aten::WhereSelfOp>(op)) {
    const bool seenFirst =
        isFull(where.getSelf(), isZero) && isFull(where.getOther(), hides);
    if (!seenFirst &&
        !(isFull(where.getSelf(), hides) && isFull(where.getOther(), isZero)))
      return std::nullopt;
    auto band = bandedMaskOf(where.getCondition(), /*inverted=*/!seenFirst);
    if (!band)
      return std::nullopt;
    return AddedMask{{}, *band};
  }
  if (auto filled = dyn_cast<aten::MaskedFillScalarOp>(op)) {
    auto band = bandedMaskOf(filled.getMask(), /*inverted=*/true);
    if (!band || !hides(filled.getValue()))
      return std::nullopt;
    Value bias = filled.getSelf();
    return AddedMask{isFull(bias, isZero) ? Value() : bias, *band};
  }
  if (auto sum = dyn_cast<aten::AddTensorOp>(op)) {
    for (bool swapped : {false, true}) {
      Value first = swapped ? sum.getOther() : sum.getSelf();
      Value rest = swapped ? sum.getSelf() : sum.getOther();
      auto band = addedAt(first, steps);
      if (band && !band->bias)
        return AddedMask{rest, band->band};
    }
  }
  return std::nullopt;
}

} // namespace

bool torchexport::hides(Attribute number) {
  auto value = numberOf(number);
  return value && *value <= -1e4;
}

std::optional<BandedMask> torchexport::bandedMaskOf(Value seen, bool inverted) {
  return bandAt(seen, inverted, maxSteps);
}

std::optional<AddedMask> torchexport::addedMaskOf(Value mask) {
  return addedAt(mask, maxSteps);
}
