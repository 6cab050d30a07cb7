//===- JointOrder.cpp - Orders of operations and their memory -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/JointOrder.h"

#include <algorithm>

namespace accel {

using plan::Arg;
using plan::Instruction;

std::vector<int> makers(const JointGraph &graph) {
  std::vector<int> maker(graph.function.slots.size(), -1);
  for (size_t i = 0; i < graph.function.instructions.size(); ++i)
    for (int slot : graph.function.instructions[i].results)
      maker[slot] = static_cast<int>(i);
  return maker;
}

std::vector<bool> drivenOps(const JointGraph &graph) {
  const plan::Function &function = graph.function;
  std::vector<bool> reached(function.slots.size());
  for (int slot : graph.tangents)
    reached[slot] = true;
  std::vector<bool> driven(graph.marks.size());
  for (size_t op = 0; op < driven.size(); ++op) {
    for (const plan::Arg &arg : function.instructions[op].args)
      driven[op] = driven[op] || reached[arg.slot];
    if (driven[op])
      for (int slot : function.instructions[op].results)
        reached[slot] = true;
  }
  return driven;
}

std::vector<int> inputGradients(const JointGraph &graph) {
  std::vector<int> slots;
  for (const JointGradient &gradient : graph.gradients)
    if (!gradient.ofParameter)
      slots.push_back(gradient.slot);
  return slots;
}

OrderCost::OrderCost(const JointGraph &graph,
                     const std::vector<int> &instructions,
                     const std::vector<int> &kept)
    : graph(graph), readers(graph.function.slots.size()),
      bytes(graph.function.slots.size()), reads(graph.marks.size()),
      made(graph.marks.size()), unread(graph.marks.size()),
      produces(graph.marks.size()) {
  const plan::Function &function = graph.function;
  std::vector<int> uses(function.slots.size()); // of the slot itself
  for (int i : instructions)
    for (const Arg &arg : function.instructions[i].args) {
      ++uses[arg.slot];
      int base = function.slots[arg.slot].base;
      if (std::find(reads[i].begin(), reads[i].end(), base) == reads[i].end()) {
        reads[i].push_back(base);
        ++readers[base];
      }
    }
  for (int slot : kept)
    ++readers[function.slots[slot].base];
  std::vector<bool> ofParameter(function.slots.size());
  for (const JointGradient &gradient : graph.gradients)
    ofParameter[gradient.slot] = gradient.ofParameter;
  for (int i : instructions) {
    const Instruction &instruction = function.instructions[i];
    for (int slot : instruction.results) {
      if (function.slots[slot].base != slot)
        continue;
      const int64_t size = function.slotBytes(slot);
      if (ofParameter[slot] && uses[slot] == 0 && graph.marks[i].intoPlace)
        continue;
      if (readers[slot] == 0 && !ofParameter[slot]) {
        unread[i] += size;
        continue;
      }
      bytes[slot] = size;
      made[i] += size;
      produces[i].push_back(slot);
    }
  }
}

void OrderCost::give(int slot) {
  int base = graph.function.slots[slot].base;
  if (bytes[base] > 0)
    return;
  bytes[base] = graph.function.slotBytes(base);
  given += bytes[base];
}

int64_t OrderCost::Walk::freed(int instruction) const {
  int64_t total = 0;
  for (int storage : cost.reads[instruction])
    if (left[storage] == 1)
      total += cost.bytes[storage];
  for (int storage : cost.produces[instruction])
    if (left[storage] == 0)
      total += cost.bytes[storage];
  return total;
}

int64_t OrderCost::Walk::delta(int instruction) const {
  return cost.made[instruction] - freed(instruction);
}

void OrderCost::Walk::run(int instruction) {
  const Instruction &op = cost.graph.function.instructions[instruction];
  live += cost.made[instruction];
  peak.own = std::max(peak.own, live);
  peak.total =
      std::max(peak.total, live + op.workspaceBytes + cost.unread[instruction]);
  live -= freed(instruction);
  for (int storage : cost.reads[instruction])
    --left[storage];
}

OrderCost::Walk OrderCost::start() const {
  Walk walk(*this);
  walk.live = given;
  walk.peak = {given, given};
  return walk;
}

PeakBytes OrderCost::run(const std::vector<int> &order) const {
  Walk walk = start();
  for (int instruction : order)
    walk.run(instruction);
  return walk.peak;
}

std::vector<int> orderForMemory(const JointGraph &graph,
                                const std::vector<int> &order,
                                const std::vector<int> &crossing) {
  const plan::Function &function = graph.function;
  OrderCost cost(graph, order, inputGradients(graph));
  for (const auto *list : {&crossing, &graph.tangents})
    for (int slot : *list)
      cost.give(slot);
  std::vector<int> maker = makers(graph);
  std::vector<bool> here(graph.marks.size());
  for (int i : order)
    here[i] = true;
  std::vector<int> waits(graph.marks.size());
  std::vector<std::vector<int>> users(graph.marks.size());
  for (int i : order)
    for (const Arg &arg : function.instructions[i].args)
      if (int from = maker[arg.slot]; from >= 0 && here[from]) {
        ++waits[i];
        users[from].push_back(i);
      }
  OrderCost::Walk walk = cost.start();
  std::vector<int> pending = order, greedy;
  while (!pending.empty()) {
    size_t best = pending.size();
    int64_t bestDelta = 0;
    for (size_t p = 0; p < pending.size(); ++p) {
      if (waits[pending[p]] > 0)
        continue;
      int64_t delta = walk.delta(pending[p]);
      if (best == pending.size() || delta < bestDelta) {
        best = p;
        bestDelta = delta;
      }
    }
    int instruction = pending[best];
    pending.erase(pending.begin() + static_cast<long>(best));
    walk.run(instruction);
    greedy.push_back(instruction);
    for (int user : users[instruction])
      --waits[user];
  }
  return walk.peak.own < cost.run(order).own ? greedy : order;
}

} // namespace accel
