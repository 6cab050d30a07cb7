//===- ValueShardings.h - Shardings on their way ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What propagate-sharding knows of a value, and how one operator passes it on.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_VALUESHARDINGS_H
#define ACCEL_PASSES_MESH_VALUESHARDINGS_H

#include "dialects/Aten/ShardingRule.h"
#include "dialects/Sharding/Spec.h"

#include <string>

namespace accel::mesh {

/// How much a sharding counts in a conflict: who decided it, then the bytes of
/// the parameter that it came from.
struct Priority {
  enum Level { None, Flow, Plan, User } level = None;
  int64_t bytes = 0;

  auto operator<=>(const Priority &) const = default;
};

using Axes = llvm::SmallVector<llvm::StringRef, 1>;
using Parts = llvm::SmallVector<sharding::ShardedBy, 1>;

struct DimSharding {
  Parts axes; // outermost first
  Priority priority;

  bool uses(llvm::StringRef axis) const {
    return llvm::any_of(
        axes, [&](const sharding::ShardedBy &by) { return by.axis == axis; });
  }
};

struct ValueSharding {
  llvm::SmallVector<DimSharding, 4> dims;
  /// What the operator that makes the value leaves to be reduced. Whoever reads
  /// it has the reduced value.
  Axes partial;

  bool isReplicated() const;
  bool isSharded(size_t dim) const { return !dims[dim].axes.empty(); }
};

/// Of an axis of the mesh.
using AxisSizes = llvm::function_ref<int64_t(llvm::StringRef)>;

ValueSharding replicated(mlir::Type type);

/// The state that a spec asks for, with its priority: a user's has a place in a
/// file, a plan's has a reason, and what flowed has neither.
ValueSharding fromSpec(sharding::SpecAttr spec, int64_t bytes);
sharding::SpecAttr toSpec(const ValueSharding &value,
                          mlir::MLIRContext *context);

/// Takes from `other` each dimension that is sharded there and replicated here,
/// or sharded otherwise by a lower priority. True if anything changed.
bool join(ValueSharding &into, const ValueSharding &other);

/// An operand that must be resharded before the operator reads it.
struct Conflict {
  unsigned operand;
  std::string why;
};

/// The shardings of the results of an operator with `rule` that reads
/// `operands`. `wanted` (null where nobody says) is what results should be
/// where the operands leave it open, as whole operands do: each rank reads its
/// part.
llvm::SmallVector<ValueSharding, 2>
transfer(const aten::ShardingRule &rule,
         llvm::ArrayRef<const ValueSharding *> operands,
         llvm::ArrayRef<const ValueSharding *> wanted, AxisSizes sizes,
         llvm::SmallVectorImpl<Conflict> &conflicts);

/// How an operator is computed by ranks that each have a part: the shardings
/// that its operands must have, and those that its results then have.
struct LocalForm {
  llvm::SmallVector<ValueSharding, 4> operands;
  llvm::SmallVector<ValueSharding, 2> results;
  /// The axes that cut each factor of the rule.
  llvm::SmallVector<Parts> factors;
};

/// The form in which results are as near to `results`, which were decided, as
/// the rule and `canCut` allow. What no result shows (a contracted dimension)
/// is cut as `operands` are: where a result is decided to be a sum, or where
/// the rule combines inside.
LocalForm localForm(const aten::ShardingRule &rule,
                    llvm::ArrayRef<const ValueSharding *> operands,
                    llvm::ArrayRef<const ValueSharding *> results,
                    AxisSizes sizes,
                    llvm::function_ref<bool(const aten::Factor &)> canCut);

/// What operand `operand` should be so that result 0 is `wanted`.
ValueSharding wantedOperand(const aten::ShardingRule &rule, unsigned operand,
                            const ValueSharding &wanted, AxisSizes sizes);

} // namespace accel::mesh

#endif // ACCEL_PASSES_MESH_VALUESHARDINGS_H
