//===- ValueShardings.cpp - Shardings on their way --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Mesh/ValueShardings.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace accel;
using namespace accel::mesh;
using accel::sharding::ShardedBy;

bool ValueSharding::isReplicated() const {
  return partial.empty() && llvm::all_of(dims, [](const DimSharding &dim) {
           return dim.axes.empty();
         });
}

ValueSharding mesh::replicated(Type type) {
  ValueSharding made;
  made.dims.resize(cast<RankedTensorType>(type).getRank());
  return made;
}

ValueSharding mesh::fromSpec(sharding::SpecAttr spec, int64_t bytes) {
  ValueSharding made;
  sharding::BecauseAttr because = spec.getBecause();
  const Priority priority = {!because            ? Priority::Flow
                             : because.getFile() ? Priority::User
                                                 : Priority::Plan,
                             bytes};
  for (int64_t dim = 0; dim < spec.getRank(); ++dim) {
    // Also what was decided to be whole stays so.
    made.dims.push_back({sharding::shardedBy(spec, dim), priority});
  }
  made.partial = Axes(spec.partialAxes());
  return made;
}

sharding::SpecAttr mesh::toSpec(const ValueSharding &value,
                                MLIRContext *context) {
  Builder b(context);
  auto names = [&](const Axes &axes) { return b.getStrArrayAttr(axes); };
  SmallVector<ArrayAttr> dims;
  for (const DimSharding &dim : value.dims)
    dims.push_back(sharding::dimOf(context, dim.axes));
  return sharding::SpecAttr::get(
      context, dims, value.partial.empty() ? ArrayAttr() : names(value.partial),
      sharding::BecauseAttr());
}

bool mesh::join(ValueSharding &into, const ValueSharding &other) {
  bool changed = false;
  for (size_t i = 0; i < into.dims.size(); ++i) {
    const DimSharding &from = other.dims[i];
    DimSharding &to = into.dims[i];
    if (from.axes.empty() || !(from.priority > to.priority))
      continue;
    // An axis shards one dimension.
    bool elsewhere = false;
    for (size_t j = 0; j < into.dims.size(); ++j)
      if (j != i)
        for (const ShardedBy &by : from.axes)
          elsewhere |= into.dims[j].uses(by.axis);
    if (elsewhere)
      continue;
    changed |= to.axes != from.axes || to.priority != from.priority;
    to = from;
  }
  return changed;
}

namespace {

/// Which axes shard each factor of one operator.
class Factors {
public:
  Factors(const aten::ShardingRule &rule, AxisSizes sizes)
      : rule(rule), sizes(sizes), chosen(rule.factors.size()) {}

  /// The axes that a tensor's dimensions ask of the factors; false with the
  /// reason where they ask what the operator cannot do.
  bool project(const aten::TensorFactors &tensor, const ValueSharding &value,
               llvm::SmallVectorImpl<DimSharding> &asked, std::string &why) {
    asked.assign(rule.factors.size(), {});
    for (size_t d = 0; d < tensor.dims.size(); ++d) {
      Parts parts = value.dims[d].axes;
      llvm::MutableArrayRef<ShardedBy> left(parts);
      for (int factor : tensor.dims[d]) {
        if (left.empty())
          break;
        if (!cut(factor, left, asked[factor]))
          break;
        asked[factor].priority = value.dims[d].priority;
      }
      if (left.empty())
        continue;
      why = "dimension " + std::to_string(d) + " is sharded over '" +
            left.front().axis.str() + "'";
      why += tensor.dims[d].empty() ? ", but the operator needs all of it"
                                    : ", which does not divide a part that "
                                      "the operator can be cut into";
      return false;
    }
    return true;
  }

