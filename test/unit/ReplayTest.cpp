//===- ReplayTest.cpp - Segments of the caching allocator -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Replay/Replay.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace accel::replay;

namespace {

constexpr int64_t mebi = int64_t(1) << 20;

int64_t reservedFor(int64_t bytes, AllocatorRules rules = {}) {
  CachingAllocator allocator(rules);
  EXPECT_GE(allocator.allocate(bytes, 0), 0);
  return allocator.statistics().reservedBytes;
}

TEST(Replay, SegmentsBySize) {
  EXPECT_EQ(reservedFor(1), 2 * mebi);
  EXPECT_EQ(reservedFor(mebi), 2 * mebi);
  EXPECT_EQ(reservedFor(mebi + 1), 20 * mebi);
  EXPECT_EQ(reservedFor(10 * mebi - 512), 20 * mebi);
  EXPECT_EQ(reservedFor(10 * mebi), 10 * mebi);
  EXPECT_EQ(reservedFor(11 * mebi), 12 * mebi);
  AllocatorRules growing;
  growing.expandableSegments = true;
  EXPECT_EQ(reservedFor(1, growing), 2 * mebi);
  EXPECT_EQ(reservedFor(11 * mebi, growing), 20 * mebi);
  EXPECT_EQ(reservedFor(21 * mebi, growing), 40 * mebi);
}

TEST(Replay, TheSmallestBlockThatFits) {
  CachingAllocator allocator({});
  const int large = allocator.allocate(100 * mebi, 0);
  const int wall = allocator.allocate(40 * mebi, 0);
  const int small = allocator.allocate(60 * mebi, 0);
  allocator.free(large);
  allocator.free(small);
  allocator.allocate(50 * mebi, 0); // from the 60, not the 100
  allocator.allocate(90 * mebi, 0);
  EXPECT_EQ(allocator.statistics().reservedBytes, 200 * mebi);
  allocator.free(wall);
}

TEST(Replay, FreedMemoryServesItsOwnStreamAlone) {
  CachingAllocator allocator({});
  allocator.free(allocator.allocate(64 * mebi, 0));
  allocator.allocate(64 * mebi, 1);
  EXPECT_EQ(allocator.reservedBytes(0), 64 * mebi);
  EXPECT_EQ(allocator.reservedBytes(1), 64 * mebi);
  allocator.allocate(64 * mebi, 0);
  EXPECT_EQ(allocator.statistics().reservedBytes, 128 * mebi);
}

TEST(Replay, AParkedBlockServesOnlyWhenItSettles) {
  CachingAllocator allocator({});
  const int block = allocator.allocate(64 * mebi, 0);
  allocator.park(block);
  EXPECT_EQ(allocator.statistics().allocatedBytes, 0);
  const int second = allocator.allocate(64 * mebi, 0);
  EXPECT_EQ(allocator.statistics().reservedBytes, 128 * mebi);
  allocator.settle(block);
  allocator.allocate(64 * mebi, 0);
  EXPECT_EQ(allocator.statistics().reservedBytes, 128 * mebi);
  EXPECT_NE(second, block);
}

TEST(Replay, NeighboursGrowTogetherAgain) {
  CachingAllocator allocator({});
  std::vector<int> quarters;
  allocator.free(allocator.allocate(80 * mebi, 0));
  for (int i = 0; i < 4; ++i)
    quarters.push_back(allocator.allocate(20 * mebi, 0));
  for (int i : {2, 0, 3, 1})
    allocator.free(quarters[i]);
  allocator.allocate(80 * mebi, 0);
  EXPECT_EQ(allocator.statistics().reservedBytes, 80 * mebi);
}

TEST(Replay, AFullDeviceReturnsIdleSegmentsFirst) {
  AllocatorRules rules;
  rules.capacityBytes = 100 * mebi;
  CachingAllocator allocator(rules);
  const int kept = allocator.allocate(20 * mebi, 0);
  allocator.free(allocator.allocate(60 * mebi, 0));
  EXPECT_GE(allocator.allocate(70 * mebi, 0), 0);
  EXPECT_EQ(allocator.statistics().retries, 1);
  EXPECT_EQ(allocator.statistics().reservedBytes, 90 * mebi);
  EXPECT_EQ(allocator.allocate(20 * mebi, 0), -1);
  allocator.free(kept);
}

TEST(Replay, WhatTheVariableSays) {
  auto read = [](const char *text, AllocatorRules &rules) {
    bool unsupported = false;
    const std::string error = readAllocatorRules(text, rules, unsupported);
    return error.empty() ? "" : unsupported ? "unsupported" : "wrong";
  };
  AllocatorRules rules;
  EXPECT_STREQ(read("", rules), "");
  EXPECT_STREQ(read("expandable_segments:True, max_split_size_mb:128,"
                    "pinned_use_background_threads:True",
                    rules),
               "");
  EXPECT_TRUE(rules.expandableSegments);
  EXPECT_EQ(rules.maxSplitBytes, 128 * mebi);
  EXPECT_STREQ(read("roundup_power2_divisions:4", rules), "");
  EXPECT_EQ(rules.powerOfTwoDivisions, 4);
  EXPECT_EQ(roundedSize(1100 * mebi, rules), 1280 * mebi);
  EXPECT_STREQ(read("roundup_power2_divisions:[256:1,512:2,>:8]", rules),
               "unsupported");
  EXPECT_STREQ(read("garbage_collection_threshold:0.8", rules), "unsupported");
  EXPECT_STREQ(read("backend:cudaMallocAsync", rules), "unsupported");
  EXPECT_STREQ(read("expandable_segments:true", rules), "wrong");
  EXPECT_STREQ(read("expandable_segment:True", rules), "wrong");
  EXPECT_STREQ(read("max_split_size_mb:20", rules), "wrong");
  EXPECT_STREQ(read("roundup_power2_divisions:3", rules), "wrong");
  EXPECT_STREQ(read("expandable_segments", rules), "wrong");
}

/// Random steps: tensors that stay, and some that come and go.
Problem randomProblem(uint32_t seed) {
  std::mt19937 random(seed);
  Problem problem;
  std::vector<int> live;
  std::vector<int> parked;
  auto event = [&](Action action, int tensor, int stream, int64_t bytes) {
    problem.events.push_back({action, stream, tensor, bytes});
  };
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 400; ++i) {
      if (live.size() < 60 && random() % 2) {
        const int64_t bytes = int64_t(1) << (random() % 27);
        live.push_back(problem.tensors);
        event(Action::Allocate, problem.tensors++,
              static_cast<int>(random() % 3), bytes);
      } else if (!live.empty()) {
        const size_t at = random() % live.size();
        const bool parks = random() % 5 == 0;
        event(parks ? Action::Park : Action::Free, live[at], 0, 0);
        if (parks)
          parked.push_back(live[at]);
        live.erase(live.begin() + static_cast<long>(at));
      } else if (!parked.empty()) {
        event(Action::Settle, parked.back(), 0, 0);
        parked.pop_back();
      }
    }
    event(Action::StepEnd, -1, 0, 0);
  }
  return problem;
}

