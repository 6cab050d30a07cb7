//===- CompareTest.cpp - Two jobs by what they come to --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Compare/Effect.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace accel;

namespace {

Effect effect(const std::string &name, int layers) {
  Effect e;
  e.name = name;
  e.strategy = "FSDP2";
  e.plan.axes = {{"dp_shard", 2}};
  for (int i = 0; i < layers; ++i) {
    plan::Unit unit;
    unit.name = "model.layers." + std::to_string(i);
    unit.shardAxes = {"dp_shard"};
    unit.numel = unit.padded = 128;
    e.plan.units.push_back(unit);
    e.plan.decisions.push_back(
        {"reshard", unit.name, "freed", "by default", "", 0, 0, {}});
  }
  e.units = unitBytes(e.plan);
  e.prediction.atPeak[0] = 100;
  e.prediction.peakBytes = 100;
  e.prediction.reservedBytes = 120;
  e.prediction.deviceBytes = 150;
  return e;
}

TEST(Compare, EqualJobsDifferInNothing) {
  Comparison c = compare(effect("a", 3), effect("b", 3));
  EXPECT_TRUE(c.units.empty() && c.decisions.empty() && c.numerics.empty());
  double sum = 0;
  for (const FigureChange &row : c.memory)
    sum += row.what == "together" ? -row.a : row.a;
  EXPECT_EQ(sum, 0); // the parts are the whole
  EXPECT_TRUE(c.time.empty());
}

TEST(Compare, LayersAreToldOnceWithTheirCount) {
  Effect a = effect("a", 3), b = effect("b", 3);
  b.plan.decisions[1].choice = "kept";
  Comparison c = compare(a, b);
  ASSERT_EQ(c.decisions.size(), 1u);
  EXPECT_EQ(c.decisions[0].what, "reshard of model.layers.*");
  ASSERT_EQ(c.decisions[0].a.size(), 1u);
  EXPECT_EQ(c.decisions[0].a[0].count, 3);
  ASSERT_EQ(c.decisions[0].b.size(), 2u);
  EXPECT_EQ(c.decisions[0].b[0].count, 2);
  EXPECT_EQ(c.decisions[0].b[1].text, "kept");
}

TEST(Compare, NumericsAreDtypesAndSamples) {
  Effect a = effect("a", 1), b = effect("b", 1);
  b.plan.units[0].gather = plan::DType::BF16;
  b.plan.job.accumulation = 4;
  b.plan.units[0].shardAxes.clear(); // changes no number
  Comparison c = compare(a, b);
  ASSERT_EQ(c.numerics.size(), 2u);
  EXPECT_EQ(c.numerics[0].what, "parameters are computed with in");
  EXPECT_EQ(c.numerics[1].what, "samples of a step");
  EXPECT_EQ(c.numerics[1].b[0].text, "8");
}

TEST(Compare, TimeNeedsBoth) {
  Effect a = effect("a", 1), b = effect("b", 1);
  a.hasTime = true;
  a.prediction.stepSeconds = 2;
  EXPECT_TRUE(compare(a, b).time.empty());
  b.hasTime = true;
  b.prediction.stepSeconds = 1;
  Comparison c = compare(a, b);
  EXPECT_EQ(c.time[0].what, "a step");
  EXPECT_NE(renderComparison(a, b, c).find("-1.00 s"), std::string::npos);
}

TEST(Compare, NamesOfColumnsDiffer) {
  Effect a = effect("x/fsdp.yaml", 1), b = effect("y/fsdp.yaml", 1);
  std::string text = renderComparison(a, b, compare(a, b));
  EXPECT_EQ(text.rfind("A  x/fsdp.yaml: FSDP2 on 2", 0), 0u) << text;
}

} // namespace
