//===- JointGraph.cpp - A segment's forward and backward ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/JointGraph.h"

#include "passes/Cost/ExchangeCost.h"
#include "passes/Cost/OpCost.h"
#include "passes/Recompute/JointOrder.h"
#include "passes/Recompute/OverwriteOrder.h"

#include <algorithm>

namespace accel {

const char *toString(JointCategory category) {
  switch (category) {
  case JointCategory::View:
    return "view";
  case JointCategory::Pointwise:
    return "pointwise";
  case JointCategory::Reduction:
    return "reduction";
  case JointCategory::Matmul:
    return "matmul";
  case JointCategory::Attention:
    return "attention";
  case JointCategory::Memory:
    return "memory";
  case JointCategory::Opaque:
    return "opaque";
  }
  return "";
}

namespace {

class Splitter {
public:
  Splitter(const JointGraph &graph, const SavedSet &saved)
      : graph(graph), saved(saved), maker(makers(graph)),
        driven(drivenOps(graph)), repeated(graph.marks.size()),
        known(graph.function.slots.size()) {}

  JointSplit run() {
    const size_t numOps = graph.marks.size();
    std::vector<bool> needed(numOps);
    std::vector<int> worklist;
    auto want = [&](int slot) {
      int op = maker[slot];
      if (op >= 0 && !graph.marks[op].forward && !needed[op]) {
        needed[op] = true;
        worklist.push_back(op);
      }
    };
    for (const JointGradient &gradient : graph.gradients)
      want(gradient.slot);
    while (!worklist.empty()) {
      int op = worklist.back();
      worklist.pop_back();
      for (const plan::Arg &arg : graph.function.instructions[op].args)
        want(arg.slot);
    }
    for (size_t op = 0; op < numOps; ++op) {
      if (graph.marks[op].forward)
        split.forward.push_back(static_cast<int>(op));
      if (!needed[op] || !driven[op])
        continue;
      const size_t begin = split.backward.size();
      for (const plan::Arg &arg : graph.function.instructions[op].args)
        require(arg.slot);
      sortFrom(begin);
      split.backward.push_back(static_cast<int>(op));
    }
    const size_t begin = split.backward.size();
    for (const JointGradient &gradient : graph.gradients)
      require(gradient.slot);
    sortFrom(begin);
    return std::move(split);
  }

private:
  /// What one operation needs is computed in the order of the joint, so that
  /// PeakMoments knows the order of any set.
  void sortFrom(size_t begin) {
    std::sort(split.backward.begin() + static_cast<long>(begin),
              split.backward.end());
  }

  /// Makes a value known to the backward: as an argument, or by computing it
  /// here.
  void require(int slot) {
    int op = maker[slot];
    if (op < 0) {
      if (!known[slot])
        split.arguments.push_back(slot);
      known[slot] = true;
      return;
    }
    const JointMark &mark = graph.marks[op];
    if (driven[op] || repeated[op])
      return;
    if (mark.forward && saved[op] && !mark.isView()) {
      if (!known[slot])
        split.crossing.push_back(slot);
      known[slot] = true;
      return;
    }
    for (const plan::Arg &arg : graph.function.instructions[op].args)
      require(arg.slot);
    repeated[op] = true;
    split.backward.push_back(op);
  }

