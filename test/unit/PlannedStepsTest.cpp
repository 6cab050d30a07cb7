//===- PlannedStepsTest.cpp - Steps predicted in threads ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/PlannedSteps.h"
#include "test/unit/StepModels.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::stepmodels;

namespace {

/// Predictions in threads are those of each step alone, in the same order.
TEST(PlannedSteps, AsEachAlone) {
  std::mt19937 random(11);
  const Target machine = h100();
  std::vector<std::shared_ptr<const StepModel>> models;
  for (int i = 0; i < 6; ++i)
    models.push_back(std::make_shared<StepModel>(randomModel(random)));
  std::vector<PlannedStep> steps;
  for (int i = 0; i < 120; ++i) {
    const auto &model = models[i % models.size()];
    steps.push_back({model, randomCandidate(*model, random), {}, i % 3 == 0});
  }
  const int64_t context = 700 << 20, budget = int64_t(80) << 30;
  for (bool replays : {false, true}) {
    const auto all = predictSteps(steps, {machine, context, budget, replays});
    ASSERT_EQ(all.size(), steps.size());
    int replayed = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      StepEvaluator evaluator(*steps[i].model, machine);
      StepPrediction alone = evaluator.evaluate(steps[i].candidate, true);
      if (replays)
        replayInto(alone, evaluator, steps[i].candidate, {}, context, budget,
                   steps[i].onDevice);
      EXPECT_EQ(all[i].peakBytes, alone.peakBytes) << i;
      EXPECT_EQ(all[i].reservedBytes, alone.reservedBytes) << i;
      EXPECT_EQ(all[i].deviceBytes, alone.deviceBytes) << i;
      EXPECT_EQ(all[i].stepSeconds, alone.stepSeconds) << i;
      EXPECT_EQ(all[i].peakWhere, alone.peakWhere) << i;
      replayed += all[i].replayed;
    }
    EXPECT_EQ(replayed > 0, replays);
  }
  EXPECT_TRUE(predictSteps({}, {machine}).empty());
}

} // namespace
