//===- ShardingRuleAttention.cpp - Attention on shards ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Batches and heads are for themselves; G groups of R query heads share a key
// head, so query heads have the factors G and R, and key heads G. Queries are
// for themselves where no causal mask counts their positions, and keys must be
// whole; of a causal kernel without another mask, queries and keys have their
// tokens in common, which shard in the form `Context`.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Dropped.h"
#include "dialects/Aten/ShardingRuleBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

namespace {

/// Which tokens of an attention can be sharded: none; those of queries, each
/// for itself; those of queries and keys alike, of which a causal kernel reads
/// its own and others', or which are exchanged for heads.
enum class Tokens { Whole, OfQueries, InContext, ForHeads };

/// The factors of one attention, and who has them.
class Heads {
public:
  Heads(Operation *op, Value query, Value key, Tokens tokens, Form form)
      : b(op), batch(make(shapeOf(query)[0], form)),
        groups(make(shapeOf(key)[1], ofHeads(op, form))),
        perGroup(make(shapeOf(query)[1] / shapeOf(key)[1], ofHeads(op, form))),
        sequence(tokens == Tokens::OfQueries ? make(shapeOf(query)[2], form)
                                             : -1),
        context((tokens == Tokens::InContext || tokens == Tokens::ForHeads) &&
                        shapeOf(query)[2] == shapeOf(key)[2]
                    ? b.blocked(shapeOf(query)[2], tokens == Tokens::InContext
                                                       ? Form::Context
                                                       : Form::Heads)
                    : -1),
        grouped(shapeOf(query)[1] != shapeOf(key)[1]) {}

  /// [B, H, S, ...]
  void query(TensorFactors &tensor) {
    tensor.dims[0].push_back(batch);
    tensor.dims[1] = {groups, perGroup};
    if (sequence >= 0)
      tensor.dims[2].push_back(sequence);
    if (context >= 0)
      tensor.dims[2].push_back(context);
  }
  /// [B, G, T, D]
  void key(TensorFactors &tensor) {
    tensor.dims[0].push_back(batch);
    tensor.dims[1].push_back(groups);
    if (context >= 0)
      tensor.dims[2].push_back(context);
  }
  /// Gradients of keys and values are sums over what reads them.
  void keyGradient(unsigned result) {
    key(b.results(result));
    if (grouped)
      b.partial(result, perGroup);
    if (sequence >= 0)
      b.partial(result, sequence);
  }
  /// [B or 1, H or 1, S or 1, T]; where tokens are exchanged it has all.
  void mask(TensorFactors &tensor, Value value, Value query) {
    TensorFactors all;
    all.dims.resize(4);
    this->query(all);
    if (context >= 0)
      all.dims[2].clear();
    for (unsigned d = 0; d < 3; ++d)
      if (shapeOf(value)[d] == shapeOf(query)[d])
        tensor.dims[d] = all.dims[d];
  }

  RuleBuilder b;

private:
  int make(int64_t size, Form form) {
    return form == Form::None ? b.factor(size) : b.blocked(size, form);
  }
  /// Kernels that drop weights draw for each rank's heads.
  static Form ofHeads(Operation *op, Form form) {
    return form == Form::Positions && !isa<ScaledDotProductAttentionOp>(op)
               ? Form::Keys
               : form;
  }
  int batch, groups, perGroup, sequence, context;
  bool grouped; // several query heads read a key head
};

template <typename OpT>
constexpr bool takesMask = requires(OpT op) { op.getMask(); };

/// Of a kernel that gives the log-sum-exp of each row, one for each token.
template <typename OpT> Tokens tokensOf(OpT op) {
  if (!op.getIsCausal())
    return Tokens::OfQueries;
  if constexpr (takesMask<OpT>)
    if (op.getMask())
      return Tokens::ForHeads;
  return Tokens::InContext;
}

/// Of a kernel that pads the log-sum-exp along the sequence: where nothing is
/// padded, it is one for each token.
Tokens tokensOfPadded(Value query, Value logsumexp) {
  return shapeOf(query)[2] == shapeOf(logsumexp)[2] ? Tokens::ForHeads
                                                    : Tokens::Whole;
}

template <typename OpT>
MaybeRule forwardRule(OpT op, Tokens tokens, Form form = Form::None) {
  Heads heads(op, op.getQuery(), op.getKey(), tokens, form);
  heads.query(heads.b.operands(0));
  heads.key(heads.b.operands(1));
  heads.key(heads.b.operands(2));
  if constexpr (takesMask<OpT>)
    if (op.getMask())
      heads.mask(heads.b.operands(3), op.getMask(), op.getQuery());
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    heads.query(heads.b.results(i));
  return heads.b.take();
}

template <typename OpT>
MaybeRule backwardRule(OpT op, Tokens tokens, Form form = Form::None) {
  Heads heads(op, op.getQuery(), op.getKey(), tokens, form);
  for (unsigned i : {0u, 1u, 4u, 5u}) // gradient, query, output, log-sum-exp
    heads.query(heads.b.operands(i));
  heads.key(heads.b.operands(2));
  heads.key(heads.b.operands(3));
  if constexpr (takesMask<OpT>)
    if (op.getMask())
      heads.mask(heads.b.operands(6), op.getMask(), op.getQuery());
  heads.query(heads.b.results(0));
  heads.keyGradient(1);
  heads.keyGradient(2);
  return heads.b.take();
}

/// Each row of scores has a gradient of its own.
MaybeRule maskBackwardRule(EfficientAttentionMaskBackwardOp op) {
  Heads heads(op, op.getQuery(), op.getKey(), Tokens::Whole, Form::None);
  for (unsigned i : {0u, 1u, 5u, 6u}) // gradient, query, output, log-sum-exp
    heads.query(heads.b.operands(i));
  heads.key(heads.b.operands(2));
  heads.key(heads.b.operands(3));
  heads.mask(heads.b.operands(4), op.getMask(), op.getQuery());
  heads.query(heads.b.results(0));
  heads.keyGradient(1);
  heads.keyGradient(2);
  heads.mask(heads.b.results(3), op.getMask(), op.getQuery());
  return heads.b.take();
}

/// Batches and heads of [B, S, H, D], key heads [B, T, G, D] and statistics
/// [B, H, S]; tokens, which are exchanged for heads.
class WindowHeads {
public:
  WindowHeads(Operation *op, Value query, Value key)
      : b(op), batch(b.factor(shapeOf(query)[0])),
        groups(b.factor(shapeOf(key)[2])),
        perGroup(b.factor(shapeOf(query)[2] / shapeOf(key)[2])),
        context(shapeOf(query)[1] == shapeOf(key)[1]
                    ? b.blocked(shapeOf(query)[1], Form::Heads)
                    : -1),
        grouped(shapeOf(query)[2] != shapeOf(key)[2]) {}

