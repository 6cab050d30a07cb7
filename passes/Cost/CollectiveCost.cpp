//===- CollectiveCost.cpp - Seconds of one collective ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/CollectiveCost.h"

#include "runtime/plan/InstructionKey.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace accel {

namespace {

/// The ranks of a collective: `inNode` of them on each node.
struct Group {
  double ranks = 1, inNode = 1;
};

/// What one protocol has inside and between nodes.
struct Protocol {
  double inside, between;           // bytes per second and rank
  double insideStart, betweenStart; // seconds
  double insideHop, betweenHop;     // seconds
};

double ring(const Protocol &p, const Group &group, double rounds,
            double bytes) {
  const double nodes = std::ceil(group.ranks / group.inNode);
  double seconds = p.insideStart, bandwidth = p.inside;
  if (nodes > 1) {
    // Rings enter and leave each node over the links of all its ranks.
    seconds = std::max(seconds, p.betweenStart);
    const double crossing = p.between * group.inNode;
    bandwidth = group.inNode > 1 ? std::min(bandwidth, crossing) : crossing;
  }
  const double crossings = nodes > 1 ? nodes - 1 : 0;
  const double hops =
      (group.ranks - 1 - crossings) * p.insideHop + crossings * p.betweenHop;
  return seconds +
         rounds * ((group.ranks - 1) / group.ranks * bytes / bandwidth + hops);
}

/// Each rank sends to one other, which is a single hop; between nodes over the
/// links of its own.
double pass(const Protocol &p, const Group &group, double bytes) {
  return group.ranks > group.inNode
             ? std::max(p.insideStart, p.betweenStart) + p.betweenHop +
                   bytes / p.between
             : p.insideStart + p.insideHop + bytes / p.inside;
}

/// Each rank has a part for every other and sends it over the link between
/// them: those of other nodes over the rank's own (sends and receives of NCCL
/// do not share the links of a node's ranks).
double exchange(const Protocol &p, const Group &group, double bytes) {
  const double outside = group.ranks - group.inNode;
  const double nodes = std::ceil(group.ranks / group.inNode);
  double seconds = p.insideStart,
         moving = (group.inNode - 1) / group.ranks * bytes / p.inside;
  if (nodes > 1) {
    seconds = std::max(seconds, p.betweenStart);
    moving = std::max(moving, outside / group.ranks * bytes / p.between);
  }
  return seconds + (group.ranks - nodes) * p.insideHop +
         (nodes - 1) * p.betweenHop + moving;
}

/// Bytes of `bytes` that the links of a node send to others in an all-reduce
/// over a double binary tree of nodes: each byte up and down, but that of two
/// nodes each is the root of one tree, which it only sends down.
double crossingBytes(double nodes, double bytes) {
  return nodes > 2 ? 2 * bytes : nodes > 1 ? bytes : 0;
}

/// An all-reduce over a double binary tree between nodes and chains inside
/// them: up and down, every byte twice over each link.
double tree(const Target &target, const Group &group, double bytes) {
  const double nodes = std::ceil(group.ranks / group.inNode);
  const Link &inside = target.insideNode, &between = target.betweenNodes;
  double seconds = inside.latencySeconds;
  double moving = group.inNode > 1 ? 2 * bytes / inside.bytesPerSecond : 0;
  if (nodes > 1) {
    seconds = std::max(seconds, between.latencySeconds);
    moving = std::max(moving, crossingBytes(nodes, bytes) /
                                  (between.bytesPerSecond * group.inNode));
  }
  return seconds + moving +
         2 * ((group.inNode - 1) * inside.treeHopSeconds +
              std::log2(nodes) * between.treeHopSeconds);
}

/// The same where the switch of a node sums and copies (NVLS, NVLSTree): each
/// rank reads its part of the sum, which the switch makes of what all of them
/// send, and writes it once, so that a link carries the buffer and one part
/// each way. Between nodes each rank's part goes over a tree.
double inSwitch(const Target &target, const Group &group, double bytes) {
  const double nodes = std::ceil(group.ranks / group.inNode);
  const Link &inside = target.insideNode, &between = target.betweenNodes;
  const SwitchReduction &sums = inside.switchReduction;
  double moving = (1 + 1 / group.inNode) * bytes /
                  (inside.bytesPerSecond * sums.efficiency);
  if (nodes > 1)
    moving = std::max(moving, crossingBytes(nodes, bytes) /
                                  (between.bytesPerSecond * group.inNode));
  return sums.latencySeconds + moving +
         2 * std::log2(nodes) * between.treeHopSeconds;
}

/// That accel-run --fit has measured, if it has.
std::optional<double> measuredSeconds(const Target &target, Collective kind,
                                      const plan::AxisGroup &group,
                                      double bytes) {
  using Kind = plan::ProgramInstructionKind;
  const Kind measured = kind == Collective::AllGather   ? Kind::AllGather
                        : kind == Collective::AllReduce ? Kind::AllReduce
                                                        : Kind::ReduceScatter;
  if (target.measuredCollectives.empty() || group.inNode != group.ranks ||
      kind == Collective::Broadcast || kind == Collective::AllToAll ||
      kind == Collective::Permute)
    return std::nullopt;
  const auto at = target.measuredCollectives.find(
      plan::collectiveKey(measured, group.ranks, static_cast<int64_t>(bytes)));
  return at == target.measuredCollectives.end() ? std::nullopt
                                                : std::optional(at->second);
}

} // namespace

