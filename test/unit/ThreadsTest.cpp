//===- ThreadsTest.cpp - Which CPUs ranks are bound to --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Threads.h"

#include <gtest/gtest.h>

using namespace accel::run;
using Cpus = std::vector<int>;

TEST(Threads, ListsAreLinux) {
  EXPECT_EQ(parseCpuList("0-3,8,10-11"), (Cpus{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parseCpuList("5"), Cpus{5});
  for (const char *bad : {"", "a", "3-1", "1-", "1;2", "-1", "1-99999999999"})
    EXPECT_EQ(parseCpuList(bad), Cpus()) << bad;
}

TEST(Threads, CoresAreEqualPartsOfWhatThereIs) {
  const Cpus available = {2, 3, 4, 6, 7};
  EXPECT_EQ(cpusOf(Bind::Cores, available, {}, 0, 2), (Cpus{2, 3}));
  EXPECT_EQ(cpusOf(Bind::Cores, available, {}, 1, 2), (Cpus{4, 6, 7}));
  EXPECT_EQ(cpusOf(Bind::None, available, {}, 1, 2), available);
  // The first of six ranks has none.
  EXPECT_EQ(cpusOf(Bind::Cores, available, {}, 0, 6), Cpus());
}

TEST(Threads, NeighboursShareANode) {
  const std::vector<Cpus> nodes = {{0, 1, 8, 9}, {2, 3, 10, 11}};
  const Cpus all = {0, 1, 2, 3, 8, 9, 10, 11};
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(cpusOf(Bind::Numa, all, nodes, rank, 4), nodes[rank / 2]) << rank;
  EXPECT_EQ(cpusOf(Bind::Numa, all, nodes, 1, 2), nodes[1]);
  // A container has a part of one node, and none of the other.
  EXPECT_EQ(cpusOf(Bind::Numa, {2, 3}, nodes, 0, 2), (Cpus{2, 3}));
  EXPECT_EQ(cpusOf(Bind::Numa, {2, 3}, nodes, 1, 2), (Cpus{2, 3}));
  EXPECT_EQ(cpusOf(Bind::Numa, {64}, nodes, 0, 1), Cpus());
}