  const JointGraph &graph;
  const SavedSet &saved;
  std::vector<int> maker;
  const std::vector<bool> driven;
  std::vector<bool> repeated, known;
  JointSplit split;
};

int64_t bytesOf(const JointGraph &graph, int slot) {
  return graph.function.slotBytes(slot);
}

/// Bytes of the different storages behind `slots`.
int64_t storageBytes(const JointGraph &graph, const std::vector<int> &slots) {
  std::vector<int> bases;
  for (int slot : slots)
    bases.push_back(graph.function.slots[slot].base);
  std::sort(bases.begin(), bases.end());
  bases.erase(std::unique(bases.begin(), bases.end()), bases.end());
  int64_t total = 0;
  for (int base : bases)
    total += bytesOf(graph, base);
  return total;
}

} // namespace

JointSplit splitGraph(const JointGraph &graph, const SavedSet &saved,
                      bool reorder) {
  JointSplit split = Splitter(graph, saved).run();
  if (reorder)
    split.backward = orderForOverwriting(
        graph, orderForMemory(graph, split.backward, split.crossing));
  return split;
}

SplitBytes measureSplit(const JointGraph &graph, const JointSplit &split) {
  SplitBytes bytes;
  bytes.saved = storageBytes(graph, split.crossing);
  std::vector<int> inputs;
  for (int slot : split.arguments)
    if (std::find(graph.function.inputs.begin(), graph.function.inputs.end(),
                  slot) != graph.function.inputs.end())
      inputs.push_back(slot);
  bytes.savedInput = storageBytes(graph, inputs);

  std::vector<int> kept = graph.function.outputs;
  kept.insert(kept.end(), split.crossing.begin(), split.crossing.end());
  PeakBytes peak = OrderCost(graph, split.forward, kept).run(split.forward);
  bytes.forwardPeak = peak.own;
  bytes.forwardPeakTotal = peak.total;

  OrderCost backward(graph, split.backward, inputGradients(graph));
  peak = backward.run(split.backward);
  bytes.backwardPeak = peak.own;
  bytes.backwardPeakTotal = peak.total;
  for (int slot : split.crossing)
    backward.give(slot);
  for (int slot : graph.tangents)
    backward.give(slot);
  peak = backward.run(split.backward);
  bytes.backwardHeldPeak = peak.own;
  bytes.backwardHeldTotal = peak.total;
  return bytes;
}

std::vector<double> instructionTimes(const JointGraph &graph,
                                     const Target &target) {
  std::vector<double> seconds;
  for (size_t i = 0; i < graph.function.instructions.size(); ++i) {
    double &own = seconds.emplace_back(
        opSeconds(graph.function, graph.function.instructions[i], target));
    if (const auto &exchange = graph.marks[i].exchange)
      own += exchangeSeconds(graph.function, *exchange, graph.mesh,
                             target.ranksPerNode, target);
  }
  return seconds;
}

SavedSet savedByMode(const JointGraph &graph, const std::string &mode) {
  const plan::Function &function = graph.function;
  SavedSet saved(graph.marks.size());
  if (mode == "full") {
    for (size_t op = 0; op < saved.size(); ++op)
      saved[op] = graph.marks[op].forward && !graph.marks[op].mayRecompute;
    return saved;
  }
  // What is computed from a statistic alone is as small and as welcome.
  std::vector<bool> statistic(function.slots.size());
  for (size_t op = 0; op < saved.size(); ++op) {
    const JointMark &mark = graph.marks[op];
    const plan::Instruction &instruction = function.instructions[op];
    if (!mark.forward || mark.isView())
      continue;
    bool keep = mode == "none" || !mark.mayRecompute;
    bool isStatistic = false;
    switch (mark.category) {
    case JointCategory::Matmul:
    case JointCategory::Attention:
      keep = true;
      break;
    case JointCategory::Opaque:
      // What was gathered is several times the part that it is made of, and is
      // gathered again: else sequence parallelism would hold whole sequences.
      keep |= !mark.exchange ||
              (mark.exchange->kind != plan::ExchangeKind::AllGather &&
               mark.exchange->kind != plan::ExchangeKind::Permute);
      break;
    case JointCategory::Reduction:
      isStatistic = !mark.isNorm;
      break;
    case JointCategory::Pointwise:
      isStatistic =
          !instruction.args.empty() &&
          std::all_of(instruction.args.begin(), instruction.args.end(),
                      [&](const auto &arg) { return statistic[arg.slot]; });
      break;
    default:
      break;
    }
    saved[op] = keep || isStatistic;
    if (isStatistic)
      for (int slot : instruction.results)
        statistic[slot] = true;
  }
  return saved;
}

SegmentVariant measureVariant(const JointGraph &graph, const SavedSet &saved,
                              const Target &target) {
  const JointSplit split = splitGraph(graph, saved);
  const SplitBytes bytes = measureSplit(graph, split);
  const std::vector<double> seconds = instructionTimes(graph, target);
  SegmentVariant variant;
  variant.savedBytes = bytes.saved;
  variant.savedInputBytes = bytes.savedInput;
  variant.forwardPeakBytes = bytes.forwardPeak;
  variant.backwardPeakBytes = bytes.backwardPeak;
  for (int op : split.forward) {
    variant.forwardSeconds += seconds[op];
    variant.forwardOps += !graph.marks[op].isView();
  }
  for (int op : split.backward) {
    variant.backwardSeconds += seconds[op];
    variant.backwardOps += !graph.marks[op].isView();
    if (graph.marks[op].forward)
      variant.recomputeSeconds += seconds[op];
  }
  return variant;
}

} // namespace accel