double collectiveSeconds(const Target &target, Collective kind,
                         const plan::AxisGroup &members, double bytes) {
  if (members.ranks <= 1)
    return 0;
  if (const auto measured = measuredSeconds(target, kind, members, bytes))
    return *measured;
  const Group group = {static_cast<double>(members.ranks),
                       static_cast<double>(members.inNode)};
  // The data goes round once; an all-reduce is a reduce-scatter and a gather.
  const double rounds = kind == Collective::AllReduce ? 2 : 1;
  const Link &inside = target.insideNode, &between = target.betweenNodes;
  auto by = [&](const Protocol &protocol) {
    return kind == Collective::Permute ? pass(protocol, group, bytes)
           : kind == Collective::AllToAll
               ? exchange(protocol, group, bytes)
               : ring(protocol, group, rounds, bytes);
  };
  double seconds =
      by({inside.bytesPerSecond, between.bytesPerSecond, inside.latencySeconds,
          between.latencySeconds, inside.hopSeconds, between.hopSeconds});
  const ShortMessages &in = inside.shortMessages, &out = between.shortMessages;
  if (in.bytesPerSecond > 0 && out.bytesPerSecond > 0)
    seconds = std::min(
        seconds, by({in.bytesPerSecond, out.bytesPerSecond, in.latencySeconds,
                     out.latencySeconds, in.hopSeconds, out.hopSeconds}));
  if (kind == Collective::AllReduce && inside.treeHopSeconds > 0 &&
      between.treeHopSeconds > 0)
    seconds = std::min(seconds, tree(target, group, bytes));
  if (kind == Collective::AllReduce && group.inNode > 1 &&
      inside.switchReduction.efficiency > 0 && between.treeHopSeconds > 0)
    seconds = std::min(seconds, inSwitch(target, group, bytes));
  return seconds;
}

double dispatchSeconds(const Target &target, const plan::AxisGroup &group,
                       const Dispatch &dispatch) {
  if (group.ranks <= 1)
    return 0;
  const auto ranks = static_cast<double>(group.ranks);
  const double nodes = std::ceil(ranks / static_cast<double>(group.inNode));
  // Of `places`, how many others than its own a token has to reach.
  auto others = [&](double places) {
    const double reached =
        dispatch.once ? places * (1 - std::pow(1 - 1 / places, dispatch.chosen))
                      : dispatch.chosen;
    return reached * (places - 1) / places;
  };
  const Link &inside = target.insideNode, &between = target.betweenNodes;
  const double bytes = dispatch.tokens * dispatch.rowBytes;
  const double crossing = nodes > 1 ? others(nodes) * bytes : 0;
  const double all = others(ranks) * bytes;
  // What comes once to a node is passed on over its own links.
  const double passed = dispatch.once ? all : all - crossing;
  double seconds = inside.latencySeconds + passed / inside.bytesPerSecond;
  if (nodes > 1)
    seconds = std::max(seconds, between.latencySeconds +
                                    crossing / between.bytesPerSecond);
  return seconds;
}

double hostCopySeconds(const Target &target, double bytes) {
  if (target.host.bytesPerSecond <= 0)
    return std::numeric_limits<double>::infinity();
  return target.host.latencySeconds + bytes / target.host.bytesPerSecond;
}

} // namespace accel
