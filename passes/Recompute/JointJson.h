//===- JointJson.h - Joint graphs as JSON -----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// {"name", "slots" [{"dtype", "shape", "base"}], "inputs", "params",
//  "tangents", "outputs" [slot], "gradients" [{"slot", "of_parameter"}],
//  "ops" [{"op", "category", "forward", "may_recompute", "norm", "into_place",
//          "args", "results" [slot], "flops", "moved_bytes", "workspace_bytes",
//          "where", "seconds"}]}
// `seconds` may be absent; then a target says them. Benchmarks exchange graphs
// with PyTorch's partitioner in it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_JOINTJSON_H
#define ACCEL_PASSES_RECOMPUTE_JOINTJSON_H

#include "passes/Recompute/JointGraph.h"

namespace accel {

std::string toJson(const JointGraph &graph);

struct ReadJoint {
  JointGraph graph;
  std::vector<double> seconds; // by instruction; empty where any has none
  std::string error;           // "ops[3].args: ...", or empty
};
/// Reads one graph and checks that it is one: slots in range and made once,
/// before they are read; views with their operand's base.
ReadJoint readJoint(const std::string &text);

/// The latter check alone: what is wrong, or "".
std::string verifyJoint(const JointGraph &graph);

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_JOINTJSON_H
