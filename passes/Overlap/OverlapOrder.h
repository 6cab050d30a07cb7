//===- OverlapOrder.h - Operators beside exchanges --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// In which order a function's operators run so that what ranks exchange is
// under way while others compute. List scheduling over the computation and one
// wire: operators keep their order, but where one would wait for the wire a
// later one that need not runs first. The solver knows no memory; whoever asks
// measures what it proposes.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_OVERLAP_OVERLAPORDER_H
#define ACCEL_PASSES_OVERLAP_OVERLAPORDER_H

#include <string>
#include <vector>

namespace accel {

/// An operator, or an exchange that may be started and awaited later.
struct OverlapNode {
  double seconds = 0; // of the computation; of an exchange on the wire
  bool exchanges = false;
  std::vector<int> reads; // nodes before it, by their number
};

/// How far an order may go from the given one.
struct OverlapRule {
  /// Which operators run while another one waits.
  enum class Beside {
    None,    // none but those that stand there
    Results, // those from which only results of the function follow, without
             // another exchange
    Any
  } beside = Beside::Any;
  /// An exchange starts before its place where less would be left to compute
  /// before its first reader, behind the next operator, than it takes, times
  /// this; 0: where it stands.
  double ahead = 0;
  /// Operators before an exchange from which only results follow come behind
  /// it, the nearest first, until it has company for as long as it takes.
  bool postpones = false;
  /// The part of an exchange that computation can hide (Target::overlap).
  double hidden = 1;
};

/// A node, or the await of an exchange.
struct OverlapStep {
  int node = 0;
  bool awaits = false;
  bool operator==(const OverlapStep &) const = default;
};

/// Every node once, and behind it the await of each exchange that something
/// computes beside. An exchange without an await is over where it stands.
std::vector<OverlapStep> overlapOrder(const std::vector<OverlapNode> &nodes,
                                      const OverlapRule &rule);

/// How long an order takes, as passes/Cost/FunctionTime.h counts it.
double overlapSeconds(const std::vector<OverlapNode> &nodes,
                      const std::vector<OverlapStep> &steps, double hidden);

/// What is wrong with an order: a node that is missing or there twice, that
/// comes before what it reads or reads what is under way. Empty if nothing is.
std::string overlapProblem(const std::vector<OverlapNode> &nodes,
                           const std::vector<OverlapStep> &steps);

} // namespace accel

#endif // ACCEL_PASSES_OVERLAP_OVERLAPORDER_H
