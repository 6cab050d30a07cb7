//===- CompiledCut.cpp - What torch.compile's partitioner saves -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/CompiledCut.h"

#include "passes/StepModel/SegmentOrder.h"

#include <algorithm>
#include <cmath>
#include <lemon/preflow.h>
#include <lemon/smart_graph.h>
#include <limits>
#include <set>

namespace accel {

using plan::Instruction;

CompiledOp compiledOp(const std::string &op, bool view) {
  if (view)
    return CompiledOp::View;
  const size_t colons = op.find("::");
  std::string name = op.substr(colons == std::string::npos ? 0 : colons + 2);
  name = name.substr(0, name.find('.'));
  if (name == "cat")
    return CompiledOp::Gather;
  if (name == "rand")
    return CompiledOp::Random;
  // What is neither pointwise nor in get_default_op_list.
  static const std::set<std::string> whole = {
      "mm",
      "addmm",
      "bmm",
      "baddbmm",
      "mv",
      "dot",
      "_grouped_mm",
      "_scaled_mm",
      "convolution",
      "convolution_backward",
      "embedding",
      "embedding_dense_backward",
      "constant_pad_nd",
      "cumsum",
      "prod",
      "sort",
      "topk",
      "histc",
      "searchsorted",
      "index_put",
      "index_add",
      "index_select",
      "scatter",
      "scatter_add",
      "slice_scatter",
      "select_scatter",
      "slice_backward",
      "select_backward",
      "flip",
      "roll",
      "repeat",
      "glu",
      "glu_backward",
      "amin",
      "avg_pool2d",
      "avg_pool2d_backward",
      "_adaptive_avg_pool2d",
      "_adaptive_avg_pool2d_backward",
      "max_pool2d_with_indices",
      "max_pool2d_with_indices_backward",
      "upsample_bilinear2d",
      "upsample_bilinear2d_backward",
      "upsample_nearest2d",
      "upsample_nearest2d_backward"};
  const bool attention = name.find("attention") != std::string::npos;
  return attention || op.rfind("aten::", 0) != 0 || whole.count(name)
             ? CompiledOp::Whole
             : CompiledOp::Repeatable;
}

namespace {

constexpr int farAway = 1'000'000'000; // no backward is reached

/// Builds the problem: vertices in the order of the joint, inputs first.
class Rules {
public:
  explicit Rules(const SegmentGraph &graph)
      : graph(graph), function(graph.function),
        valueOf(function.slots.size(), -1) {}

  CutProblem run() {
    addValues();
    addReaders();
    findSides();
    findDistances();
    for (size_t v = 0; v < values().size(); ++v)
      weigh(static_cast<int>(v));
    for (size_t v = 0; v < values().size(); ++v) {
      const bool given = values()[v].instruction < 0 && !values()[v].backward;
      if (given || (inForward[v] && mayNotRepeat(static_cast<int>(v))))
        ban(static_cast<int>(v));
    }
    banUsedFarApart();
    banLongChains();
    return std::move(problem);
  }

private:
  using Value = CutProblem::Value;
  std::vector<Value> &values() { return problem.values; }

  int add(int slot, int instruction, CompiledOp op) {
    Value value;
    value.slot = slot;
    value.instruction = instruction;
    const int index = static_cast<int>(values().size());
    values().push_back(value);
    ops.push_back(op);
    picks.push_back(false);
    operands.emplace_back();
    if (slot >= 0)
      valueOf[slot] = index;
    return index;
  }

  void addValues() {
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      const int v = add(function.inputs[i], -1, CompiledOp::Whole);
      if (static_cast<int>(i) >= graph.inputs)
        tangents.push_back(v);
    }
    for (int slot : function.params)
      add(slot, -1, CompiledOp::Whole);
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      const Instruction &instr = function.instructions[i];
      const int at = static_cast<int>(i);
      const CompiledOp op = compiledOp(instr.op, graph.view[i]);
      // An operator of many results is a tuple, of which others are taken.
      const bool many = instr.results.size() > 1;
      const int self = add(many ? -1 : instr.results[0], at, op);
      forEachSlot(instr, [&](int slot) {
        auto &list = operands[self];
        if (std::find(list.begin(), list.end(), valueOf[slot]) == list.end())
          list.push_back(valueOf[slot]);
      });
      for (int slot : instr.results) {
        if (!many || slot < 0)
          continue;
        const int taken = add(slot, at, CompiledOp::Repeatable);
        picks[taken] = true;
        operands[taken].push_back(self);
      }
    }
  }
  void addReaders() {
    for (size_t v = 0; v < values().size(); ++v)
      for (int operand : operands[v])
        values()[operand].readers.push_back(static_cast<int>(v));
  }

