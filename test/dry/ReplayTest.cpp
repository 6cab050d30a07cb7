//===- ReplayTest.cpp -----------------------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/dry/Replay.h"

#include <gtest/gtest.h>

#include <map>

using namespace accel::dry;

namespace {

constexpr int compute = 1, gather = 2;
using Kind = TraceItem::Kind;

double seconds(const std::vector<TraceItem> &trace, double taken = 0) {
  static const std::map<std::string, PlaceSeconds> costs = {
      {"call", {5, 0, 0}}, {"gather", {0, 1, 4}}, {"other", {0, 0, 6}}};
  return *replay({{trace, compute}}, taken,
                 [](const std::string &place) { return costs.at(place); });
}

TEST(Replay, KernelsOfAPlaceCostWhatThePlaceCosts) {
  EXPECT_EQ(seconds({{Kind::Work, compute, 0, "call"},
                     {Kind::Work, compute, 0, "call"}}),
            5);
  EXPECT_EQ(seconds({{Kind::Work, compute, 0, "call"},
                     {Kind::Work, compute, 0, ""},
                     {Kind::Work, compute, 0, "call"}}),
            10)
      << "a place that is come to again costs again";
}

TEST(Replay, StreamsOverlapUntilOneWaits) {
  std::vector<TraceItem> trace = {{Kind::Work, gather, 0, "gather"},
                                  {Kind::Collective, gather, 0, "gather"},
                                  {Kind::Record, gather, 7, "gather"},
                                  {Kind::Work, compute, 0, "call"}};
  EXPECT_EQ(seconds(trace), 5) << "1 + 4 beside 5";
  trace.insert(trace.end() - 1, {Kind::Wait, compute, 7, ""});
  EXPECT_EQ(seconds(trace), 10);
}

TEST(Replay, AnEventStandsForItsMoment) {
  EXPECT_EQ(seconds({{Kind::Record, gather, 7, ""},
                     {Kind::Collective, gather, 0, "gather"},
                     {Kind::Wait, compute, 7, ""},
                     {Kind::Work, compute, 0, "call"}}),
            5)
      << "recorded before the collective";
}

TEST(Replay, CollectivesShareTheWire) {
  EXPECT_EQ(seconds({{Kind::Collective, gather, 0, "gather"},
                     {Kind::Collective, 3, 0, "other"}}),
            10);
}

TEST(Replay, AStepBeginsBesideTheOneBefore) {
  // The event of the step before is there before its second call is done.
  const std::vector<TraceItem> step = {{Kind::Wait, gather, 7, "gather"},
                                       {Kind::Collective, gather, 0, "gather"},
                                       {Kind::Record, gather, 8, "gather"},
                                       {Kind::Wait, compute, 8, ""},
                                       {Kind::Work, compute, 0, "call"},
                                       {Kind::Record, compute, 7, ""},
                                       {Kind::Work, compute, 0, "call"}};
  auto of = [&](int steps) {
    return *replay(
        {{step, compute}}, 0,
        [](const std::string &place) {
          return place == "call" ? PlaceSeconds{5, 0, 0}
                                 : PlaceSeconds{0, 0, 4};
        },
        steps);
  };
  EXPECT_EQ(of(1), 4 + 5 + 5);
  EXPECT_EQ(of(2) - of(1), 5 + 5);
}

TEST(Replay, ATransferTakesFromTheComputation) {
  EXPECT_EQ(seconds({{Kind::Collective, gather, 0, "other"},
                     {Kind::Work, compute, 0, "call"}},
                    0.5),
            8);
}

std::optional<double> ofRanks(const std::vector<RankTrace> &ranks) {
  return replay(ranks, 0, [](const std::string &place) {
    return place == "send" ? PlaceSeconds{0, 0, 2} : PlaceSeconds{5, 0, 0};
  });
}

TEST(Replay, AMessageArrivesWhenItIsSent) {
  constexpr int sends = 3;
  const std::vector<TraceItem> from = {{Kind::Work, compute, 0, "call"},
                                       {Kind::Record, compute, 1, "send"},
                                       {Kind::Wait, sends, 1, "send"},
                                       {Kind::Send, sends, 0, "send", "0>1"},
                                       {Kind::Work, compute, 0, "call"}};
  const std::vector<TraceItem> to = {{Kind::Receive, sends, 0, "", "0>1"},
                                     {Kind::Record, sends, 1, ""},
                                     {Kind::Wait, compute, 1, ""},
                                     {Kind::Work, compute, 0, "call"}};
  EXPECT_EQ(ofRanks({{from, compute}, {to, compute}}), 5 + 2 + 5);
  EXPECT_EQ(ofRanks({{to, compute}, {from, compute}}), 5 + 2 + 5)
      << "in whatever order ranks are";
}

TEST(Replay, RanksThatWaitForEachOtherHaveNoTime) {
  const TraceItem sends = {Kind::Send, compute, 0, "send", "0>1"};
  const TraceItem receives = {Kind::Receive, compute, 0, "", "1>0"};
  EXPECT_TRUE(ofRanks({{{sends, receives}, compute},
                       {{{Kind::Send, compute, 0, "send", "1>0"},
                         {Kind::Receive, compute, 0, "", "0>1"}},
                        compute}}));
  EXPECT_FALSE(ofRanks({{{receives, sends}, compute},
                        {{{Kind::Receive, compute, 0, "", "0>1"},
                          {Kind::Send, compute, 0, "send", "1>0"}},
                         compute}}));
}

} // namespace