  /// Takes what `asked` asks where nothing of higher priority is in the way;
  /// the factors that stay otherwise are the conflict. Of several axes those
  /// outside of the first one that shards another factor are taken, as the rest
  /// can be gathered alone, and axes inside of what was taken are added.
  bool take(llvm::ArrayRef<DimSharding> asked) {
    bool all = true;
    for (size_t f = 0; f < asked.size(); ++f) {
      ArrayRef<ShardedBy> axes = asked[f].axes;
      ArrayRef<ShardedBy> have = chosen[f].axes;
      const size_t shared = std::min(axes.size(), have.size());
      if (axes.take_front(shared) != have.take_front(shared)) {
        all = false;
        continue;
      }
      for (const ShardedBy &by : axes.drop_front(shared)) {
        if (llvm::any_of(chosen, [&](const DimSharding &other) {
              return other.uses(by.axis);
            })) {
          all = false;
          break;
        }
        if (chosen[f].axes.empty())
          chosen[f].priority = asked[f].priority;
        chosen[f].axes.push_back(by);
      }
    }
    return all;
  }

  SmallVector<Parts> taken() const {
    SmallVector<Parts> axes;
    for (const DimSharding &factor : chosen)
      axes.push_back(factor.axes);
    return axes;
  }

  ValueSharding result(const aten::TensorFactors &tensor) const {
    ValueSharding made;
    for (const auto &dim : tensor.dims) {
      DimSharding &to = made.dims.emplace_back();
      int64_t pieces = 1; // that lie outside of what comes next
      for (int factor : dim) {
        const DimSharding &from = chosen[factor];
        int64_t left = rule.factors[factor].size;
        for (const ShardedBy &by : from.axes) {
          to.axes.push_back({by.axis, pieces * by.pieces, by.mirrored});
          pieces = 1;
          left /= by.pieces * sizes(by.axis);
        }
        pieces *= left;
        if (!from.axes.empty())
          to.priority = std::max(to.priority,
                                 Priority{Priority::Flow, from.priority.bytes});
      }
    }
    // The largest and the smallest are found inside: a spec is a sum.
    for (int factor : tensor.partial)
      if (rule.factors[factor].combine == aten::Combine::Sum ||
          rule.factors[factor].combine == aten::Combine::Mean)
        for (const ShardedBy &by : chosen[factor].axes)
          made.partial.push_back(by.axis);
    return made;
  }

private:
  /// Takes from `left` the axes that cut one factor. False where an axis or a
  /// number of pieces crosses the factor's inner end.
  bool cut(int factor, llvm::MutableArrayRef<ShardedBy> &left,
           DimSharding &asked) {
    int64_t size = rule.factors[factor].size;
    while (!left.empty() && size > 1) {
      ShardedBy &by = left.front();
      if (by.pieces >= size) { // all of this factor lies outside
        if (by.pieces % size != 0 || countsPositions(factor))
          return false;
        if (by.mirrored && by.pieces / size % 2 != 0)
          return false;
        by.pieces /= size;
        return true;
      }
      const int64_t shards = sizes(by.axis);
      if (size % (by.pieces * shards) != 0 ||
          !takes(factor, by, asked.axes.empty()))
        return false;
      size /= by.pieces * shards;
      asked.axes.push_back(by);
      left = left.drop_front();
    }
    return true;
  }

  bool countsPositions(int factor) const {
    const aten::Form form = rule.factors[factor].form;
    return form == aten::Form::Rows || form == aten::Form::Positions ||
           form == aten::Form::Keys ||
           form == aten::Form::Statistics; // of classes, which are counted too
  }

  /// Where an operator counts positions, a rank has consecutive ones; of an
  /// attention, one axis shards the tokens: consecutive ones, or of a causal
  /// one as many from the start as from the end.
  bool takes(int factor, const ShardedBy &by, bool isFirst) const {
    const aten::Form form = rule.factors[factor].form;
    if (rule.factors[factor].kind == aten::FactorKind::Whole)
      return false;
    if (form == aten::Form::Context || form == aten::Form::Heads)
      return isFirst && (by.pieces == 1 || (form == aten::Form::Context &&
                                            by.pieces == 2 && by.mirrored));
    return by.pieces == 1 || !countsPositions(factor);
  }

  const aten::ShardingRule &rule;
  AxisSizes sizes;
  llvm::SmallVector<DimSharding> chosen;
};

} // namespace

