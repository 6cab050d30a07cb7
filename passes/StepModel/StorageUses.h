//===- StorageUses.h - Who makes and reads a segment's storages -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_STORAGEUSES_H
#define ACCEL_PASSES_STEPMODEL_STORAGEUSES_H

#include "passes/Cost/OpCost.h"
#include "passes/StepModel/SegmentGraph.h"
#include "passes/StepModel/SegmentOrder.h"

#include <set>

namespace accel {

/// Of a graph as it is: valid until instructions are inserted.
struct StorageUses {
  StorageUses() = default;
  explicit StorageUses(const SegmentGraph &graph) {
    const plan::Function &function = graph.function;
    maker.assign(function.slots.size(), -1);
    readers.assign(function.slots.size(), {});
    parameter.assign(function.slots.size(), false);
    for (int slot : function.params)
      parameter[function.slots[slot].base] = true;
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      if (graph.view[i])
        continue;
      const auto position = static_cast<int>(i);
      for (int slot : function.instructions[i].results)
        if (slot >= 0)
          maker[slot] = position;
      std::set<int> once;
      forEachSlot(function.instructions[i],
                  [&](int slot) { once.insert(function.slots[slot].base); });
      for (int root : once)
        readers[root].push_back(position);
    }
  }

  bool readsParameter(const SegmentGraph &graph, int i) const {
    bool reads = false;
    forEachSlot(graph.function.instructions[i], [&](int slot) {
      reads |= parameter[graph.function.slots[slot].base];
    });
    return reads;
  }

  std::vector<int> maker;                // by slot; of views none
  std::vector<std::vector<int>> readers; // by storage; views are none
  std::vector<bool> parameter;           // by storage
};

inline bool isMatmul(const SegmentGraph &graph, int i) {
  return !graph.view[i] &&
         opKind(graph.function.instructions[i]) == OpKind::Matmul;
}

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_STORAGEUSES_H