TEST(Replay, ResultsHoldTheirProperties) {
  for (uint32_t seed = 0; seed < 50; ++seed)
    for (bool growing : {false, true}) {
      const Problem problem = randomProblem(seed);
      ASSERT_EQ(verify(problem), "");
      AllocatorRules rules;
      rules.expandableSegments = growing;
      const Result result = solve(problem, rules);
      EXPECT_EQ(verify(problem, rules, result), "");
      EXPECT_EQ(result.reservedPeakByStep.size(), 4u);
      EXPECT_GE(result.statistics.reservedPeak,
                result.statistics.allocatedPeak);
      Result less = result;
      less.reservedByStream[1] = 0;
      EXPECT_NE(verify(problem, rules, less), "");
    }
}

TEST(Replay, WrongProblemsAreNamed) {
  auto wrong = [](std::vector<Event> events, int tensors) {
    return verify(Problem{std::move(events), tensors});
  };
  EXPECT_EQ(wrong({{Action::Allocate, 0, 0, 1}, {Action::Free, 0, 0, 0}}, 1),
            "");
  EXPECT_NE(wrong({{Action::Free, 0, 0, 0}}, 1), "");
  EXPECT_NE(
      wrong({{Action::Allocate, 0, 0, 1}, {Action::Allocate, 0, 0, 1}}, 1), "");
  EXPECT_NE(wrong({{Action::Allocate, 0, 1, 1}}, 1), "");
  EXPECT_NE(wrong({{Action::Allocate, -1, 0, 1}}, 1), "");
  EXPECT_NE(wrong({{Action::Allocate, 0, 0, 1}, {Action::Settle, 0, 0, 0}}, 1),
            "");
}

