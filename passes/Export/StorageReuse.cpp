//===- StorageReuse.cpp - Results that take an operand's storage ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Export/StorageReuse.h"

#include "dialects/Aten/InPlace.h"

using namespace mlir;
using namespace accel;

namespace {

/// Whether each result of `op` has a storage of its own, which only `op` has
/// written. An opaque operator may return what it was given.
bool makesStorage(Operation *op) {
  auto aten = dyn_cast_or_null<aten::AtenOpInterface>(op);
  return aten && aten.getCategory() != aten::Category::View &&
         aten.getCategory() != aten::Category::Opaque;
}

} // namespace

StorageReuse::StorageReuse(func::FuncOp function, aten::LayoutAnalysis &layout)
    : layout(layout) {
  for (Operation &op : function.getBody().front()) {
    // An exchange that is started reads its operand until it is awaited, and
    // the function's results are read by who calls it.
    Operation *until = isa<aten::AtenOpInterface>(op)
                           ? &op
                           : function.getBody().front().getTerminator();
    for (Value operand : op.getOperands()) {
      Operation *&last = lastUse[storageOf(operand)];
      if (!last || last->isBeforeInBlock(until))
        last = until;
    }
    if (aten::isView(&op))
      for (Value result : op.getResults())
        views[result] = storageOf(op.getOperand(0));
  }
}

Value StorageReuse::storageOf(Value value) const {
  const auto found = views.find(value);
  return found == views.end() ? value : found->second;
}

Value StorageReuse::overwritten(Operation *op, bool onlyFirst) {
  if (op->getNumResults() != 1 || !layout.isContiguous(op->getResult(0)))
    return {};
  const auto elements = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements();
  };
  for (Value operand : op->getOperands()) {
    const Value storage = storageOf(operand);
    const bool reusable =
        operand.getType() == op->getResult(0).getType() &&
        makesStorage(storage.getDefiningOp()) &&
        elements(storage) == elements(operand) &&
        lastUse.lookup(storage) == op && layout.isContiguous(operand) &&
        // Other elements of it are read while this one is written.
        llvm::none_of(op->getOperands(), [&](Value other) {
          return other != operand && storageOf(other) == storage;
        });
    if (reusable)
      return operand;
    if (onlyFirst)
      break;
  }
  return {};
}
