//===- FoldCollectives.cpp - Collectives that cancel ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Sharding/Sharding.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace accel {
#define GEN_PASS_DEF_FOLDCOLLECTIVESPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;
using namespace accel::sharding;

namespace {

template <typename A, typename B> bool sameParts(A a, B b) {
  return a.getDim() == b.getDim() && a.getAxis() == b.getAxis() &&
         a.getPieces() == b.getPieces();
}

/// slice(all_reduce(x)) = reduce_scatter(x), if nobody else reads the sum.
struct ScatterSum : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp slice,
                                PatternRewriter &rewriter) const override {
    auto sum = slice.getValue().getDefiningOp<AllReduceOp>();
    if (!sum || !sum->hasOneUse() || sum.getKind() != ReduceKind::Sum)
      return failure();
    SmallVector<StringRef> rest;
    for (StringRef axis : sum.getAxes().getAsValueRange<StringAttr>())
      if (axis != slice.getAxis())
        rest.push_back(axis);
    if (rest.size() == sum.getAxes().size())
      return failure();
    Value value = ReduceScatterOp::create(
        rewriter, sum.getLoc(), slice.getType(), sum.getValue(), slice.getDim(),
        slice.getAxis(), slice.getPieces());
    if (!rest.empty())
      value =
          AllReduceOp::create(rewriter, sum.getLoc(), value.getType(), value,
                              rewriter.getStrArrayAttr(rest), ReduceKind::Sum);
    rewriter.replaceOp(slice, value);
    return success();
  }
};

/// slice(all_gather(x)) = x, or an all_to_all where another dimension is
/// sliced and nobody else reads the whole.
struct SliceGathered : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp slice,
                                PatternRewriter &rewriter) const override {
    auto whole = slice.getValue().getDefiningOp<AllGatherOp>();
    if (!whole || whole.getAxis() != slice.getAxis())
      return failure();
    if (sameParts(slice, whole)) {
      rewriter.replaceOp(slice, whole.getValue());
      return success();
    }
    if (whole.getDim() == slice.getDim() || whole.getPieces() != 1 ||
        slice.getPieces() != 1 || !whole->hasOneUse())
      return failure();
    rewriter.replaceOpWithNewOp<AllToAllOp>(slice, slice.getType(),
                                            whole.getValue(), slice.getDim(),
                                            whole.getDim(), slice.getAxis());
    return success();
  }
};

/// all_gather(slice(x)) = x.
struct GatherSlice : OpRewritePattern<AllGatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllGatherOp gather,
                                PatternRewriter &rewriter) const override {
    auto slice = gather.getValue().getDefiningOp<SliceOp>();
    if (!slice || !sameParts(gather, slice))
      return failure();
    rewriter.replaceOp(gather, slice.getValue());
    return success();
  }
};

/// Equal collectives of one value, and they alone: what else repeats is
/// somebody else's decision.
void mergeEqual(Block &block, RewriterBase &rewriter) {
  DenseMap<Value, SmallVector<Operation *, 2>> readers;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!isa<AllReduceOp, AllGatherOp, ReduceScatterOp, SliceOp, AllToAllOp,
             FirstRankOp>(op))
      continue;
    auto &known = readers[op.getOperand(0)];
    auto same = llvm::find_if(known, [&](Operation *other) {
      return OperationEquivalence::isEquivalentTo(
          &op, other, OperationEquivalence::IgnoreLocations);
    });
    if (same == known.end())
      known.push_back(&op);
    else
      rewriter.replaceOp(&op, *same);
  }
}

struct FoldCollectivesPass
    : accel::impl::FoldCollectivesPassBase<FoldCollectivesPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](Block *block) { mergeEqual(*block, rewriter); });
    RewritePatternSet patterns(&getContext());
    patterns.add<ScatterSum, SliceGathered, GatherSlice>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
