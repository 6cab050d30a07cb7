//===- CollectiveTablesTest.cpp - Collectives beside published figures ----===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/CollectiveCost.h"

#include <cstdio>
#include <gtest/gtest.h>

using namespace accel;

namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

/// What nccl-tests printed, or what NCCL's authors expect it to print: GB/s of
/// the column busbw, from `least` to `most`.
struct Published {
  const char *target;
  Collective kind;
  plan::AxisGroup group;
  double bytes, least, most;
  const char *source;
  bool rings = false; // NCCL_ALGO=RING
};

const Published published[] = {
    {"h100-sxm-80gb",
     Collective::AllReduce,
     {8, 8},
     8 * gib,
     480,
     480,
     "NVIDIA/nccl-tests#212 (expected)"},
    {"h100-sxm-80gb",
     Collective::AllReduce,
     {8, 8},
     4 * gib,
     476,
     476,
     "NVIDIA/nccl-tests#290"},
    {"h100-sxm-80gb",
     Collective::AllGather,
     {8, 8},
     16 * gib,
     360,
     360,
     "NVIDIA/nccl-tests#326"},
    {"h100-sxm-80gb",
     Collective::ReduceScatter,
     {8, 8},
     8 * gib,
     370,
     370,
     "NVIDIA/nccl-tests#212 (expected)"},
    {"h800-80gb",
     Collective::AllReduce,
     {8, 8},
     8 * gib,
     215,
     215,
     "NVIDIA/nccl#1374"},
    {"h200",
     Collective::AllReduce,
     {1984, 8},
     0.5 * gib,
     350,
     350,
     "NVIDIA/nccl-tests#283"},
    // A NIC of 400 Gbit/s attains 46 to 48, and what goes to other nodes is
    // (ranks - 8) / ranks of the buffer.
    {"h100-sxm-80gb",
     Collective::AllToAll,
     {16, 8},
     8 * gib,
     15. / 8 * 46,
     15. / 8 * 48,
     "NVIDIA/nccl-tests#130 and #290 (expected)"},
    {"h100-sxm-80gb",
     Collective::AllToAll,
     {48, 8},
     8 * gib,
     47. / 40 * 46,
     47. / 40 * 48,
     "NVIDIA/nccl-tests#130 and #290 (expected)"},
    {"a100-80gb",
     Collective::AllReduce,
     {8, 8},
     8 * gib,
     230,
     250,
     "docs.alayanew.com, 2026-05-06-nccl-tests"},
    // Two nodes of four GPUs with a NIC of 200 Gbit/s each.
    {"a100-80gb",
     Collective::AllReduce,
     {8, 4},
     8 * gib,
     94.8,
     95.1,
     "NVIDIA/nccl-tests#252",
     /*rings=*/true},
};

const char *nameOf(Collective kind) {
  return kind == Collective::AllReduce       ? "all-reduce"
         : kind == Collective::AllGather     ? "all-gather"
         : kind == Collective::ReduceScatter ? "reduce-scatter"
                                             : "all-to-all";
}

/// By nccl-tests' doc/PERFORMANCE.md.
double busBandwidth(const Published &row, double seconds) {
  const auto ranks = static_cast<double>(row.group.ranks);
  const double rounds = row.kind == Collective::AllReduce ? 2 : 1;
  return rounds * (ranks - 1) / ranks * row.bytes / seconds / 1e9;
}

TEST(CollectiveTables, WithinFivePercent) {
  for (const Published &row : published) {
    DiagnosticEngine engine;
    std::optional<Target> target = loadTarget(row.target, engine);
    ASSERT_TRUE(target) << renderText(engine);
    if (row.rings) {
      target->insideNode.switchReduction = {};
      target->insideNode.treeHopSeconds = 0;
    }
    const double predicted = busBandwidth(
        row, collectiveSeconds(*target, row.kind, row.group, row.bytes));
    std::printf("%-14s %4d ranks %5.1f GiB  published %5.1f to %5.1f  "
                "predicted %5.1f  %s  %s\n",
                row.target, static_cast<int>(row.group.ranks), row.bytes / gib,
                row.least, row.most, predicted, nameOf(row.kind), row.source);
    EXPECT_GE(predicted, 0.95 * row.least) << row.source;
    EXPECT_LE(predicted, 1.05 * row.most) << row.source;
  }
}

TEST(CollectiveTables, SwitchesSumForManyRanksOnly) {
  DiagnosticEngine engine;
  const std::optional<Target> target = loadTarget("h100-sxm-80gb", engine);
  ASSERT_TRUE(target) << renderText(engine);
  Target rings = *target;
  rings.insideNode.switchReduction = {};
  auto gain = [&](const plan::AxisGroup &group, double bytes) {
    return collectiveSeconds(rings, Collective::AllReduce, group, bytes) /
           collectiveSeconds(*target, Collective::AllReduce, group, bytes);
  };
  // Of two ranks the link carries one and a half buffers, by rings one.
  EXPECT_EQ(gain({2, 2}, gib), 1);
  EXPECT_GT(gain({8, 8}, gib), 1.3);
  // Gathers are rings.
  EXPECT_EQ(collectiveSeconds(rings, Collective::AllGather, {8, 8}, gib),
            collectiveSeconds(*target, Collective::AllGather, {8, 8}, gib));
  // Beyond two nodes the links between them are the limit, and two of them are
  // not.
  EXPECT_NEAR(gain({64, 8}, 4 * gib), 1, 0.05);
  EXPECT_GT(gain({16, 8}, 4 * gib), 1.3);
}

} // namespace
