//===- GatherAgain.cpp - Gathered inputs that are not kept ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/GatherAgain.h"

#include "runtime/plan/Exchanges.h"

#include <map>

namespace accel {

using plan::Arg;
using plan::Instruction;

namespace {

/// Of one gathered tensor.
class Regather {
public:
  Regather(SegmentGraph &graph, size_t at)
      : graph(graph), function(graph.function),
        gather(function.instructions[at]), root(gather.results.front()) {}

  void run() {
    std::vector<Instruction> &list = function.instructions;
    size_t first = 0;
    while (first < list.size() &&
           (graph.forward[first] || !readsRoot(list[first])))
      ++first;
    if (first == list.size())
      return;
    again.push_back(gather);
    again.back().results.front() = slotOf(root);
    for (size_t i = first; i < list.size(); ++i)
      if (!graph.forward[i])
        replace(list[i]);
    for (size_t i = 0; i < again.size(); ++i)
      graph.insert(first + i, again[i], /*isForward=*/false, /*isView=*/i > 0);
  }

private:
  bool isOfRoot(int slot) const {
    return slot >= 0 && function.slots[slot].base == root;
  }
  bool readsRoot(const Instruction &instruction) const {
    for (const Arg &arg : instruction.args)
      if (arg.kind == Arg::Kind::Tensor && isOfRoot(arg.slot))
        return true;
    return false;
  }

  /// The slot of the tensor that is gathered again, or of a view of it.
  int slotOf(int slot) {
    auto [at, isNew] = made.try_emplace(slot, 0);
    if (!isNew)
      return at->second;
    const int copy = static_cast<int>(function.slots.size());
    function.slots.push_back(function.slots[slot]);
    function.slots.back().base = slot == root ? copy : made.at(root);
    return made[slot] = copy;
  }

  /// The backward reads a copy of each of the forward's views; views of its own
  /// lie in the new tensor.
  void replace(Instruction &instruction) {
    if (!readsRoot(instruction))
      return;
    for (Arg &arg : instruction.args)
      if (arg.kind == Arg::Kind::Tensor && isOfRoot(arg.slot))
        arg.slot = viewed(arg.slot);
    for (int slot : instruction.results)
      if (isOfRoot(slot))
        function.slots[slot].base = made.at(root);
  }
  int viewed(int slot) {
    if (auto known = made.find(slot); known != made.end())
      return known->second;
    for (size_t i = 0; i < function.instructions.size(); ++i)
      if (const Instruction &maker = function.instructions[i];
          graph.forward[i] && !maker.results.empty() &&
          maker.results.front() == slot) {
        Instruction view = maker;
        for (Arg &arg : view.args)
          if (arg.kind == Arg::Kind::Tensor && isOfRoot(arg.slot))
            arg.slot = viewed(arg.slot);
        view.results.front() = slotOf(slot);
        again.push_back(view);
        break;
      }
    return slotOf(slot);
  }

  SegmentGraph &graph;
  plan::Function &function;
  const Instruction gather; // as it was
  const int root;
  std::map<int, int> made; // slots of the forward, and those in their place
  std::vector<Instruction> again;
};

} // namespace

void gatherAgain(SegmentGraph &graph, std::string_view axis) {
  for (size_t i = 0; i < graph.function.instructions.size(); ++i) {
    const Instruction &instruction = graph.function.instructions[i];
    if (!graph.forward[i] || instruction.op != "sharding::all_gather")
      continue;
    const auto exchange = plan::exchangeOf(instruction);
    if (exchange && exchange->axes.size() == 1 &&
        exchange->axes.front() == axis)
      Regather(graph, i).run();
  }
}

} // namespace accel
