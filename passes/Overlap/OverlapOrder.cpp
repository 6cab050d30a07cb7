//===- OverlapOrder.cpp - Operators beside exchanges ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Overlap/OverlapOrder.h"

#include <algorithm>
#include <limits>

namespace accel {
namespace {

/// By node: from it only results follow, without an exchange.
std::vector<bool> onlyResults(const std::vector<OverlapNode> &nodes) {
  std::vector<bool> result(nodes.size(), true);
  for (size_t i = nodes.size(); i-- > 0;) {
    result[i] = result[i] && !nodes[i].exchanges;
    for (int read : nodes[i].reads)
      result[read] = result[read] && result[i];
  }
  return result;
}

/// The numbers of the nodes, with those that can wait behind an exchange.
std::vector<int> postponed(const std::vector<OverlapNode> &nodes) {
  const std::vector<bool> canWait = onlyResults(nodes);
  std::vector<int> order;
  for (size_t i = 0; i < nodes.size(); ++i) {
    order.push_back(static_cast<int>(i));
    if (!nodes[i].exchanges)
      continue;
    double alone = nodes[i].seconds;
    for (size_t j = i + 1; j < nodes.size() && alone > 0; ++j) {
      const std::vector<int> &reads = nodes[j].reads;
      if (std::find(reads.begin(), reads.end(), static_cast<int>(i)) !=
          reads.end())
        break;
      if (!nodes[j].exchanges)
        alone -= nodes[j].seconds;
    }
    // What it is moved behind reads nothing of it, nor does what stays.
    std::vector<int> moved;
    for (size_t at = order.size() - 1; at-- > 0 && alone > 0;) {
      if (nodes[order[at]].exchanges)
        break;
      if (!canWait[order[at]])
        continue;
      alone -= nodes[order[at]].seconds;
      moved.push_back(order[at]);
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(at));
    }
    order.insert(order.end(), moved.rbegin(), moved.rend());
  }
  return order;
}

/// The same nodes in that order, a permutation.
std::vector<OverlapNode> inOrder(const std::vector<OverlapNode> &nodes,
                                 const std::vector<int> &order) {
  std::vector<int> place(nodes.size());
  for (size_t i = 0; i < order.size(); ++i)
    place[order[i]] = static_cast<int>(i);
  std::vector<OverlapNode> result;
  for (int number : order) {
    OverlapNode &node = result.emplace_back(nodes[number]);
    for (int &read : node.reads)
      read = place[read];
  }
  return result;
}

class Scheduler {
public:
  Scheduler(const std::vector<OverlapNode> &nodes, const OverlapRule &rule)
      : nodes(nodes), rule(rule), states(nodes.size()),
        before(nodes.size() + 1) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      states[i].missing = static_cast<int>(nodes[i].reads.size());
      before[i + 1] = before[i] + (nodes[i].exchanges ? 0 : nodes[i].seconds);
      for (int read : nodes[i].reads) {
        State &state = states[read];
        state.readers.push_back(static_cast<int>(i));
        state.firstReader = std::min(state.firstReader, i);
      }
    }
    const std::vector<bool> results = onlyResults(nodes);
    for (size_t i = 0; i < nodes.size(); ++i)
      states[i].onlyResults = results[i];
  }

  std::vector<OverlapStep> run() {
    for (size_t first = 0; first < nodes.size();) {
      if (states[first].done) {
        ++first;
        continue;
      }
      startAhead(first);
      if (states[first].done)
        continue;
      const size_t other = waits(first) ? besides(first) : first;
      take(other < nodes.size() ? other : first);
    }
    for (size_t i = 0; i < nodes.size(); ++i)
      await(i);
    return withoutIdle();
  }

