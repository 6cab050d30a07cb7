//===- IdleBlocksTest.cpp - Idle blocks against an ordered set ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Replay/IdleBlocks.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <set>

using accel::replay::IdleBlocks;
using Entry = IdleBlocks::Entry;

namespace {

void expectSame(const IdleBlocks &blocks, const std::set<Entry> &set) {
  ASSERT_EQ(blocks.empty(), set.empty());
  IdleBlocks::Position at = blocks.atLeast(0);
  for (const Entry &entry : set) {
    ASSERT_TRUE(blocks.has(at));
    ASSERT_EQ(blocks[at], entry);
    at = blocks.next(at);
  }
  ASSERT_FALSE(blocks.has(at));
  if (!set.empty())
    ASSERT_EQ(blocks.largest(), *set.rbegin());
}

TEST(IdleBlocks, TheFirstAndTheLast) {
  IdleBlocks blocks;
  for (int64_t bytes : {512, 1024}) { // filled and emptied twice
    blocks.insert({bytes, 0, 1});
    expectSame(blocks, {{bytes, 0, 1}});
    blocks.erase({bytes, 0, 1});
    expectSame(blocks, {});
  }
}

TEST(IdleBlocks, AsAnOrderedSet) {
  std::mt19937 random(7);
  IdleBlocks blocks;
  std::set<Entry> set;
  const auto any = [&](int64_t below) {
    return std::uniform_int_distribution<int64_t>(0, below - 1)(random);
  };
  for (int step = 0; step < 20000; ++step) {
    // Grows to some hundred entries, shrinks to none, and again.
    const bool grows = step / 1000 % 2 == 0;
    const Entry entry{512 * (1 + any(40)), 512 * any(4096), step};
    if (set.empty() || any(10) < (grows ? 7 : 2)) {
      if (set.insert(entry).second)
        blocks.insert(entry);
    } else {
      const Entry old = *std::next(set.begin(), any(set.size()));
      set.erase(old);
      if (any(3) == 0 && set.insert(entry).second)
        blocks.replace(blocks.find(old), entry);
      else
        blocks.erase(old);
    }
    const int64_t wanted = 512 * any(42);
    const auto least = set.lower_bound({wanted, -1, -1});
    const IdleBlocks::Position at = blocks.atLeast(wanted);
    ASSERT_EQ(blocks.has(at), least != set.end());
    if (blocks.has(at))
      ASSERT_EQ(blocks[at], *least);
    if (step % 100 == 0)
      expectSame(blocks, set);
  }
}

} // namespace
