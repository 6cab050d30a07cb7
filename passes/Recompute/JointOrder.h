//===- JointOrder.h - Orders of operations and their memory -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_JOINTORDER_H
#define ACCEL_PASSES_RECOMPUTE_JOINTORDER_H

#include "passes/Recompute/JointGraph.h"

namespace accel {

/// The instruction that makes each slot; -1 for arguments.
std::vector<int> makers(const JointGraph &graph);

/// Operations that read a tangent or what comes of one. The backward's others
/// (views of kept values) wait until somebody needs them.
std::vector<bool> drivenOps(const JointGraph &graph);

/// What a backward returns beside parameters' gradients.
std::vector<int> inputGradients(const JointGraph &graph);

/// Bytes at the fullest instruction: own storages, and with what operators
/// allocate inside (results that nobody reads included).
struct PeakBytes {
  int64_t own = 0, total = 0;
};

/// Lifetimes of storages in one part of a split: a storage lives from the
/// instruction that makes it to the last one that reads it or a view of it,
/// and to the end if it is a result. A parameter's gradient is the executor's:
/// a matmul or an embedding's gradient that nobody else reads is written in
/// place, any other is copied there at once.
class OrderCost {
public:
  /// `instructions` in any order; the slots `kept` live to the end.
  OrderCost(const JointGraph &graph, const std::vector<int> &instructions,
            const std::vector<int> &kept);
  /// The argument `slot` is this part's to free: it counts until its last use.
  void give(int slot);

  PeakBytes run(const std::vector<int> &order) const;

  /// One operation after another.
  class Walk {
  public:
    explicit Walk(const OrderCost &cost) : cost(cost), left(cost.readers) {}
    /// Bytes more (or less) after the instruction has run.
    int64_t delta(int instruction) const;
    void run(int instruction);
    int64_t live = 0;
    PeakBytes peak;

  private:
    int64_t freed(int instruction) const;
    const OrderCost &cost;
    std::vector<int> left; // by storage: reads to come
  };

  /// Before the first operation.
  Walk start() const;

private:
  const JointGraph &graph;
  std::vector<int> readers;               // by storage (base slot)
  std::vector<int64_t> bytes;             // by storage; 0: not counted
  std::vector<std::vector<int>> reads;    // by instruction: storages, once each
  std::vector<int64_t> made, unread;      // by instruction
  std::vector<std::vector<int>> produces; // by instruction: storages
  int64_t given = 0;
};

/// The better of `order` and a greedy one that runs at each point the ready
/// instruction after which least is live, among equals the first in `order`.
/// The slots `crossing` and the tangents are freed at their last use.
std::vector<int> orderForMemory(const JointGraph &graph,
                                const std::vector<int> &order,
                                const std::vector<int> &crossing);

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_JOINTORDER_H
