//===- HappensBeforeTest.cpp ----------------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/dry/HappensBefore.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace accel::dry;

namespace {

struct Order : testing::Test {
  HappensBefore order;
  Actor a = order.addStream("stream a"), b = order.addStream("stream b");
  void write(Actor on, uint64_t begin = 0, uint64_t end = 64) {
    order.enqueue(on);
    order.access(on, begin, end, true, "write");
  }
  void read(Actor on, uint64_t begin = 0, uint64_t end = 64) {
    order.enqueue(on);
    order.access(on, begin, end, false, "read");
  }
};

TEST_F(Order, OneStreamIsInOrder) {
  write(a);
  read(a);
  write(a);
  EXPECT_EQ(order.raceCount(), 0);
}

TEST_F(Order, TwoStreamsAreNot) {
  write(a);
  read(b);
  ASSERT_EQ(order.raceCount(), 1);
  EXPECT_EQ(order.races().begin()->first,
            "read after write: 'write' on stream a and 'read' on stream b");
  write(b);
  EXPECT_EQ(order.raceCount(), 2) << "write after write";
}

TEST_F(Order, ReadsDoNotDisturbReads) {
  read(a);
  read(b);
  EXPECT_EQ(order.raceCount(), 0);
  write(b);
  EXPECT_EQ(order.raceCount(), 1) << "write after the read of a";
}

TEST_F(Order, WhatWasWrittenOtherwise) {
  using Parts = std::vector<std::pair<uint64_t, uint64_t>>;
  auto others = [&](uint64_t begin, uint64_t end) {
    return order.writtenOtherwise(begin, end, {"free"});
  };
  EXPECT_EQ(others(0, 64), (Parts{{0, 64}})) << "nothing wrote there";
  order.enqueue(a);
  order.access(a, 0, 64, true, "free");
  EXPECT_EQ(others(0, 64), Parts());
  EXPECT_EQ(others(32, 96), (Parts{{64, 96}}));
  write(a, 16, 24);
  write(b, 24, 32);
  read(a, 40, 48);
  EXPECT_EQ(others(0, 64), (Parts{{16, 32}}));
  EXPECT_EQ(others(20, 64), (Parts{{20, 32}}));
  order.forget(48, 64);
  EXPECT_EQ(others(0, 64), (Parts{{16, 32}, {48, 64}}));
}

TEST_F(Order, AnEventOrders) {
  write(a);
  order.record(7, a);
  EXPECT_TRUE(order.wait(b, 7));
  read(b);
  EXPECT_EQ(order.raceCount(), 0);
  write(a); // after what the event stands for, and not after b's read
  EXPECT_EQ(order.raceCount(), 1);
}

TEST_F(Order, AnEventStandsForWhatWasQueuedBefore) {
  order.record(7, a);
  write(a);
  order.wait(b, 7);
  read(b);
  EXPECT_EQ(order.raceCount(), 1);
}

TEST_F(Order, AnEventThatNothingRecordedOrdersNothing) {
  write(a);
  EXPECT_FALSE(order.wait(b, 7));
  read(b);
  EXPECT_EQ(order.raceCount(), 1);
}

TEST_F(Order, OrderPassesThroughAThirdStream) {
  Actor c = order.addStream("stream c");
  write(a);
  order.record(1, a);
  order.wait(c, 1);
  order.record(2, c);
  order.wait(b, 2);
  read(b);
  EXPECT_EQ(order.raceCount(), 0);
}

TEST_F(Order, TheHostOrdersWhatItQueuesLater) {
  write(a);
  order.synchronize(a);
  read(b);
  EXPECT_EQ(order.raceCount(), 0);
  Moment last = order.enqueue(b);
  EXPECT_FALSE(order.isDone(last));
  order.record(3, b);
  EXPECT_FALSE(order.hasPassed(3));
  order.synchronizeEvent(3);
  EXPECT_TRUE(order.hasPassed(3));
  EXPECT_TRUE(order.isDone(last));
}

TEST_F(Order, AWaitForEverythingOrdersAll) {
  write(a, 0, 8);
  write(b, 8, 16);
  order.synchronizeAll();
  read(a);
  read(b);
  EXPECT_EQ(order.raceCount(), 0);
}

TEST_F(Order, OnlyBytesThatOverlap) {
  write(a, 0, 64);
  read(b, 64, 128);
  EXPECT_EQ(order.raceCount(), 0);
  read(b, 63, 65);
  EXPECT_EQ(order.raceCount(), 1);
  write(a, 100, 101);
  EXPECT_EQ(order.raceCount(), 2) << "a byte of what b has read";
}

TEST_F(Order, ARangeThatIsGivenAwayIsForgotten) {
  write(a);
  order.forget(16, 48);
  read(b, 16, 48);
  EXPECT_EQ(order.raceCount(), 0);
  read(b, 0, 16);
  read(b, 48, 64);
  EXPECT_EQ(order.raceCount(), 2);
}

/// Against a checker without clocks: reachability in the graph of operations.
TEST(OrderAtRandom, IsReachability) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&](int n) { return static_cast<int>(random() % n); };
    HappensBefore order;
    constexpr int streams = 3, bytes = 6;
    for (int i = 0; i < streams; ++i)
      order.addStream("s" + std::to_string(i));
    struct Operation {
      std::set<int> before; // operations, closed
      uint64_t begin, end;
      bool writes;
    };
    std::vector<Operation> operations;
    std::set<int> known[streams + 1]; // by actor: what it comes after
    std::map<int, std::set<int>> events;
    // Up to the first race: after it, an access that was overwritten is not
    // held against later ones.
    for (int i = 0; i < 60 && order.raceCount() == 0; ++i) {
      const int stream = 1 + pick(streams), event = pick(3);
      switch (pick(5)) {
      case 0:
        known[stream].insert(known[host].begin(), known[host].end());
        order.record(event, stream);
        events[event] = known[stream];
        break;
      case 1:
        EXPECT_EQ(order.wait(stream, event), events.count(event) == 1);
        if (events.count(event))
          known[stream].insert(events[event].begin(), events[event].end());
        break;
      case 2:
        if (pick(4))
          break;
        order.synchronize(stream);
        known[host].insert(known[stream].begin(), known[stream].end());
        break;
      default: {
        const uint64_t begin = pick(bytes), end = begin + 1 + pick(2);
        const bool writes = pick(2);
        known[stream].insert(known[host].begin(), known[host].end());
        order.enqueue(stream);
        order.access(stream, begin, end, writes, "x");
        bool races = false;
        for (size_t k = 0; k < operations.size(); ++k)
          races |= operations[k].begin < end && begin < operations[k].end &&
                   (writes || operations[k].writes) && !known[stream].count(k);
        EXPECT_EQ(order.raceCount() > 0, races)
            << "seed " << seed << ", operation " << i;
        operations.push_back({known[stream], begin, end, writes});
        known[stream].insert(static_cast<int>(operations.size()) - 1);
      }
      }
    }
  }
}

} // namespace
