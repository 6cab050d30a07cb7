//===- Reorder.cpp - An order with a lower peak -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Partition/SplitJoint.h"

#include "dialects/Aten/Aten.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace accel;

namespace {

/// Storages (a view belongs to its base) and who reads them.
class Storages {
public:
  explicit Storages(func::FuncOp function) {
    for (Operation &op : function.getBody().front().without_terminator()) {
      auto aten = dyn_cast<aten::AtenOpInterface>(op);
      bool isView = aten && aten.getCategory() == aten::Category::View;
      for (Value result : op.getResults())
        base[result] = isView ? baseOf(op.getOperand(0)) : result;
    }
    for (Operation &op : function.getBody().front())
      for (Value storage : readBy(&op))
        ++readers[storage];
    Operation *end = function.getBody().front().getTerminator();
    for (Value value : end->getOperands())
      ++readers[baseOf(value)]; // never freed inside
  }

  Value baseOf(Value value) const {
    auto found = base.find(value);
    return found == base.end() ? value : found->second;
  }

  /// Storages that `op` reads, each once. A view holds its base as a reader
  /// does; whoever reads the view reads the base.
  SmallVector<Value> readBy(Operation *op) const {
    SmallVector<Value> result;
    for (Value operand : op->getOperands()) {
      Value storage = baseOf(operand);
      if (!llvm::is_contained(result, storage))
        result.push_back(storage);
    }
    return result;
  }

  static int64_t bytes(Value storage) {
    return (aten::tensorBytes(storage.getType()) + 63) / 64 * 64;
  }

  /// Bytes that `op` allocates.
  int64_t made(Operation *op) const {
    int64_t total = 0;
    for (Value result : op->getResults())
      if (baseOf(result) == result)
        total += bytes(result);
    return total;
  }

  DenseMap<Value, int> readers;

private:
  DenseMap<Value, Value> base;
};

/// Runs operations one by one and keeps count.
class Simulator {
public:
  explicit Simulator(const Storages &storages)
      : storages(storages), left(storages.readers) {}

  /// Bytes freed when `op` runs now.
  int64_t freed(Operation *op) const {
    int64_t total = 0;
    for (Value storage : storages.readBy(op))
      if (!isa<BlockArgument>(storage) && left.lookup(storage) == 1)
        total += Storages::bytes(storage);
    for (Value result : op->getResults())
      if (storages.baseOf(result) == result && !left.lookup(result))
        total += Storages::bytes(result);
    return total;
  }

  void run(Operation *op) {
    peak = std::max(peak, live + storages.made(op));
    live += storages.made(op) - freed(op);
    for (Value storage : storages.readBy(op))
      --left[storage];
  }

  int64_t live = 0, peak = 0;

private:
  const Storages &storages;
  DenseMap<Value, int> left;
};

int64_t peakOf(const Storages &storages, ArrayRef<Operation *> order) {
  Simulator simulator(storages);
  for (Operation *op : order)
    simulator.run(op);
  return simulator.peak;
}

/// Runs at each point the ready operation after which least is live; among
/// equals the first in the given order.
SmallVector<Operation *> greedyOrder(const Storages &storages,
                                     ArrayRef<Operation *> given) {
  DenseMap<Operation *, int> waits;
  for (Operation *op : given)
    for (Value operand : op->getOperands())
      if (operand.getDefiningOp())
        ++waits[op];
  Simulator simulator(storages);
  SmallVector<Operation *> order, pending(given);
  while (!pending.empty()) {
    auto best = pending.end();
    int64_t bestDelta = 0;
    for (auto it = pending.begin(); it != pending.end(); ++it) {
      if (waits.lookup(*it))
        continue;
      int64_t delta = storages.made(*it) - simulator.freed(*it);
      if (best == pending.end() || delta < bestDelta) {
        best = it;
        bestDelta = delta;
      }
    }
    Operation *op = *best;
    pending.erase(best);
    simulator.run(op);
    order.push_back(op);
    for (OpOperand &use : op->getUses())
      if (auto found = waits.find(use.getOwner()); found != waits.end())
        --found->second;
  }
  return order;
}

SmallVector<Operation *> blockOrder(func::FuncOp function) {
  SmallVector<Operation *> order;
  for (Operation &op : function.getBody().front().without_terminator())
    order.push_back(&op);
  return order;
}

} // namespace

int64_t accel::peakBytes(func::FuncOp function) {
  return peakOf(Storages(function), blockOrder(function));
}

void accel::reorderForMemory(func::FuncOp function) {
  Storages storages(function);
  SmallVector<Operation *> given = blockOrder(function);
  SmallVector<Operation *> greedy = greedyOrder(storages, given);
  if (peakOf(storages, greedy) >= peakOf(storages, given))
    return;
  Operation *end = function.getBody().front().getTerminator();
  for (Operation *op : greedy)
    op->moveBefore(end);
}