private:
  struct State {
    std::vector<int> readers;
    size_t firstReader = std::numeric_limits<size_t>::max();
    int missing = 0; // of what it reads
    bool onlyResults = false;
    bool done = false;
    bool underWay = false; // started and not awaited
    double end = 0;        // of an exchange
  };

  /// It reads what is still on the wire.
  bool waits(size_t node) const {
    return std::any_of(nodes[node].reads.begin(), nodes[node].reads.end(),
                       [&](int read) {
                         return states[read].underWay && states[read].end > now;
                       });
  }

  bool isReady(size_t node) const {
    return !states[node].done && states[node].missing == 0 && !waits(node);
  }

  /// The first operator behind `first` that may run beside what that waits for.
  size_t besides(size_t first) const {
    for (size_t i = first + 1;
         i < nodes.size() && rule.beside != OverlapRule::Beside::None; ++i)
      if (!nodes[i].exchanges && isReady(i) &&
          (rule.beside == OverlapRule::Beside::Any || nodes[i].seconds == 0 ||
           states[i].onlyResults))
        return i;
    return nodes.size();
  }

  /// Exchanges behind `first` whose readers are near: one on the wire and one
  /// that follows it, the most urgent first.
  void startAhead(size_t first) {
    while (rule.ahead > 0) {
      int onWire = 0;
      size_t best = nodes.size();
      for (size_t i = 0; i < nodes.size(); ++i) {
        if (!nodes[i].exchanges)
          continue;
        onWire += states[i].underWay && states[i].end > now;
        if (i < first || !isReady(i))
          continue;
        const size_t reader = std::min(states[i].firstReader, nodes.size());
        // Left once the next operator has run: then it would be too late.
        const double work =
            before[reader] - before[std::min(first + 1, reader)];
        const double takes = std::max(0.0, wire - now) + nodes[i].seconds;
        if (work < rule.ahead * takes &&
            (best == nodes.size() ||
             states[i].firstReader < states[best].firstReader))
          best = i;
      }
      if (best == nodes.size() || onWire >= 2)
        return;
      take(best);
    }
  }

  void await(size_t node) {
    if (!states[node].underWay)
      return;
    states[node].underWay = false;
    now = std::max(now, states[node].end);
    steps.push_back({static_cast<int>(node), true});
  }

  void take(size_t node) {
    for (int read : nodes[node].reads)
      await(static_cast<size_t>(read));
    State &state = states[node];
    steps.push_back({static_cast<int>(node), false});
    state.done = true;
    for (int reader : state.readers)
      --states[reader].missing;
    if (!nodes[node].exchanges) {
      now += nodes[node].seconds;
      return;
    }
    state.underWay = true;
    wire = state.end = std::max(wire, now) + nodes[node].seconds;
    now += nodes[node].seconds * (1 - rule.hidden);
  }

  /// Without the awaits of exchanges that nothing computes beside.
  std::vector<OverlapStep> withoutIdle() const {
    std::vector<double> started(nodes.size());
    std::vector<OverlapStep> result;
    double computed = 0;
    for (const OverlapStep &step : steps) {
      const OverlapNode &node = nodes[step.node];
      if (!step.awaits && node.exchanges)
        started[step.node] = computed;
      if (step.awaits && started[step.node] == computed)
        continue;
      if (!node.exchanges)
        computed += node.seconds;
      result.push_back(step);
    }
    return result;
  }

  const std::vector<OverlapNode> &nodes;
  const OverlapRule &rule;
  std::vector<State> states;
  std::vector<double> before; // seconds of operators in front of each
  std::vector<OverlapStep> steps;
  double now = 0, wire = 0;
};

} // namespace

std::vector<OverlapStep> overlapOrder(const std::vector<OverlapNode> &nodes,
                                      const OverlapRule &rule) {
  if (!rule.postpones)
    return Scheduler(nodes, rule).run();
  const std::vector<int> order = postponed(nodes);
  const std::vector<OverlapNode> moved = inOrder(nodes, order);
  std::vector<OverlapStep> steps = Scheduler(moved, rule).run();
  for (OverlapStep &step : steps)
    step.node = order[step.node];
  return steps;
}

double overlapSeconds(const std::vector<OverlapNode> &nodes,
                      const std::vector<OverlapStep> &steps, double hidden) {
  std::vector<double> ends(nodes.size());
  std::vector<bool> awaited(nodes.size());
  for (const OverlapStep &step : steps)
    if (step.awaits)
      awaited[step.node] = true;
  double now = 0, wire = 0;
  for (const OverlapStep &step : steps) {
    const OverlapNode &node = nodes[step.node];
    if (step.awaits) {
      now = std::max(now, ends[step.node]);
    } else if (!node.exchanges) {
      now += node.seconds;
    } else {
      wire = ends[step.node] = std::max(now, wire) + node.seconds;
      now = awaited[step.node] ? now + node.seconds * (1 - hidden) : wire;
    }
  }
  return now;
}

std::string overlapProblem(const std::vector<OverlapNode> &nodes,
                           const std::vector<OverlapStep> &steps) {
  std::vector<int> made(nodes.size()), awaited(nodes.size());
  std::vector<bool> awaits(nodes.size());
  for (const OverlapStep &step : steps)
    if (step.awaits)
      awaits[step.node] = true;
  auto name = [](int node) { return "node " + std::to_string(node); };
  for (const OverlapStep &step : steps) {
    if (step.awaits) {
      if (!nodes[step.node].exchanges || !made[step.node])
        return name(step.node) + " is awaited, and nothing is under way";
      if (awaited[step.node]++)
        return name(step.node) + " is awaited twice";
      continue;
    }
    if (made[step.node]++)
      return name(step.node) + " is there twice";
    for (int read : nodes[step.node].reads)
      if (!made[read] || (awaits[read] && !awaited[read]))
        return name(step.node) + " reads " + name(read) + " too early";
  }
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!made[i])
      return name(static_cast<int>(i)) + " is missing";
  return "";
}

} // namespace accel
