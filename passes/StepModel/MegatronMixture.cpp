//===- MegatronMixture.cpp - Where a function has its experts -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/MegatronMixture.h"

#include "passes/StepModel/SegmentOrder.h"
#include "runtime/plan/Exchanges.h"
#include "runtime/plan/Operands.h"

#include <algorithm>

namespace accel {

using plan::Instruction;

bool isOfMixture(const Instruction &instruction, const std::string &module) {
  const std::string path = "." + module;
  return instruction.where.find(path + ".gate") != std::string::npos ||
         instruction.where.find(path + ".experts") != std::string::npos;
}

namespace {

class Finder {
public:
  Finder(const SegmentGraph &graph, const std::string &module, bool isForward)
      : graph(graph), function(graph.function), module(module),
        isForward(isForward) {}

  MixtureHalf run() {
    MixtureHalf half;
    const auto &list = function.instructions;
    const int count = static_cast<int>(list.size());
    for (int i = 0; i < count; ++i)
      if (graph.forward[i] == isForward && isOfMixture(list[i], module))
        half.inside.insert(i);
    std::vector<int> maker(function.slots.size(), -1);
    std::vector<std::vector<int>> readers(function.slots.size());
    for (int i = 0; i < count; ++i) {
      for (int slot : list[i].results)
        if (slot >= 0)
          maker[slot] = i;
      forEachSlot(list[i], [&](int slot) { readers[slot].push_back(i); });
    }
    auto onlyInside = [&](int slot) {
      return std::all_of(
          readers[slot].begin(), readers[slot].end(), [&](int i) {
            return graph.forward[i] != isForward || half.inside.count(i) > 0;
          });
    };
    std::set<int> returned(function.outputs.begin(), function.outputs.end());
    for (bool grew = true; grew;) {
      grew = false;
      for (int i = 0; i < count; ++i) {
        if (graph.forward[i] != isForward || half.inside.count(i) ||
            list[i].results.empty())
          continue;
        const bool exchange = plan::isExchange(list[i]);
        if (!exchange && !graph.view[i])
          continue;
        // Of a tensor that the mixture alone reads, or of the mixture's own.
        const int result = list[i].results.front();
        if (result < 0)
          continue;
        bool before = !readers[result].empty() && onlyInside(result) &&
                      !returned.count(result);
        bool some = false;
        for (int r : readers[result])
          some |= half.inside.count(r) > 0;
        bool behind = false;
        forEachSlot(list[i], [&](int slot) {
          behind |= maker[slot] >= 0 && half.inside.count(maker[slot]) > 0;
        });
        const bool takes = before && some;
        if (takes || (behind && exchange) ||
            (behind && graph.view[i] && leadsToExchange(result, readers))) {
          half.inside.insert(i);
          grew = true;
        }
      }
    }
    // Boundaries, each storage once.
    std::set<int> parameters, seen;
    for (int slot : function.params)
      parameters.insert(base(slot));
    std::set<int> own;
    for (int i : half.inside)
      for (int slot : list[i].results)
        own.insert(slot);
    for (int i : half.inside)
      forEachSlot(list[i], [&](int slot) {
        const int at = maker[slot];
        if (own.count(slot) || parameters.count(base(slot)) ||
            (at >= 0 && graph.forward[at] != isForward) ||
            shapeOf(slot).size() < 2 || // the bias of a router's choice
            seen.count(base(slot)))
          return;
        seen.insert(base(slot));
        half.reads.push_back(slot);
      });
    for (int slot : own) {
      if (slot < 0)
        continue;
      const bool read =
          std::any_of(readers[slot].begin(), readers[slot].end(), [&](int i) {
            return graph.forward[i] == isForward && !half.inside.count(i);
          });
      if (read || returned.count(slot))
        half.gives.push_back(slot);
    }
    return half;
  }

private:
  int base(int slot) const { return function.slots[slot].base; }
  const std::vector<int64_t> &shapeOf(int slot) const {
    return function.slots[slot].shape;
  }

  bool leadsToExchange(int slot,
                       const std::vector<std::vector<int>> &readers) const {
    for (int r : readers[slot]) {
      const Instruction &reader = function.instructions[r];
      if (plan::isExchange(reader))
        return true;
      if (graph.view[r] && !reader.results.empty() &&
          leadsToExchange(reader.results.front(), readers))
        return true;
    }
    return false;
  }

  const SegmentGraph &graph;
  const plan::Function &function;
  const std::string &module;
  const bool isForward;
};

} // namespace

MixtureHalf findMixture(const SegmentGraph &graph, const std::string &module,
                        bool isForward) {
  return Finder(graph, module, isForward).run();
}

} // namespace accel