  void query(TensorFactors &tensor) {
    tensor.dims[0].push_back(batch);
    tokens(tensor, 1);
    tensor.dims[2] = {groups, perGroup};
  }
  void key(TensorFactors &tensor) {
    tensor.dims[0].push_back(batch);
    tokens(tensor, 1);
    tensor.dims[2].push_back(groups);
  }
  void keyGradient(unsigned result) {
    key(b.results(result));
    if (grouped)
      b.partial(result, perGroup);
  }
  void statistics(TensorFactors &tensor) {
    tensor.dims[0].push_back(batch);
    tensor.dims[1] = {groups, perGroup};
    tokens(tensor, 2);
  }

  RuleBuilder b;

private:
  void tokens(TensorFactors &tensor, unsigned dim) {
    if (context >= 0)
      tensor.dims[dim].push_back(context);
  }

  int batch, groups, perGroup, context;
  bool grouped;
};

MaybeRule windowRule(WindowAttentionOp op) {
  WindowHeads heads(op, op.getQuery(), op.getKey());
  heads.query(heads.b.operands(0));
  heads.key(heads.b.operands(1));
  heads.key(heads.b.operands(2));
  heads.query(heads.b.results(0));
  heads.statistics(heads.b.results(1));
  return heads.b.take();
}

MaybeRule windowBackwardRule(WindowAttentionBackwardOp op) {
  WindowHeads heads(op, op.getQuery(), op.getKey());
  for (unsigned i : {0u, 1u, 4u}) // gradient, query, output
    heads.query(heads.b.operands(i));
  heads.key(heads.b.operands(2));
  heads.key(heads.b.operands(3));
  heads.statistics(heads.b.operands(5));
  heads.query(heads.b.results(0));
  heads.keyGradient(1);
  heads.keyGradient(2);
  return heads.b.take();
}

} // namespace

MaybeRule aten::attentionRule(Operation *op) {
  return llvm::TypeSwitch<Operation *, MaybeRule>(op)
      .Case([](ScaledDotProductAttentionOp op) {
        const bool drops = !op.getDropoutP().isZero();
        return forwardRule(op,
                           !op.getIsCausal() ? Tokens::OfQueries
                           : drops           ? Tokens::Whole
                                             : Tokens::ForHeads,
                           drops ? Form::Positions : Form::None);
      })
      // The last dimension of cuDNN's statistics has no factor.
      .Case<FlashAttentionForCpuOp, FlashAttentionOp, CudnnAttentionOp>(
          [](auto op) { return forwardRule(op, tokensOf(op)); })
      .Case<FlashAttentionForCpuBackwardOp, FlashAttentionBackwardOp,
            CudnnAttentionBackwardOp>(
          [](auto op) { return backwardRule(op, tokensOf(op)); })
      .Case([](EfficientAttentionOp op) {
        return forwardRule(op,
                           tokensOfPadded(op.getQuery(), op.getLogsumexp()));
      })
      .Case([](EfficientAttentionBackwardOp op) {
        return backwardRule(op,
                            tokensOfPadded(op.getQuery(), op.getLogsumexp()));
      })
      // Which weights stay is a function of their position, and of the rank.
      .Case<DroppedFlashAttentionOp, DroppedEfficientAttentionOp>([](auto op) {
        return forwardRule(op, Tokens::Whole, Form::Positions);
      })
      .Case<DroppedFlashAttentionBackwardOp,
            DroppedEfficientAttentionBackwardOp>([](auto op) {
        return backwardRule(op, Tokens::Whole, Form::Positions);
      })
      .Case([](EfficientAttentionMaskBackwardOp op) {
        return maskBackwardRule(op);
      })
      .Case([](WindowAttentionOp op) { return windowRule(op); })
      .Case([](WindowAttentionBackwardOp op) { return windowBackwardRule(op); })
      .Default(MaybeRule());
}
