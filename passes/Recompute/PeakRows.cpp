//===- PeakRows.cpp - What a backward holds in any order ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/PeakRows.h"

#include "passes/Recompute/JointOrder.h"

#include <algorithm>

namespace accel {

namespace {

using Bits = std::vector<bool>;

class RowBuilder {
public:
  RowBuilder(const JointGraph &graph, const RecomputeModel &model)
      : graph(graph), model(model), maker(makers(graph)),
        storageOf(graph.function.slots.size(), -1),
        given(graph.function.slots.size()) {
    for (size_t s = 0; s < model.storages.size(); ++s)
      storageOf[model.storages[s].slot] = static_cast<int>(s);
    for (int slot : graph.tangents)
      given[base(slot)] = true;
    // With everything kept, the backward is its own operations and views.
    SavedSet all(graph.marks.size(), true);
    for (int op : splitGraph(graph, all, false).backward)
      if (!graph.marks[op].forward)
        ops.push_back(op);
    findReads();
    findDescendants();
  }

  std::vector<PeakRow> run() {
    std::vector<PeakRow> rows;
    for (size_t i = 0; i < ops.size(); ++i)
      rows.push_back(rowOf(i));
    std::vector<PeakRow> kept;
    for (size_t i = 0; i < rows.size(); ++i) {
      bool implied = false;
      for (size_t j = 0; j < rows.size() && !implied; ++j)
        implied = i != j && impliedBy(rows[i], rows[j]) &&
                  (j < i || !impliedBy(rows[j], rows[i]));
      if (!implied)
        kept.push_back(rows[i]);
    }
    return kept;
  }

private:
  int base(int slot) const { return graph.function.slots[slot].base; }

  static bool impliedBy(const PeakRow &row, const PeakRow &other) {
    return row.constant <= other.constant &&
           std::includes(other.held.begin(), other.held.end(), row.held.begin(),
                         row.held.end());
  }

  /// Storages by operation; a view in between is looked through, since the
  /// view may be made again later, but its base may not be gone.
  void findReads() {
    std::vector<int> indexOf(graph.marks.size(), -1);
    for (size_t i = 0; i < ops.size(); ++i)
      indexOf[ops[i]] = static_cast<int>(i);
    reads.resize(ops.size());
    direct.resize(ops.size());
    for (size_t i = 0; i < ops.size(); ++i)
      for (const plan::Arg &arg : graph.function.instructions[ops[i]].args) {
        reads[i].push_back(base(arg.slot));
        if (int from = maker[arg.slot]; from >= 0 && indexOf[from] >= 0)
          direct[i].push_back(indexOf[from]);
      }
  }

  void findDescendants() {
    after.assign(ops.size(), Bits(ops.size()));
    for (size_t i = ops.size(); i-- > 0;)
      for (int from : direct[i]) {
        after[from][i] = true;
        for (size_t j = i + 1; j < ops.size(); ++j)
          if (after[i][j])
            after[from][j] = true;
      }
  }

  PeakRow rowOf(size_t i) const {
    const plan::Function &function = graph.function;
    Bits readHere(function.slots.size()), readLater(function.slots.size()),
        readBefore(function.slots.size());
    auto mark = [&](size_t j, Bits &bits) {
      for (int slot : reads[j])
        bits[slot] = true;
    };
    mark(i, readHere);
    for (size_t j = 0; j < i; ++j)
      if (after[j][i])
        mark(j, readBefore);
    for (size_t j = i + 1; j < ops.size(); ++j)
      if (after[i][j])
        mark(j, readLater);
    Bits returned(function.slots.size()), ofParameter(function.slots.size());
    for (const JointGradient &gradient : graph.gradients)
      (gradient.ofParameter ? ofParameter : returned)[base(gradient.slot)] =
          true;
    PeakRow row;
    for (size_t slot = 0; slot < function.slots.size(); ++slot) {
      if (base(static_cast<int>(slot)) != static_cast<int>(slot))
        continue;
      const bool isRead = readHere[slot] || readLater[slot];
      const int64_t bytes = function.slotBytes(static_cast<int>(slot));
      const int op = maker[slot];
      if (op < 0) {
        row.constant += given[slot] && isRead ? bytes : 0;
      } else if (graph.marks[op].forward) {
        // Kept or recomputed, it is there from its first use to its last.
        if (readHere[slot] || (readBefore[slot] && readLater[slot]))
          row.constant += bytes;
        else if (readLater[slot] && storageOf[slot] >= 0)
          row.held.push_back(storageOf[slot]);
      } else if (ofParameter[slot]) {
        row.constant += readHere[slot] ? bytes : 0;
      } else if (op == ops[i]) {
        row.constant += isReadAnywhere(static_cast<int>(slot)) || returned[slot]
                            ? bytes
                            : 0;
      } else if (isBefore(op, i)) {
        row.constant += isRead || returned[slot] ? bytes : 0;
      }
    }
    std::sort(row.held.begin(), row.held.end());
    return row;
  }

  bool isReadAnywhere(int slot) const {
    for (const auto &list : reads)
      if (std::find(list.begin(), list.end(), slot) != list.end())
        return true;
    return false;
  }

  bool isBefore(int op, size_t i) const {
    for (size_t j = 0; j < i; ++j)
      if (ops[j] == op)
        return after[j][i];
    return false;
  }

  const JointGraph &graph;
  const RecomputeModel &model;
  std::vector<int> maker, storageOf;
  Bits given;
  std::vector<int> ops; // the backward's own, in order
  std::vector<std::vector<int>> reads, direct;
  std::vector<Bits> after; // [i][j]: j depends on i
};

} // namespace

std::vector<PeakRow> peakRows(const JointGraph &graph,
                              const RecomputeModel &model) {
  return RowBuilder(graph, model).run();
}

} // namespace accel
