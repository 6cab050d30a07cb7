//===- FoldCollectives.cpp - Collectives that cancel ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <numeric>

namespace accel {
#define GEN_PASS_DEF_FOLDCOLLECTIVESPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;
using namespace accel::sharding;

namespace {

int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

template <typename A, typename B> bool sameParts(A a, B b) {
  return a.getDim() == b.getDim() && a.getAxis() == b.getAxis() &&
         a.getPieces() == b.getPieces() && a.getMirrored() == b.getMirrored();
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
        slice.getAxis(), slice.getPieces(), slice.getMirrored());
    if (!rest.empty())
      value =
          AllReduceOp::create(rewriter, sum.getLoc(), value.getType(), value,
                              rewriter.getStrArrayAttr(rest), ReduceKind::Sum);
    rewriter.replaceOp(slice, value);
    return success();
  }
};

/// all_reduce(x) + all_reduce(y) = all_reduce(x + y): the gradient of what
/// several column-wise layers read is one exchange.
struct SumOfSums : OpRewritePattern<aten::AddTensorOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(aten::AddTensorOp add,
                                PatternRewriter &rewriter) const override {
    AllReduceOp sums[2];
    for (auto [sum, operand] : llvm::zip(sums, add->getOperands())) {
      sum = operand.getDefiningOp<AllReduceOp>();
      if (!sum || !sum->hasOneUse() || sum.getKind() != ReduceKind::Sum ||
          sum.getType() != add.getType())
        return failure();
    }
    if (sums[0].getAxes() != sums[1].getAxes())
      return failure();
    Value parts = aten::AddTensorOp::create(
        rewriter, add.getLoc(), sums[0].getValue(), sums[1].getValue());
    rewriter.replaceOpWithNewOp<AllReduceOp>(
        add, add.getType(), parts, sums[0].getAxes(), ReduceKind::Sum);
    return success();
  }
};

/// The same of sums of which each rank has a part.
struct SumOfScatters : OpRewritePattern<aten::AddTensorOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(aten::AddTensorOp add,
                                PatternRewriter &rewriter) const override {
    ReduceScatterOp parts[2];
    for (auto [part, operand] : llvm::zip(parts, add->getOperands())) {
      part = operand.getDefiningOp<ReduceScatterOp>();
      if (!part || !part->hasOneUse() || part.getType() != add.getType())
        return failure();
    }
    if (!sameParts(parts[0], parts[1]))
      return failure();
    Value sum = aten::AddTensorOp::create(
        rewriter, add.getLoc(), parts[0].getValue(), parts[1].getValue());
    rewriter.replaceOpWithNewOp<ReduceScatterOp>(
        add, add.getType(), sum, parts[0].getDim(), parts[0].getAxis(),
        parts[0].getPieces(), parts[0].getMirrored());
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

/// The dimension of a view's operand in which dimension `dim` of its result
/// lies, and the elements of it that lie outside; nullopt where the view cuts
/// across.
std::optional<std::pair<int64_t, int64_t>> placeInOperand(aten::ViewOp view,
                                                          int64_t dim) {
  ArrayRef<int64_t> from =
      cast<RankedTensorType>(view.getSelf().getType()).getShape();
  ArrayRef<int64_t> to = cast<RankedTensorType>(view.getType()).getShape();
  const int64_t before = product(to.take_front(dim)), within = before * to[dim];
  int64_t outside = 1;
  for (auto [d, size] : llvm::enumerate(from)) {
    if (before % outside == 0 && (outside * size) % within == 0 &&
        outside * size >= within)
      return std::pair(static_cast<int64_t>(d), before / outside);
    outside *= size;
  }
  return std::nullopt;
}

/// slice(view(x)) = view(slice(x)), so that a slice meets the sum behind it.
struct SliceBelowView : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp slice,
                                PatternRewriter &rewriter) const override {
    auto view = slice.getValue().getDefiningOp<aten::ViewOp>();
    if (!view || !view->hasOneUse() ||
        !view.getSelf().getDefiningOp<AllReduceOp>())
      return failure();
    auto place = placeInOperand(view, static_cast<int64_t>(slice.getDim()));
    if (!place)
      return failure();
    const auto [dim, outer] = *place;
    auto type = cast<RankedTensorType>(view.getSelf().getType());
    auto result = cast<RankedTensorType>(slice.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] /= type.getNumElements() / result.getNumElements();
    Value part = SliceOp::create(
        rewriter, slice.getLoc(), type.clone(shape), view.getSelf(), dim,
        slice.getAxis(), outer * static_cast<int64_t>(slice.getPieces()),
        slice.getMirrored());
    rewriter.replaceOp(slice, aten::ViewOp::create(rewriter, view.getLoc(),
                                                   part, result.getShape()));
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

/// all_gather(t(x)) = t(all_gather(x)), where x is gathered too: a matmul's
/// backward reads a gradient both ways.
struct GatherTransposed : OpRewritePattern<AllGatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllGatherOp gather,
                                PatternRewriter &rewriter) const override {
    auto turned = gather.getValue().getDefiningOp<aten::TOp>();
    if (!turned)
      return failure();
    const uint64_t dim = 1 - gather.getDim();
    const bool other =
        llvm::any_of(turned.getSelf().getUsers(), [&](Operation *user) {
          auto same = dyn_cast<AllGatherOp>(user);
          return same && same.getDim() == dim &&
                 same.getAxis() == gather.getAxis() &&
                 same.getPieces() == gather.getPieces() &&
                 same.getMirrored() == gather.getMirrored();
        });
    if (!other)
      return failure();
    auto type = cast<RankedTensorType>(gather.getType());
    Value whole = AllGatherOp::create(
        rewriter, gather.getLoc(),
        type.clone({type.getDimSize(1), type.getDimSize(0)}), turned.getSelf(),
        dim, gather.getAxis(), gather.getPieces(), gather.getMirrored());
    rewriter.replaceOpWithNewOp<aten::TOp>(gather, whole);
    return success();
  }
};

