//===- MeshTest.cpp - A job's ranks as named axes -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Mesh.h"

#include <gtest/gtest.h>
#include <limits>

using namespace accel::plan;

namespace {

Mesh meshOf(std::vector<Axis> axes) { return {std::move(axes)}; }

TEST(Mesh, SizesAndRanks) {
  const Mesh mesh = meshOf({{"pp", 2}, {"dp_replicate", 3}, {"dp_shard", 4}});
  EXPECT_EQ(mesh.ranks(), 24);
  EXPECT_EQ(mesh.size("pp"), 2);
  EXPECT_EQ(mesh.size("tp"), 1) << "absent";
  EXPECT_EQ(mesh.ranks(AxisSet()), 1);
  EXPECT_EQ(mesh.ranks(mesh.set({"pp", "dp_shard", "none"})), 8);
  EXPECT_EQ(Mesh().ranks(), 1);
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(meshOf({{"a", most}, {"b", 2}}).ranks(), most) << "saturates";
}

TEST(Mesh, RolesOfAxes) {
  const Mesh mesh = meshOf(
      {{"pp", 2}, {"dp_replicate", 3}, {"dp_shard", 4}, {"cp", 5}, {"tp", 8}});
  EXPECT_EQ(mesh.names(mesh.set(AxisRole::Shard)),
            (std::vector<std::string>{"dp_shard", "cp"}));
  EXPECT_EQ(mesh.ranks(AxisRole::Shard), 20);
  EXPECT_EQ(mesh.ranks(AxisRole::Replicate), 3);
  EXPECT_EQ(mesh.ranks(AxisRole::Other), 16);
}

TEST(Mesh, RanksThatShareExpertsReadOtherSamples) {
  const Mesh mesh = meshOf({{"dp_replicate", 2}, {"dp_shard", 4}, {"ep", 2}});
  EXPECT_EQ(mesh.names(mesh.set(AxisRole::Shard)),
            (std::vector<std::string>{"dp_shard", "ep"}));
  EXPECT_EQ(mesh.ranksPerSample(), 1);
  EXPECT_EQ(mesh.sharded(4),
            meshOf({{"dp_replicate", 4}, {"dp_shard", 2}, {"ep", 2}}));
}

TEST(Mesh, ChangesKeepTheRanks) {
  Mesh mesh = Mesh::dataParallel();
  EXPECT_EQ(mesh.ranks(), 1);
  mesh.resize("dp_shard", 16);
  EXPECT_EQ(mesh.sharded(4).size("dp_replicate"), 4);
  EXPECT_EQ(mesh.sharded(4).sharded(16), mesh);
  EXPECT_EQ(mesh.onto("dp_replicate").size("dp_replicate"), 16);
  EXPECT_EQ(mesh.onto("dp_replicate").size("dp_shard"), 1);
  mesh.resize("tp", 2);
  EXPECT_EQ(mesh.axes.back().name, "tp") << "added as the innermost";
  EXPECT_EQ(mesh.sharded(8).ranks(), 32);
  EXPECT_EQ(mesh.sharded(8).size("tp"), 2);
}

/// Every group of every mesh against the list of its ranks.
TEST(Mesh, GroupsCountTheRanksOfANode) {
  for (int64_t node : {1, 2, 4, 8, 16, 64})
    for (int64_t a : {1, 2, 4})
      for (int64_t b : {1, 2, 8})
        for (int64_t c : {1, 4})
          for (unsigned chosen = 0; chosen < 8; ++chosen) {
            const Mesh mesh = meshOf({{"x", a}, {"y", b}, {"z", c}});
            AxisSet set;
            for (size_t i = 0; i < 3; ++i)
              if (chosen >> i & 1)
                set.add(i);
            int64_t ranks = 0, inNode = 0;
            for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
              const int64_t at[] = {rank / (b * c), rank / c % b, rank % c};
              bool member = true; // of rank 0's group
              for (size_t i = 0; i < 3; ++i)
                member &= set.contains(i) || at[i] == 0;
              ranks += member;
              inNode += member && rank < node;
            }
            const AxisGroup group = mesh.group(set, node);
            EXPECT_EQ(group.ranks, ranks);
            EXPECT_EQ(group.inNode, inNode)
                << node << " " << a << " " << b << " " << c << " " << chosen;
          }
}

TEST(Mesh, NodesThatNoAxisFillsHoldWholeNeighbours) {
  const Mesh mesh = meshOf({{"dp_replicate", 4}, {"dp_shard", 6}});
  EXPECT_EQ(mesh.group(mesh.set(AxisRole::Shard), 8), (AxisGroup{6, 6}));
  EXPECT_EQ(mesh.group(mesh.set(AxisRole::Replicate), 8), (AxisGroup{4, 1}));
}

} // namespace
