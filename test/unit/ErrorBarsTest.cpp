//===- ErrorBarsTest.cpp - How far predictions have been off --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/ErrorBars.h"

#include <gtest/gtest.h>
#include <tuple>

using namespace accel;

namespace {

class ErrorBarsOf : public ::testing::TestWithParam<ErrorBars::Figure> {};
constexpr TrainedKind full = TrainedKind::Full;

TEST_P(ErrorBarsOf, IntervalAndProbabilityAreInverse) {
  const ErrorBars bars(GetParam(), {full, "fsdp1", "a100-80gb", 4096});
  EXPECT_TRUE(bars.measured());
  double last = 0;
  for (double level : {0.5, 0.8, 0.9, 0.95}) {
    const ErrorBars::Interval around = bars.interval(level);
    EXPECT_LT(around.low, around.high) << level;
    EXPECT_GE(around.high - around.low, last) << level;
    last = around.high - around.low;
    // Rows of equal ratios reach several levels, of which `below` is the last.
    const double reached = bars.below(around.high);
    EXPECT_GE(reached, (1 + level) / 2 - 1e-9) << level;
    EXPECT_NEAR(bars.interval(2 * reached - 1).high, around.high, 1e-9);
  }
  EXPECT_LE(bars.interval(0.9).low, 1);
  EXPECT_GE(bars.interval(0.9).high, 1);
}

TEST_P(ErrorBarsOf, GrowWithTheFactor) {
  const ErrorBars bars(GetParam(), {full, "fsdp2", "h100-sxm-80gb", 4096});
  double last = 0;
  for (double factor = 0.1; factor < 20; factor *= 1.1) {
    EXPECT_GE(bars.below(factor), last) << factor;
    last = bars.below(factor);
  }
  EXPECT_DOUBLE_EQ(bars.below(1e9), 0.995);
  EXPECT_DOUBLE_EQ(bars.below(0), 0.005);
}

TEST_P(ErrorBarsOf, TheLargestPredictionFitsWithTheLevelAndOneMoreDoesNot) {
  const ErrorBars bars(GetParam(), {full, "fsdp1", "a100-80gb", 4096});
  constexpr int64_t budget = int64_t(32) << 30;
  const auto sure = [&](int64_t predicted) {
    return bars.below(static_cast<double>(budget) /
                      static_cast<double>(predicted));
  };
  int64_t last = budget;
  for (double level : {0.5, 0.8, 0.9, 0.95, 0.995}) {
    const int64_t largest = bars.largestWithin(budget, level);
    EXPECT_LE(largest, last) << level;
    EXPECT_GE(sure(largest), level - 1e-9) << level;
    if (largest < budget) {
      EXPECT_LT(sure(largest + largest / 1000), level) << level;
    }
    last = largest;
  }
  EXPECT_LT(last, budget);
}

TEST_P(ErrorBarsOf, AreWiderWhereNothingWasMeasured) {
  const ErrorBars known(GetParam(), {full, "fsdp1", "a100-80gb", 4096});
  const std::tuple<TrainedKind, const char *, const char *> unmeasured[] = {
      {full, "fsdp1", "own.yaml"},
      {full, "accel-run", "a100-80gb"},
      {TrainedKind::Fp8, "fsdp2", "h100-sxm-80gb"},
      {TrainedKind::Compiled, "fsdp2", "h100-sxm-80gb"}};
  for (auto [kind, framework, target] : unmeasured) {
    const ErrorBars other(GetParam(), {kind, framework, target, 4096});
    // Bars of seconds in fp8 would hold too few of the rows left out.
    const bool measured =
        kind == TrainedKind::Fp8 && GetParam() == ErrorBars::Figure::Bytes;
    EXPECT_EQ(other.measured(), measured);
    EXPECT_LE(other.interval(0.9).low, known.interval(0.9).low);
    EXPECT_GE(other.interval(0.9).high, known.interval(0.9).high);
  }
}

TEST(ErrorBars, OfSmallMicroBatchesSecondsAreLessSure) {
  const ErrorBars::Run large{full, "fsdp1", "a100-80gb", 4096},
      small{full, "fsdp1", "a100-80gb", 256};
  const auto width = [](const ErrorBars &bars) {
    return bars.interval(0.9).high - bars.interval(0.9).low;
  };
  const ErrorBars seconds(ErrorBars::Figure::Seconds, large),
      less(ErrorBars::Figure::Seconds, small);
  EXPECT_FALSE(less.measured());
  EXPECT_GT(width(less), 2 * width(seconds));
  EXPECT_TRUE(ErrorBars(ErrorBars::Figure::Bytes, small).measured());
}

INSTANTIATE_TEST_SUITE_P(Figures, ErrorBarsOf,
                         ::testing::Values(ErrorBars::Figure::Bytes,
                                           ErrorBars::Figure::Seconds));

} // namespace