/// all_to_all(all_to_all(x)) = x where the second one undoes the first, as
/// attention's backward reads what its forward sent away; also behind a
/// transposition and its reverse.
struct UndoneExchange : OpRewritePattern<AllToAllOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllToAllOp exchange,
                                PatternRewriter &rewriter) const override {
    Value value = exchange.getValue();
    if (auto outer = value.getDefiningOp<aten::TransposeIntOp>())
      if (auto inner = outer.getSelf().getDefiningOp<aten::TransposeIntOp>();
          inner && inner->getAttrs() == outer->getAttrs())
        value = inner.getSelf();
    auto first = value.getDefiningOp<AllToAllOp>();
    if (!first || first.getAxis() != exchange.getAxis() ||
        first.getSplit() != exchange.getConcat() ||
        first.getConcat() != exchange.getSplit())
      return failure();
    rewriter.replaceOp(exchange, first.getValue());
    return success();
  }
};

/// Keys that are repeated for the heads that read them are copied by a reshape
/// unless the rank has one head of keys, which a view can repeat
/// (repeat_kv of transformers).
struct CopyOfOneHead : OpRewritePattern<aten::CloneOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(aten::CloneOp copy,
                                PatternRewriter &rewriter) const override {
    auto repeated = copy.getSelf().getDefiningOp<aten::ExpandOp>();
    auto apart = repeated
                     ? repeated.getSelf().getDefiningOp<aten::UnsqueezeOp>()
                     : aten::UnsqueezeOp();
    const auto dim = apart ? static_cast<int64_t>(apart.getDim()) : 0;
    auto type = cast<RankedTensorType>(copy.getType());
    if (dim < 1 || type.getDimSize(dim - 1) != 1)
      return failure();
    SmallVector<int64_t> merged(type.getShape());
    merged.erase(merged.begin() + dim - 1);
    if (!llvm::all_of(copy->getUsers(), [&](Operation *user) {
          auto view = dyn_cast<aten::ViewOp>(user);
          return view && view.getSize() == ArrayRef<int64_t>(merged);
        }))
      return failure();
    rewriter.replaceOp(copy, repeated.getResult());
    return success();
  }
};

/// A view that is made to be exchanged.
bool isExchanged(Operation &op) {
  return isa<aten::TransposeIntOp>(op) &&
         llvm::any_of(op.getUsers(), llvm::IsaPred<AllToAllOp>);
}

/// Equal collectives of one value, and they alone: what else repeats is
/// somebody else's decision.
void mergeEqual(Block &block, RewriterBase &rewriter) {
  DenseMap<Value, SmallVector<Operation *, 2>> readers;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!isa<AllReduceOp, AllGatherOp, ReduceScatterOp, SliceOp, AllToAllOp,
             PermuteOp, FirstRankOp>(op) &&
        !isExchanged(op))
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
    patterns.add<ScatterSum, SumOfSums, SumOfScatters, GatherTransposed,
                 SliceGathered, SliceBelowView, GatherSlice, UndoneExchange>(
        &getContext());
    // accel-run computes what the functions say.
    if (frameworkOf(getOperation()).eager())
      patterns.add<CopyOfOneHead>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([&](Block *block) { mergeEqual(*block, rewriter); });
  }
};

} // namespace
