//===- ProgressTest.cpp - Which rank the others wait for ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Progress.h"
#include "runtime/collectives/RunningTime.h"

#include <gtest/gtest.h>

using namespace accel::run;

namespace {

constexpr std::chrono::seconds limit(10);

std::optional<Place> at(int64_t count, bool waits, double still) {
  return Place{count, waits, still, "here"};
}

TEST(Progress, APlaceIsReadAsItWasWritten) {
  const Place place{42, true, 3.5, "step 3, train/57 reduce_scatter layers.4"};
  const auto read = Place::decode(place.encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->count, 42);
  EXPECT_TRUE(read->waits);
  EXPECT_NEAR(read->stillSeconds, 3.5, 1e-6);
  EXPECT_EQ(read->text, place.text);
  EXPECT_FALSE(Place::decode(""));
  EXPECT_FALSE(Place::decode("12"));
}

TEST(Progress, TheRankThatIsBehindIsMissing) {
  EXPECT_EQ(
      missingRank({at(7, true, 12), at(5, false, 12), at(7, true, 12)}, limit),
      1);
}

TEST(Progress, AtOnePlaceItIsTheOneThatDoesNotWait) {
  EXPECT_EQ(
      missingRank({at(7, true, 12), at(7, true, 12), at(7, false, 12)}, limit),
      2);
}

TEST(Progress, ARankThatMovesIsWaitedFor) {
  EXPECT_EQ(missingRank({at(7, true, 12), at(5, false, 2)}, limit), -1);
}

TEST(Progress, NobodyHasWaitedLongEnough) {
  EXPECT_EQ(missingRank({at(7, true, 9), at(5, false, 30)}, limit), -1);
}

TEST(Progress, AllWaitAtOnePlace) {
  EXPECT_EQ(missingRank({at(7, true, 30), at(7, true, 30)}, limit), -1);
  EXPECT_EQ(missingRank({std::nullopt, std::nullopt}, limit), -1);
}

TEST(Progress, ARankThatWaitsIsNotTheOneThatIsMissing) {
  // Two that wait in different collectives, as with other options.
  EXPECT_EQ(missingRank({at(7, true, 12), at(5, true, 12)}, limit), -1);
  // Stages do other numbers of things: the one that hangs has done more.
  EXPECT_EQ(missingRank({at(5, true, 12), at(7, false, 12)}, limit), 1);
}

TEST(Progress, WhereAllStandThatWait) {
  const auto elsewhere = [](int64_t count, double still) {
    return std::optional(Place{count, true, still, "there"});
  };
  EXPECT_EQ(
      crossedWaits({at(7, true, 12), elsewhere(5, 12), at(7, true, 12)}, limit),
      "all ranks wait, and none has gone on for 10 s: rank 1 at there; rank 0 "
      "and 1 more at here");
  // One place: the collective itself is slow, or has lost a message.
  EXPECT_EQ(crossedWaits({at(7, true, 30), at(7, true, 30)}, limit), "");
  // One that computes, has just come, or is not known may be waited for.
  EXPECT_EQ(crossedWaits({elsewhere(5, 12), at(7, false, 12)}, limit), "");
  EXPECT_EQ(crossedWaits({elsewhere(5, 12), at(7, true, 2)}, limit), "");
  EXPECT_EQ(crossedWaits({elsewhere(5, 12), std::nullopt}, limit), "");
}

TEST(Progress, OfThisProcess) {
  Progress &own = Progress::get();
  own.setStep(3);
  own.enter("train/1 all_gather a");
  const Place before = own.place();
  EXPECT_EQ(before.text, "step 3, train/1 all_gather a");
  EXPECT_FALSE(before.waits);
  {
    Progress::Waiting waiting;
    EXPECT_TRUE(own.place().waits);
  }
  EXPECT_FALSE(own.place().waits);
  EXPECT_EQ(own.place().count, before.count);
  own.enter("train/2 call f");
  EXPECT_EQ(own.place().count, before.count + 1);
  EXPECT_LT(own.place().stillSeconds, 1);
}

TEST(RunningTime, WhatAProcessWasStoppedForCountsAsASecond) {
  using namespace std::chrono_literals;
  const RunningTime::Clock::time_point begin{};
  RunningTime waited;
  waited.restart(begin);
  EXPECT_EQ(waited.look(begin + 500ms), 500ms);
  EXPECT_EQ(waited.look(begin + 1000ms), 1000ms);
  EXPECT_EQ(waited.look(begin + 8h), 2000ms);
  EXPECT_EQ(waited.look(begin + 8h + 500ms), 2500ms);
  waited.restart(begin + 9h);
  EXPECT_EQ(waited.look(begin + 9h + 500ms), 500ms);
}

} // namespace
