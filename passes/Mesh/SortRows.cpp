//===- SortRows.cpp - Rows that came, sorted by expert again --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Mesh/SortRows.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Sharding/Sharding.h"

using namespace mlir;

namespace accel {
namespace {

RankedTensorType tensor(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The rows of one exchange.
class Sorter {
public:
  explicit Sorter(sharding::ExpertEndsOp ends)
      : ends(ends), b(ends.getContext()), location(ends.getLoc()) {}

  LogicalResult run() {
    SmallVector<sharding::DispatchOp> sent;
    SmallVector<sharding::CombineOp> back;
    for (Operation *user : ends.getEnds().getUsers()) {
      if (auto dispatch = dyn_cast<sharding::DispatchOp>(user))
        sent.push_back(dispatch);
      else if (auto combine = dyn_cast<sharding::CombineOp>(user))
        back.push_back(combine);
    }
    if (sent.size() != 1 || back.size() != 1)
      return ends.emitOpError("has rows that are sent ")
             << sent.size() << " times and come back " << back.size()
             << " times, and experts of transformers exchange them once";
    sort(sent.front());
    for (Operation *user :
         llvm::make_early_inc_range(ends.getResult().getUsers()))
      if (auto product = dyn_cast<aten::GroupedMmOp>(user))
        fill(product);
    if (failed(weigh(back.front())))
      return failure();
    restore(back.front());
    return success();
  }

private:
  template <typename OpT, typename... Args> Value make(Args &&...args) {
    return OpT::create(b, location, std::forward<Args>(args)...)->getResult(0);
  }
  Value pick(Value table, Value positions) {
    return make<aten::EmbeddingOp>(table, positions, uint64_t(-1));
  }
  Value full(ArrayRef<int64_t> shape, TypedAttr value, Type type) {
    return make<aten::FullOp>(shape, value, type);
  }

  void sort(sharding::DispatchOp dispatch) {
    Value came = dispatch.getResult();
    b.setInsertionPointAfter(dispatch);
    rows = tensor(came).getDimSize(0);
    // The expert of each row: counts, repeated.
    Value ids = full({rows}, b.getI64IntegerAttr(0), b.getI64Type());
    Value sorted = make<aten::SortStableOp>(ids, uint64_t(0), false);
    order = sorted.getDefiningOp()->getResult(1);
    Value token = make<aten::FloorDivideScalarOp>(order, uint64_t(1));
    Value picked = pick(came, token);
    weights = pick(
        full({rows, 1}, b.getF64FloatAttr(1), tensor(came).getElementType()),
        order);
    Value over = make<aten::GtScalarOp>(sorted, 0.0);
    mask = make<aten::UnsqueezeOp>(over, uint64_t(1));
    Value filled =
        make<aten::MaskedFillScalarOp>(picked, mask, b.getF64FloatAttr(0));
    came.replaceUsesWithIf(filled, [&](OpOperand &use) {
      return isa<aten::GroupedMmOp>(use.getOwner());
    });
  }

  void fill(aten::GroupedMmOp product) {
    Value made = product.getResult();
    b.setInsertionPointAfter(product);
    Value filled =
        make<aten::MaskedFillScalarOp>(made, mask, b.getF64FloatAttr(0));
    made.replaceAllUsesExcept(filled, filled.getDefiningOp());
  }

  /// Results go back as the module of the experts returns them.
  void restore(sharding::CombineOp combine) {
    Value results = combine.getValue();
    b.setInsertionPoint(combine);
    Value weighted = make<aten::MulTensorOp>(results, weights);
    Value numbers = make<aten::ArangeOp>(uint64_t(0), uint64_t(rows),
                                         uint64_t(1), b.getI64Type());
    Value inverse =
        make<aten::ScatterSrcOp>(order, order, numbers, uint64_t(0));
    Value restored = make<aten::ViewOp>(
        pick(weighted, inverse),
        ArrayRef<int64_t>{rows, 1, tensor(results).getDimSize(1)});
    Value sum = make<aten::SumDimOp>(restored, ArrayRef<int64_t>{1}, false);
    combine.getValueMutable().assign(sum);
  }

  /// The only reader of `value` if that is an OpT.
  template <typename OpT> static OpT onlyReader(Value value) {
    return value.hasOneUse() ? dyn_cast<OpT>(*value.getUsers().begin()) : OpT();
  }

  /// Rows are weighted in the order of tokens, by scores [tokens, chosen, 1].
  LogicalResult weigh(sharding::CombineOp combine) {
    const Value came = combine.getResult();
    auto product = onlyReader<aten::MulTensorOp>(came);
    auto factor = product
                      ? product.getOther().getDefiningOp<aten::EmbeddingOp>()
                      : aten::EmbeddingOp();
    auto put = product ? onlyReader<aten::EmbeddingOp>(product.getResult())
                       : aten::EmbeddingOp();
    auto shaped =
        put ? onlyReader<aten::ViewOp>(put.getResult()) : aten::ViewOp();
    if (!factor || !shaped || tensor(shaped.getResult()).getRank() != 3)
      return combine.emitOpError("is of experts whose results are not weighted "
                                 "and put in the order of tokens");
    b.setInsertionPoint(shaped);
    SmallVector<int64_t> shape(tensor(shaped.getResult()).getShape());
    Value placed = make<aten::ViewOp>(pick(came, put.getIndices()), shape);
    shape.back() = 1;
    Value scores = make<aten::ViewOp>(factor.getWeight(), shape);
    Value weighted = make<aten::MulTensorOp>(placed, scores);
    shaped.getResult().replaceAllUsesWith(weighted);
    for (Operation *op :
         {shaped.getOperation(), put.getOperation(), product.getOperation()})
      op->erase();
    if (factor->use_empty())
      factor->erase();
    return success();
  }

  sharding::ExpertEndsOp ends;
  OpBuilder b;
  const Location location;
  int64_t rows = 0;           // that came
  Value order, weights, mask; // of them
};

} // namespace

LogicalResult sortRowsAgain(func::FuncOp function) {
  SmallVector<sharding::ExpertEndsOp> all;
  function.walk([&](sharding::ExpertEndsOp ends) { all.push_back(ends); });
  for (sharding::ExpertEndsOp ends : all)
    if (failed(Sorter(ends).run()))
      return failure();
  return success();
}

} // namespace accel