SmallVector<ValueSharding, 2>
mesh::transfer(const aten::ShardingRule &rule,
               ArrayRef<const ValueSharding *> operands,
               ArrayRef<const ValueSharding *> wanted, AxisSizes sizes,
               SmallVectorImpl<Conflict> &conflicts) {
  Factors factors(rule, sizes);
  struct Ask {
    unsigned operand;
    Priority priority;
    SmallVector<DimSharding> factors;
  };
  SmallVector<Ask> asks;
  for (auto [i, value] : llvm::enumerate(operands)) {
    Ask &ask = asks.emplace_back();
    ask.operand = i;
    std::string why;
    if (!factors.project(rule.operands[i], *value, ask.factors, why))
      conflicts.push_back({static_cast<unsigned>(i), why});
    for (const DimSharding &dim : ask.factors)
      ask.priority = std::max(ask.priority, dim.priority);
  }
  llvm::stable_sort(
      asks, [](const Ask &a, const Ask &b) { return a.priority > b.priority; });
  for (const Ask &ask : asks)
    if (!factors.take(ask.factors))
      conflicts.push_back({ask.operand,
                           "another operand of higher priority is sharded "
                           "otherwise"});
  for (auto [i, value] : llvm::enumerate(wanted)) {
    SmallVector<DimSharding> asked;
    std::string why;
    if (value && factors.project(rule.results[i], *value, asked, why))
      factors.take(asked);
  }
  SmallVector<ValueSharding, 2> results;
  for (const aten::TensorFactors &tensor : rule.results)
    results.push_back(factors.result(tensor));
  return results;
}

/// Whether what an operand asks of `factor` agrees with the results: one of
/// them is a sum over those axes, or none of them shows the factor.
static bool resultsAllow(const aten::ShardingRule &rule,
                         ArrayRef<const ValueSharding *> results, int factor,
                         const DimSharding &asked) {
  for (auto [i, tensor] : llvm::enumerate(rule.results)) {
    if (llvm::any_of(tensor.dims, [&](const auto &dim) {
          return llvm::is_contained(dim, factor);
        }))
      return false;
    if (llvm::is_contained(tensor.partial, factor) &&
        !llvm::all_of(asked.axes, [&](const ShardedBy &by) {
          return llvm::is_contained(results[i]->partial, by.axis);
        }))
      return false;
  }
  return true;
}

LocalForm mesh::localForm(const aten::ShardingRule &rule,
                          ArrayRef<const ValueSharding *> operands,
                          ArrayRef<const ValueSharding *> results,
                          AxisSizes sizes,
                          function_ref<bool(const aten::Factor &)> canCut) {
  Factors factors(rule, sizes);
  SmallVector<DimSharding> asked;
  std::string why;
  auto dropWhole = [&] {
    for (auto [factor, of] : llvm::zip(rule.factors, asked))
      if (!canCut(factor))
        of.axes.clear();
  };
  for (auto [tensor, decided] : llvm::zip(rule.results, results)) {
    factors.project(tensor, *decided, asked, why);
    dropWhole();
    factors.take(asked);
  }
  for (auto [tensor, value] : llvm::zip(rule.operands, operands)) {
    factors.project(tensor, *value, asked, why);
    dropWhole();
    for (auto [f, of] : llvm::enumerate(asked))
      if (!resultsAllow(rule, results, f, of))
        of.axes.clear();
    factors.take(asked);
  }
  LocalForm form;
  for (const aten::TensorFactors &tensor : rule.operands)
    form.operands.push_back(factors.result(tensor));
  for (const aten::TensorFactors &tensor : rule.results)
    form.results.push_back(factors.result(tensor));
  form.factors = factors.taken();
  return form;
}

ValueSharding mesh::wantedOperand(const aten::ShardingRule &rule,
                                  unsigned operand, const ValueSharding &wanted,
                                  AxisSizes sizes) {
  Factors factors(rule, sizes);
  SmallVector<DimSharding> asked;
  std::string why;
  if (factors.project(rule.results[0], wanted, asked, why))
    factors.take(asked);
  return factors.result(rule.operands[operand]);
}
