//===- OwnPart.cpp - Operators that count or combine along shards ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Mesh/OwnPart.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Dropped.h"
#include "dialects/Aten/Fused.h"
#include "passes/Mesh/ContextAttention.h"
#include "passes/Mesh/HeadExchange.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;

using Values = SmallVector<Value>;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

bool mesh::hasOwnPart(Operation *op, aten::Form form) {
  auto isI64 = [](Value value) {
    return typeOf(value).getElementType().isInteger(64);
  };
  auto isF32 = [](Value value) {
    return typeOf(value).getElementType().isF32();
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<aten::EmbeddingOp, aten::EmbeddingDenseBackwardOp>([&](auto look) {
        return form == aten::Form::Rows && isI64(look.getIndices());
      })
      .Case<aten::NllLossForwardOp, aten::NllLossBackwardOp>([&](auto loss) {
        return (form == aten::Form::Rows || form == aten::Form::Counted) &&
               isI64(loss.getTarget()) && isF32(loss.getSelf());
      })
      .Case([&](aten::CrossEntropyOp loss) {
        return (form == aten::Form::Statistics ||
                form == aten::Form::Counted) &&
               isI64(loss.getTargets());
      })
      .Case<aten::CrossEntropyBackwardOp, aten::CrossEntropyInPlaceBackwardOp>(
          [&](auto loss) {
            return (form == aten::Form::Rows || form == aten::Form::Counted) &&
                   isI64(loss.getTargets());
          })
      .Case([&](aten::LogSoftmaxOp softmax) {
        return form == aten::Form::Statistics && isF32(softmax.getSelf());
      })
      .Case([&](aten::LogSoftmaxBackwardDataOp softmax) {
        return form == aten::Form::Statistics && isF32(softmax.getOutput()) &&
               isF32(softmax.getResult());
      })
      .Case<aten::DroppedFlashAttentionOp,
            aten::DroppedFlashAttentionBackwardOp,
            aten::DroppedEfficientAttentionOp,
            aten::DroppedEfficientAttentionBackwardOp>(
          [&](auto) { return form == aten::Form::Keys; })
      .Default((form == aten::Form::Context && isContextAttention(op)) ||
               (form == aten::Form::Heads && isAttention(op)));
}

namespace {

/// Writes one operation anew in front of it.
class OwnPart {
public:
  OwnPart(Operation *op, sharding::MeshOp mesh, ArrayRef<mesh::FormAxes> forms)
      : b(op), loc(op->getLoc()), mesh(mesh) {
    for (const mesh::FormAxes &of : forms)
      (of.form == aten::Form::Counted ? counted : axes) = of.axes;
  }

  Values rewrite(aten::EmbeddingOp look) {
    const Place place = within(look.getIndices(), rowsOf(look.getWeight()));
    look.getIndicesMutable().assign(place.own);
    look.setPaddingIdx(-1); // of its gradient alone
    b.setInsertionPointAfter(look);
    Value made = withoutOthers(look.getResult(), place.others);
    look.getResult().replaceAllUsesExcept(made, made.getDefiningOp());
    return {made};
  }

  Values rewrite(aten::EmbeddingDenseBackwardOp look) {
    Place place = within(look.getIndices(), rowsOf(look.getResult()));
    if (const auto padding = static_cast<int64_t>(look.getPaddingIdx());
        padding >= 0) {
      Value padded = aten::EqScalarOp::create(b, loc, look.getIndices(),
                                              b.getI64IntegerAttr(padding));
      place.others = aten::LogicalOrOp::create(b, loc, place.others, padded);
    }
    look.getGradOutputMutable().assign(
        withoutOthers(look.getGradOutput(), place.others));
    look.getIndicesMutable().assign(place.own);
    look.setPaddingIdx(-1);
    return {look.getResult()};
  }

  /// The target's logit is on one rank, which alone adds it; the weight is
  /// counted from all targets of the rank's rows, and a mean divides by those
  /// of all rows.
  Values rewrite(aten::NllLossForwardOp loss) {
    constexpr int64_t none = 0, mean = 1, sum = 2;
    const auto ignored = static_cast<int64_t>(loss.getIgnoreIndex());
    const auto reduction = static_cast<int64_t>(loss.getReduction());
    Value targets = axes.empty()
                        ? loss.getTarget()
                        : ownTargets(loss.getSelf(), loss.getTarget(), ignored);
    auto own =
        aten::NllLossForwardOp::create(b, loc, loss.getSelf(), targets, ignored,
                                       reduction == none ? none : sum);
    Value weight = sumOf(counted01(loss.getTarget(), ignored));
    Value output = own.getOutput();
    if (reduction == mean)
      output = aten::DivTensorOp::create(b, loc, output, allCounts(weight));
    return replace(loss, {output, weight});
  }

  Values rewrite(aten::NllLossBackwardOp loss) {
    if (axes.empty())
      return {loss.getResult()};
    loss.getTargetMutable().assign(
        ownTargets(loss.getSelf(), loss.getTarget(),
                   static_cast<int64_t>(loss.getIgnoreIndex())));
    return {loss.getResult()};
  }

  /// The log-sum-exps of all ranks' classes, and the targets' logits, each of
  /// which one rank has (Megatron's VocabParallelCrossEntropy). The mean
  /// divides by the targets of all rows.
  Values rewrite(aten::CrossEntropyOp loss) {
    if (axes.empty()) {
      Value count = countOf(loss), all = allCounts(count);
      auto own = aten::CrossEntropyOp::create(
          b, loc, loss.getLogits(), loss.getTargets(),
          static_cast<int64_t>(loss.getIgnoreIndex()), loss.getInPlace());
      Value sum = aten::MulTensorOp::create(b, loc, own.getLoss(), count);
      return replace(
          loss, {aten::DivTensorOp::create(b, loc, sum, all), own.getSums()});
    }
    auto own = aten::CrossEntropyOp::create(
        b, loc, loss.getLogits(), classesHere(loss),
        static_cast<int64_t>(loss.getIgnoreIndex()), loss.getInPlace());
    Value largest = allReduce(own.getSums(), axes, sharding::ReduceKind::Max);
    Value shifted = aten::SubTensorOp::create(b, loc, own.getSums(), largest);
    Value total = allReduce(aten::ExpOp::create(b, loc, shifted), axes,
                            sharding::ReduceKind::Sum);
    Value sums = aten::AddTensorOp::create(b, loc, largest,
                                           aten::LogOp::create(b, loc, total));
    Value counts = counted01(loss), count = sumOf(counts);
    auto sumOfRows = [&](Value rows) {
      return sumOf(aten::MulTensorOp::create(b, loc, rows, counts));
    };
    // What is left of this rank's sum of log-sum-exps is its targets' logits.
    Value logits = aten::SubTensorOp::create(
        b, loc, sumOfRows(own.getSums()),
        aten::MulTensorOp::create(b, loc, own.getLoss(), count));
    Value sum = aten::SubTensorOp::create(
        b, loc, sumOfRows(sums),
        allReduce(logits, axes, sharding::ReduceKind::Sum));
    return replace(
        loss, {aten::DivTensorOp::create(b, loc, sum, allCounts(count)), sums});
  }

  /// A row's gradient is its softmax, less one at the target, where that is.
  template <typename BackwardOp> Values rewriteFused(BackwardOp loss) {
    if (!counted.empty()) {
      Value count = countOf(loss);
      Value share = aten::DivTensorOp::create(b, loc, count, allCounts(count));
      loss.getGradOutMutable().assign(
          aten::MulTensorOp::create(b, loc, loss.getGradOut(), share));
    }
    if (!axes.empty())
      loss.getTargetsMutable().assign(classesHere(loss));
    return {loss.getResult()};
  }
  Values rewrite(aten::CrossEntropyBackwardOp loss) {
    return rewriteFused(loss);
  }
  Values rewrite(aten::CrossEntropyInPlaceBackwardOp loss) {
    return rewriteFused(loss);
  }

  /// x - max - log(sum(exp(x - max))), the largest and the sum over all ranks.
  Values rewrite(aten::LogSoftmaxOp softmax) {
    const SmallVector<int64_t> dims = {static_cast<int64_t>(softmax.getDim())};
    Value largest =
        allReduce(aten::AmaxOp::create(b, loc, softmax.getSelf(), dims, true),
                  axes, sharding::ReduceKind::Max);
    Value shifted =
        aten::SubTensorOp::create(b, loc, softmax.getSelf(), largest);
    Value exponentials = aten::ExpOp::create(b, loc, shifted);
    Value total =
        allReduce(aten::SumDimOp::create(b, loc, exponentials, dims, true),
                  axes, sharding::ReduceKind::Sum);
    Value logarithm = aten::LogOp::create(b, loc, total);
    Value made = aten::SubTensorOp::create(b, loc, shifted, logarithm);
    return replace(softmax, {made});
  }

  /// gradient - exp(output) * sum(gradient), the sum over all ranks.
  Values rewrite(aten::LogSoftmaxBackwardDataOp softmax) {
    const SmallVector<int64_t> dims = {static_cast<int64_t>(softmax.getDim())};
    Value total = allReduce(
        aten::SumDimOp::create(b, loc, softmax.getGradOutput(), dims, true),
        axes, sharding::ReduceKind::Sum);
    Value shares = aten::ExpOp::create(b, loc, softmax.getOutput());
    Value part = aten::MulTensorOp::create(b, loc, shares, total);
    Value made =
        aten::SubTensorOp::create(b, loc, softmax.getGradOutput(), part);
    return replace(softmax, {made});
  }

private:
  /// Indices counted from the part's first row, moved into the part where they
  /// lie outside, and which of them do.
  struct Place {
    Value own, others;
  };

  static int64_t rowsOf(Value table) { return typeOf(table).getDimSize(0); }

  Place within(Value indices, int64_t rows) {
    Value own = indices;
    int64_t step = rows;
    for (StringRef axis : llvm::reverse(axes)) {
      Value first = sharding::CoordinateOp::create(
          b, loc, RankedTensorType::get({}, b.getI64Type()), axis, step);
      own = aten::SubTensorOp::create(b, loc, own, first);
      step *= mesh.axisSize(axis);
    }
    Value inside = aten::ClampOp::create(b, loc, own, b.getI64IntegerAttr(0),
                                         b.getI64IntegerAttr(rows - 1));
    return {inside, aten::NeTensorOp::create(b, loc, own, inside)};
  }

  /// Zeros behind the indices that are others'.
  Value withoutOthers(Value of, Value others) {
    Value mask =
        aten::UnsqueezeOp::create(b, loc, others, typeOf(others).getRank());
    return aten::MaskedFillScalarOp::create(b, loc, of, mask,
                                            b.getF64FloatAttr(0));
  }

  /// Classes counted from the part's first one; those of others are ignored.
  Value ownTargets(Value classes, Value targets, int64_t ignored) {
    const Place place = within(targets, typeOf(classes).getDimSize(1));
    return aten::MaskedFillScalarOp::create(b, loc, place.own, place.others,
                                            b.getI64IntegerAttr(ignored));
  }

  /// Of a fused loss: targets counted from this rank's first class. Those of
  /// other ranks lie outside of the classes, and ignored ones stay so.
  template <typename LossOp> Value classesHere(LossOp loss) {
    const auto ignored = static_cast<int64_t>(loss.getIgnoreIndex());
    const Place place =
        within(loss.getTargets(), typeOf(loss.getLogits()).getDimSize(1));
    Value own = aten::MaskedFillScalarOp::create(
        b, loc, place.own, place.others,
        b.getI64IntegerAttr(ignored == -1 ? -2 : -1));
    Value nobodys = aten::EqScalarOp::create(b, loc, loss.getTargets(),
                                             b.getI64IntegerAttr(ignored));
    return aten::MaskedFillScalarOp::create(b, loc, own, nobodys,
                                            b.getI64IntegerAttr(ignored));
  }

  /// 1 for each row with a target, 0 for those that are ignored.
  Value counted01(Value targets, int64_t ignored) {
    Value counts =
        aten::NeScalarOp::create(b, loc, targets, b.getI64IntegerAttr(ignored));
    return aten::ToCopyOp::create(b, loc, counts, Type(b.getF32Type()));
  }
  template <typename LossOp> Value counted01(LossOp loss) {
    return counted01(loss.getTargets(),
                     static_cast<int64_t>(loss.getIgnoreIndex()));
  }
  Value sumOf(Value rows) {
    return aten::SumDimOp::create(b, loc, rows, ArrayRef<int64_t>{0}, false);
  }
  template <typename LossOp> Value countOf(LossOp loss) {
    return sumOf(counted01(loss));
  }
  Value allCounts(Value count) {
    return counted.empty()
               ? count
               : allReduce(count, counted, sharding::ReduceKind::Sum);
  }

  Value allReduce(Value value, ArrayRef<StringRef> over,
                  sharding::ReduceKind kind) {
    return sharding::AllReduceOp::create(b, loc, value.getType(), value,
                                         b.getStrArrayAttr(over), kind);
  }

  Values replace(Operation *op, Values made) {
    op->replaceAllUsesWith(made);
    op->erase();
    return made;
  }

  OpBuilder b;
  Location loc;
  sharding::MeshOp mesh;
  /// Of rows, or of classes; and those over which rows of a mean are counted.
  ArrayRef<StringRef> axes, counted;
};

} // namespace

/// The rank's heads have a key of their own.
static Values drawOwn(Operation *op, ArrayRef<mesh::FormAxes> forms) {
  SmallVector<StringRef> axes;
  for (const mesh::FormAxes &of : forms)
    llvm::append_range(axes, of.axes);
  op->setAttr(aten::ownKeyAttr,
              Builder(op->getContext()).getStrArrayAttr(axes));
  return Values(op->getResults());
}

Values mesh::useOwnPart(Operation *op, sharding::MeshOp mesh,
                        ArrayRef<FormAxes> forms,
                        std::optional<Rotation> torchRing) {
  for (const mesh::FormAxes &of : forms) {
    if (of.form == aten::Form::Context)
      return torchRing ? attendAsTorch(op, mesh, of.axes.front(), *torchRing)
                       : attendInContext(op, mesh, of.axes.front());
    if (of.form == aten::Form::Heads)
      return attendByHeads(op, mesh, of.axes.front());
  }
  if (llvm::all_of(forms, [](const mesh::FormAxes &of) {
        return of.form == aten::Form::Keys;
      }))
    return drawOwn(op, forms);
  OwnPart part(op, mesh, forms);
  return llvm::TypeSwitch<Operation *, Values>(op)
      .Case<aten::EmbeddingOp, aten::EmbeddingDenseBackwardOp,
            aten::NllLossForwardOp, aten::NllLossBackwardOp,
            aten::CrossEntropyOp, aten::CrossEntropyBackwardOp,
            aten::CrossEntropyInPlaceBackwardOp, aten::LogSoftmaxOp,
            aten::LogSoftmaxBackwardDataOp>(
          [&](auto known) { return part.rewrite(known); })
      .Default([](Operation *) -> Values {
        llvm_unreachable("hasOwnPart names the same operations");
      });
}