TEST(Replay, StepByStepIsAllAtOnce) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Problem whole = randomProblem(seed);
    Problem part;
    part.tensors = whole.tensors;
    Replay replay({});
    for (const Event &event : whole.events) {
      part.events.push_back(event);
      if (event.action == Action::StepEnd) {
        replay.play(part);
        if (seed % 2)
          part.dropEvents();
      }
    }
    const Result a = replay.result(), b = solve(whole, {});
    EXPECT_EQ(a.statistics, b.statistics);
    EXPECT_EQ(a.reservedByStream, b.reservedByStream);
    EXPECT_EQ(a.reservedPeakByStep, b.reservedPeakByStep);
  }
}

TEST(Replay, SettledIsWhereEverythingIsWhereItWas) {
  Problem problem;
  auto step = [&](std::vector<Event> events) {
    for (const Event &event : events)
      problem.events.push_back(event);
    problem.events.push_back({Action::StepEnd, 0, -1, 0});
    problem.tensors = 8;
  };
  Replay replay({});
  step({{Action::Allocate, 0, 0, 40 * mebi},
        {Action::Allocate, 0, 1, 40 * mebi}});
  replay.play(problem);
  EXPECT_FALSE(replay.settled());
  step({{Action::Allocate, 0, 2, 60 * mebi}, {Action::Free, 0, 2, 0}});
  replay.play(problem);
  EXPECT_FALSE(replay.settled()); // a new segment
  step({{Action::Allocate, 0, 3, 60 * mebi}, {Action::Free, 0, 3, 0}});
  replay.play(problem);
  EXPECT_TRUE(replay.settled());
  // As many bytes in as many segments, but two tensors change places.
  step({{Action::Free, 0, 0, 0},
        {Action::Free, 0, 1, 0},
        {Action::Allocate, 0, 4, 40 * mebi},
        {Action::Allocate, 0, 5, 40 * mebi},
        {Action::Free, 0, 4, 0},
        {Action::Allocate, 0, 6, 40 * mebi}});
  replay.play(problem);
  EXPECT_FALSE(replay.settled());
}

/// Against an ordered set, with so many blocks that runs are cut and emptied.
TEST(Replay, IdleBlocksAreInOrder) {
  std::mt19937 random(11);
  IdleBlocks idle;
  std::set<std::pair<int64_t, int64_t>> expected;
  for (int i = 0; i < 20000; ++i) {
    const int64_t bytes = static_cast<int64_t>(random() % 50);
    const int64_t address = static_cast<int64_t>(random() % 2000);
    const bool grows = i < 8000 || (i > 14000 && i < 16000);
    if (expected.count({bytes, address})) {
      idle.erase(IdleBlocks::Entry{bytes, address, 0});
      expected.erase({bytes, address});
    } else if (grows || random() % 3 == 0) {
      idle.insert({bytes, address, i});
      expected.insert({bytes, address});
    } else if (const auto at = idle.atLeast(bytes); idle.has(at)) {
      const auto known = expected.lower_bound({bytes, -1});
      ASSERT_EQ(idle[at].bytes, known->first);
      ASSERT_EQ(idle[at].address, known->second);
      idle.erase(at);
      expected.erase(known);
    } else {
      ASSERT_EQ(expected.lower_bound({bytes, -1}), expected.end());
    }
  }
  std::vector<std::pair<int64_t, int64_t>> all;
  for (auto at = idle.atLeast(0); idle.has(at); at = idle.next(at))
    all.emplace_back(idle[at].bytes, idle[at].address);
  EXPECT_TRUE(
      std::equal(all.begin(), all.end(), expected.begin(), expected.end()));
  EXPECT_GT(all.size(), 200u);
  EXPECT_EQ(idle.largest().bytes, expected.rbegin()->first);
}

} // namespace