  void findSides() {
    const size_t count = values().size();
    inForward.assign(count, false);
    for (int i = 0; i < graph.outputs; ++i)
      inForward[valueOf[function.outputs[i]]] = true;
    for (size_t v = count; v-- > 0;)
      if (inForward[v])
        for (int operand : operands[v])
          inForward[operand] = true;
    for (int tangent : tangents)
      values()[tangent].backward = true;
    for (size_t v = 0; v < count; ++v)
      if (values()[v].backward)
        for (int reader : values()[v].readers)
          values()[reader].backward = true;
    for (size_t i = static_cast<size_t>(graph.outputs);
         i < function.outputs.size(); ++i)
      values()[valueOf[function.outputs[i]]].demanded = true;
    int order = 0;
    for (size_t v = 0; v < count; ++v)
      orders.push_back(inForward[v] ? order++ : -1);
  }

  void findDistances() {
    distance.assign(values().size(), 0);
    for (size_t v = values().size(); v-- > 0;) {
      if (!inForward[v])
        continue;
      int nearest = farAway;
      for (int reader : values()[v].readers)
        nearest = std::min(nearest, distance[reader] + 1);
      distance[v] = nearest;
    }
  }

  int64_t bytesOf(int v) const {
    const int slot = problem.values[v].slot;
    if (slot < 0) {
      int64_t bytes = 0;
      for (int reader : problem.values[v].readers)
        if (picks[reader])
          bytes += bytesOf(reader);
      return bytes;
    }
    int64_t bytes = plan::itemSize(function.slots[slot].dtype);
    for (int64_t size : function.slots[slot].shape)
      bytes *= size;
    return bytes;
  }

  bool fusible(int v) const {
    return ops[v] == CompiledOp::View || ops[v] == CompiledOp::Repeatable ||
           ops[v] == CompiledOp::Random;
  }
  bool fuses(int from, int into) const {
    return ops[into] == CompiledOp::Gather || (fusible(from) && fusible(into));
  }

  void weigh(int v) {
    Value &value = values()[v];
    if (value.slot < 0) {
      value.weight = -1;
      return;
    }
    const int steps = std::max(std::min(distance[v], 100), 1);
    value.weight = static_cast<int64_t>(static_cast<double>(bytesOf(v)) *
                                        std::pow(1.1, steps));
    bool written = value.instruction < 0;
    for (int reader : value.readers)
      written = written || !fuses(v, reader);
    if (!written)
      value.weight *= 2;
  }

  /// A kernel of the backward reads it from memory, so that repeating it is not
  /// free.
  bool writtenInBackward(int v) const {
    if (ops[v] == CompiledOp::View)
      return false;
    std::vector<int> open = {v};
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      for (int reader : problem.values[at].readers) {
        if (!inForward[reader] && !fuses(at, reader))
          return true;
        if (ops[reader] == CompiledOp::View)
          open.push_back(reader);
      }
    }
    return false;
  }

  bool mayNotRepeat(int v) {
    if (picks[v])
      return false;
    if (!fusible(v) || ops[v] == CompiledOp::Random || writtenInBackward(v))
      return true;
    // What a reduction leaves is small.
    int64_t read = 0;
    for (int operand : operands[v])
      read += bytesOf(operand);
    return bytesOf(v) * 4 < read;
  }

  void ban(int v) {
    if (ops[v] != CompiledOp::View)
      values()[v].banned = true;
  }

  /// The position of the first reader, however far, that nothing is fused into.
  int firstUnfused(const std::vector<int> &readers, int last) const {
    std::set<std::pair<int, std::pair<int, bool>>> open;
    for (int reader : readers)
      open.insert({orders[reader], {reader, true}});
    while (!open.empty()) {
      const auto [order, at] = *open.begin();
      open.erase(open.begin());
      if (!at.second)
        return order;
      for (int reader : problem.values[at.first].readers)
        if (inForward[reader] && orders[reader] <= last)
          open.insert({orders[reader], {reader, fuses(at.first, reader)}});
    }
    return last;
  }

  /// What reads a value on the far side of a matmul is not fused with what
  /// reads it on this side.
  void banUsedFarApart() {
    for (size_t v = 0; v < values().size(); ++v) {
      if (!inForward[v])
        continue;
      std::vector<int> readers;
      int last = -1;
      for (int reader : values()[v].readers)
        if (inForward[reader]) {
          readers.push_back(reader);
          last = std::max(last, orders[reader]);
        }
      if (readers.empty())
        continue;
      const int first = firstUnfused(readers, last);
      for (int reader : readers)
        if (orders[reader] > first && fuses(static_cast<int>(v), reader))
          ban(reader);
    }
  }

  /// Chains of fused operators are cut where they get longer than a hundred.
  void banLongChains() {
    std::vector<bool> visited(values().size(), false);
    for (size_t start = 0; start < values().size(); ++start) {
      if (!inForward[start])
        continue;
      std::multiset<std::pair<int, int>> open = {
          {orders[start], static_cast<int>(start)}};
      while (!open.empty()) {
        const int at = open.begin()->second;
        open.erase(open.begin());
        if (visited[at])
          continue;
        visited[at] = true;
        if (orders[at] > orders[start] + 100 && open.empty()) {
          ban(at);
          break;
        }
        for (int reader : values()[at].readers)
          if (inForward[reader] && fuses(at, reader) &&
              !values()[reader].banned)
            open.insert({orders[reader], reader});
      }
    }
  }

  const SegmentGraph &graph;
  const plan::Function &function;
  CutProblem problem;
  std::vector<int> valueOf; // by slot
  // By value:
  std::vector<CompiledOp> ops;
  std::vector<bool> picks; // one result of an operator that has many
  std::vector<std::vector<int>> operands;
  std::vector<bool> inForward;
  std::vector<int> orders, distance;
  std::vector<int> tangents; // values
};

