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
    made.dims.push_back({Axes(spec.axesOf(dim)), priority});
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
    dims.push_back(names(dim.axes));
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
        for (StringRef axis : from.axes)
          elsewhere |= llvm::is_contained(into.dims[j].axes, axis);
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
      llvm::ArrayRef<StringRef> axes = value.dims[d].axes;
      for (int factor : tensor.dims[d]) {
        int64_t left = rule.factors[factor].size;
        while (!axes.empty() && left % sizes(axes.front()) == 0 &&
               sizes(axes.front()) <= left) {
          left /= sizes(axes.front());
          asked[factor].axes.push_back(axes.front());
          asked[factor].priority = value.dims[d].priority;
          axes = axes.drop_front();
        }
        if (left != 1)
          break; // an inner factor is cut behind the last element of this one
      }
      if (axes.empty())
        continue;
      why = "dimension " + std::to_string(d) + " is sharded over '" +
            axes.front().str() + "'";
      why += tensor.dims[d].empty() ? ", but the operator needs all of it"
                                    : ", which does not divide a part that "
                                      "the operator can be cut into";
      return false;
    }
    return true;
  }

  /// Takes what `asked` asks where nothing of higher priority is in the way;
  /// the factors that stay otherwise are the conflict.
  bool take(llvm::ArrayRef<DimSharding> asked) {
    bool all = true;
    for (size_t f = 0; f < asked.size(); ++f) {
      if (asked[f].axes.empty() || asked[f].axes == chosen[f].axes)
        continue;
      bool free = chosen[f].axes.empty();
      for (size_t g = 0; g < chosen.size() && free; ++g)
        for (StringRef axis : asked[f].axes)
          free &= !llvm::is_contained(chosen[g].axes, axis);
      if (free)
        chosen[f] = asked[f];
      all &= free;
    }
    return all;
  }

  /// Leaves whole what no block of consecutive elements of some tensor is.
  void keepBlocks() {
    for (bool changed = true; changed;) {
      changed = false;
      for (ArrayRef<aten::TensorFactors> list :
           {ArrayRef(rule.operands), ArrayRef(rule.results)})
        for (const aten::TensorFactors &tensor : list)
          for (const auto &dim : tensor.dims)
            changed |= dropInner(dim);
    }
  }

  ValueSharding result(const aten::TensorFactors &tensor) const {
    ValueSharding made;
    for (const auto &dim : tensor.dims) {
      DimSharding &to = made.dims.emplace_back();
      for (int factor : dim) {
        const DimSharding &from = chosen[factor];
        to.axes.append(from.axes);
        if (!from.axes.empty())
          to.priority = std::max(to.priority,
                                 Priority{Priority::Flow, from.priority.bytes});
      }
    }
    // The largest and the smallest are found inside: a spec is a sum.
    for (int factor : tensor.partial)
      if (rule.factors[factor].combine == aten::Combine::Sum ||
          rule.factors[factor].combine == aten::Combine::Mean)
        made.partial.append(chosen[factor].axes);
    return made;
  }

private:
  bool dropInner(llvm::ArrayRef<int> dim) {
    bool whole = true;
    for (int factor : dim) {
      if (!whole && !chosen[factor].axes.empty()) {
        chosen[factor] = {};
        return true;
      }
      int64_t shards = 1;
      for (StringRef axis : chosen[factor].axes)
        shards *= sizes(axis);
      whole &= shards == rule.factors[factor].size;
    }
    return false;
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
  factors.keepBlocks();
  for (auto [i, value] : llvm::enumerate(operands)) {
    if (llvm::any_of(conflicts, [&, i = i](const Conflict &conflict) {
          return conflict.operand == i;
        }))
      continue;
    const ValueSharding read = factors.result(rule.operands[i]);
    for (auto [d, dim] : llvm::enumerate(value->dims))
      if (!dim.axes.empty() && dim.axes != read.dims[d].axes) {
        conflicts.push_back({static_cast<unsigned>(i),
                             "dimension " + std::to_string(d) +
                                 " is sharded over '" + dim.axes.front().str() +
                                 "', of which a rank's part is no block of "
                                 "consecutive elements "
                                 "of another operand or result"});
        break;
      }
  }
  SmallVector<ValueSharding, 2> results;
  for (const aten::TensorFactors &tensor : rule.results)
    results.push_back(factors.result(tensor));
  return results;
}

ValueSharding mesh::wantedOperand(const aten::ShardingRule &rule,
                                  unsigned operand, const ValueSharding &wanted,
                                  AxisSizes sizes) {
  Factors factors(rule, sizes);
  SmallVector<DimSharding> asked;
  std::string why;
  if (factors.project(rule.results[0], wanted, asked, why))
    factors.take(asked);
  factors.keepBlocks();
  return factors.result(rule.operands[operand]);
}
