//===- ShardingRule.h - How operators run on shards -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A rule names the factors of an operation: index ranges that its operands and
// results have in common. A dimension is a product of factors, the outermost
// first; a view splits and merges them. Sharding a factor over mesh axes shards
// every dimension that it is in, and the same operator on the shards computes
// the shards of the results, with what the rule says besides. A dimension, or
// the inner rest of one, that no factor covers must be whole on each rank.
//
// test/parity holds each rule against the whole operator on random shards.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_SHARDINGRULE_H
#define ACCEL_DIALECTS_ATEN_SHARDINGRULE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace accel::aten {

enum class FactorKind {
  Parallel,  // shards compute for themselves
  Reduction, // some results are partial: what ranks have is combined
  Blocked,   // shards compute if the operator takes the factor's `Form`
  Whole,     // every rank needs all of it, as of pieces around an inner factor
};

/// How the parts of a result that is partial over a factor are combined.
enum class Combine { Sum, Mean, Max, Min };

/// What an operator on shards does about a blocked factor.
enum class Form {
  None,
  /// Row numbers count from the shard's first row; others contribute nothing.
  Rows,
  /// Statistics along the factor are combined over the ranks inside.
  Statistics,
  /// A mean divides by the count of all ranks.
  Counted,
  /// A function of an element's position in the whole tensor.
  Positions,
  /// A function of an element's position in the rank's part and of the rank.
  Keys,
  /// Tokens of a causal attention, which reads keys of other ranks: some from
  /// the start and as many from the end, or consecutive ones as in Heads.
  Context,
  /// Consecutive tokens of an attention, which ranks exchange for heads.
  Heads,
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::Parallel;
  Combine combine = Combine::Sum;
  Form form = Form::None;
};

/// Factors of each dimension of an operand or result.
struct TensorFactors {
  llvm::SmallVector<llvm::SmallVector<int, 1>, 4> dims;
  /// Of a result: factors over which it is partial.
  llvm::SmallVector<int, 1> partial;
};

/// An attribute that holds the shape of a result, or with `dim` one size of it.
/// With `factor`, it counts elements across whole pieces of that factor, of
/// which a rank has its part of each.
struct SizeAttribute {
  llvm::StringRef name;
  unsigned result = 0;
  int dim = -1;
  int factor = -1;
};

struct ShardingRule {
  llvm::SmallVector<Factor, 6> factors;
  llvm::SmallVector<TensorFactors, 4> operands;
  llvm::SmallVector<TensorFactors, 2> results;
  /// Operands that one rank alone adds where a result is partial (a bias).
  llvm::SmallVector<unsigned, 1> once;
  llvm::SmallVector<SizeAttribute, 1> sizes;
};

/// The rule of an aten operation; nullopt for operators that have none, which
/// need whole operands.
std::optional<ShardingRule> shardingRule(mlir::Operation *op);

llvm::StringRef stringifyFactorKind(FactorKind kind);
llvm::StringRef stringifyCombine(Combine combine);
llvm::StringRef stringifyForm(Form form);

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_SHARDINGRULE_H