/// By value: the backward makes it, where `cut` is saved.
std::vector<bool> repeated(const CutProblem &problem, const Cut &cut) {
  const auto &values = problem.values;
  std::vector<bool> needed(values.size(), false);
  for (size_t v = values.size(); v-- > 0;) {
    needed[v] = values[v].backward || (values[v].demanded && !cut[v]);
    for (int reader : values[v].readers)
      needed[v] = needed[v] || (needed[reader] && !cut[v]);
  }
  return needed;
}

} // namespace

CutProblem cutProblem(const SegmentGraph &compiled) {
  return Rules(compiled).run();
}

Cut solveCut(const CutProblem &problem) {
  const auto &values = problem.values;
  using Graph = lemon::SmartDigraph;
  Graph graph;
  const int count = static_cast<int>(values.size());
  graph.reserveNode(2 * count + 2);
  Graph::ArcMap<int64_t> capacity(graph);
  std::vector<Graph::Node> in, out;
  for (int v = 0; v < count; ++v) {
    in.push_back(graph.addNode());
    out.push_back(graph.addNode());
  }
  const auto source = graph.addNode(), sink = graph.addNode();
  int64_t all = 1;
  for (const auto &value : values)
    all += std::max<int64_t>(value.weight, 0);
  // More than every finite cut, and no sum of it overflows.
  const int64_t infinite =
      std::min(all, std::numeric_limits<int64_t>::max() / (4 * (count + 1)));
  auto arc = [&](Graph::Node from, Graph::Node to, int64_t c) {
    capacity[graph.addArc(from, to)] = c;
  };
  for (int v = 0; v < count; ++v) {
    const auto &value = values[v];
    if (value.backward) {
      arc(in[v], sink, infinite);
      continue;
    }
    if (value.demanded)
      arc(out[v], sink, infinite);
    if (value.banned)
      arc(source, in[v], infinite);
    arc(in[v], out[v], value.weight < 0 ? infinite : value.weight);
    for (int reader : value.readers)
      arc(out[v], in[reader], infinite);
  }
  lemon::Preflow<Graph, Graph::ArcMap<int64_t>> flow(graph, capacity, source,
                                                     sink);
  // Of equal cuts the one that is nearest to the backward, as torch takes it.
  flow.runMinCut();
  Cut cut(values.size(), false);
  for (int v = 0; v < count; ++v)
    cut[v] = !values[v].backward && flow.minCut(in[v]) && !flow.minCut(out[v]);
  return cut;
}

std::string verifyCut(const CutProblem &problem, const Cut &cut) {
  const auto &values = problem.values;
  if (cut.size() != values.size())
    return "it is of another problem";
  const std::vector<bool> needed = repeated(problem, cut);
  for (size_t v = 0; v < values.size(); ++v) {
    const std::string name = "value " + std::to_string(v);
    if (cut[v] && values[v].weight < 0)
      return name + " cannot be saved";
    if (cut[v] && values[v].backward)
      return name + " is made by the backward";
    if (needed[v] && values[v].banned && !values[v].backward)
      return name + " would be repeated";
    bool wanted = values[v].demanded;
    for (int reader : values[v].readers)
      wanted = wanted || needed[reader];
    if (cut[v] && !wanted)
      return name + " is saved for nobody";
  }
  return "";
}

int64_t cutWeight(const CutProblem &problem, const Cut &cut) {
  int64_t weight = 0;
  for (size_t v = 0; v < cut.size(); ++v)
    if (cut[v])
      weight += problem.values[v].weight;
  return weight;
}

std::vector<int> compiledSaves(const SegmentGraph &compiled) {
  const CutProblem problem = cutProblem(compiled);
  const Cut cut = solveCut(problem);
  std::vector<int> slots;
  for (size_t v = 0; v < cut.size(); ++v)
    if (cut[v])
      slots.push_back(problem.values[v].slot);
  return slots;
}

} // namespace accel
