//===- RecordTest.cpp - A step's tensors, one by one ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Engine.h"
#include "test/unit/RecordedBytes.h"
#include "test/unit/StepModels.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::stepmodels;

namespace {

/// What is recorded tensor by tensor is what is counted in sums.
TEST(Record, RecordedTensorsAreThePeak) {
  std::mt19937 random(3);
  const Target machine = h100();
  int recorded = 0;
  for (int i = 0; i < 400; ++i) {
    const StepModel model = randomModel(random);
    const Candidate candidate = randomCandidate(model, random);
    StepEvaluator evaluator(model, machine);
    const auto problem = evaluator.record(candidate, 3);
    if (candidate.executor == FrameworkKind::AccelRun) {
      EXPECT_FALSE(problem);
      continue;
    }
    const std::string what =
        std::string(toString(candidate.executor)) + " " + std::to_string(i);
    ASSERT_TRUE(problem) << what;
    ++recorded;
    ASSERT_EQ(replay::verify(*problem), "") << what;
    const StepPrediction p = evaluator.evaluate(candidate);
    const replay::Result result = replay::solve(*problem, {});
    EXPECT_EQ(replay::verify(*problem, {}, result), "") << what;
    EXPECT_EQ(bytesAtPeak(*problem), p.peakBytes) << what;
    if (HasFailure())
      return;
  }
  EXPECT_GT(recorded, 300);
}

/// Of a stream, as tensors are asked for.
int64_t peakOf(const replay::Problem &problem, int stream) {
  std::vector<int64_t> bytes(static_cast<size_t>(problem.tensors), 0);
  int64_t level = 0, peak = 0;
  for (const replay::Event &event : problem.events) {
    if (event.action == replay::Action::Allocate) {
      bytes[event.tensor] = event.stream == stream ? event.bytes : 0;
      level += bytes[event.tensor];
    } else if (event.action == replay::Action::Free) {
      level -= bytes[event.tensor];
    }
    peak = std::max(peak, level);
  }
  return peak;
}

/// The pool of CUDA graphs and the rest have a peak each, and both add up in
/// what the allocator holds.
TEST(Record, GraphsHaveAPoolOfTheirOwn) {
  std::mt19937 random(5);
  Target machine = h100();
  machine.allocatorOverhead = 0;
  machine.allocatorGranularity = 1;
  int replayed = 0;
  for (int i = 0; i < 1200; ++i) {
    const StepModel model = randomModel(random);
    Candidate candidate = randomCandidate(model, random);
    if (!candidate.replaysGraphs ||
        (candidate.executor != FrameworkKind::Single &&
         candidate.executor != FrameworkKind::Ddp))
      continue;
    ++replayed;
    StepEvaluator evaluator(model, machine);
    const auto problem = evaluator.record(candidate, 3);
    ASSERT_TRUE(problem);
    const int64_t graphs = peakOf(*problem, static_cast<int>(Pool::Graphs)),
                  rest = peakOf(*problem, static_cast<int>(Pool::Compute));
    EXPECT_GT(graphs, 0);
    const StepPrediction with = evaluator.evaluate(candidate);
    EXPECT_EQ(with.reservedBytes, graphs + rest) << i;
    candidate.replaysGraphs = false;
    const StepPrediction without = evaluator.evaluate(candidate);
    EXPECT_GE(with.reservedBytes, without.reservedBytes) << i;
    EXPECT_EQ(with.persistentBytes, without.persistentBytes);
    if (HasFailure())
      return;
  }
  EXPECT_GT(replayed, 20);
}

/// A device that is just too small, and one on which idle segments have to go
/// back in every step.
TEST(Record, AFullDevice) {
  const StepModel model = uniformModel(12, {4096, 4096}, 64 << 20);
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  Candidate candidate = uniformCandidate(model, FrameworkKind::Ddp);
  const auto roomy = replayReserved(evaluator, candidate, {});
  ASSERT_TRUE(roomy);
  EXPECT_TRUE(roomy->survives);
  EXPECT_EQ(roomy->retries, 0);
  EXPECT_GE(roomy->reservedBytes, roomy->allocatedBytes);
  const auto full =
      replayReserved(evaluator, candidate, {}, roomy->reservedBytes);
  ASSERT_TRUE(full);
  EXPECT_TRUE(full->survives);
  const auto small =
      replayReserved(evaluator, candidate, {}, roomy->allocatedBytes - 1);
  ASSERT_TRUE(small);
  EXPECT_FALSE(small->survives);
  EXPECT_EQ(small->reservedBytes, roomy->reservedBytes);
}

/// The two devices are played beside each other: each as if it were alone.
TEST(Record, AFullDeviceIsPlayedAsIfAlone) {
  std::mt19937 random(11);
  const Target machine = h100();
  int survived = 0, failed = 0;
  for (int i = 0; i < 800; ++i) {
    const StepModel model = randomModel(random);
    const Candidate candidate = randomCandidate(model, random);
    StepEvaluator evaluator(model, machine);
    replay::AllocatorRules rules;
    rules.expandableSegments = i % 3 == 0;
    const auto roomy = replayReserved(evaluator, candidate, rules);
    if (!roomy || roomy->reservedBytes == 0)
      continue;
    const int64_t idle = roomy->reservedBytes - roomy->allocatedBytes;
    for (int64_t capacity :
         {roomy->reservedBytes - idle / 4 - 1, roomy->allocatedBytes}) {
      const auto both = replayReserved(evaluator, candidate, rules, capacity);
      ASSERT_TRUE(both);
      EXPECT_EQ(both->reservedBytes, roomy->reservedBytes);
      EXPECT_EQ(both->steps, roomy->steps);
      replay::AllocatorRules alone = rules;
      alone.capacityBytes = capacity;
      alone.keptStream = static_cast<int>(Pool::Graphs);
      const auto whole = replay::solve(
          *evaluator.record(candidate, roomy->steps < 3 ? 3 : 6), alone);
      EXPECT_EQ(both->survives, whole.failedEvent < 0) << i;
      if (both->survives)
        EXPECT_EQ(both->retries, std::max<int64_t>(whole.retriesOfLastStep, 1))
            << i;
      ++(both->survives ? survived : failed);
    }
  }
  EXPECT_GT(survived, 50);
  EXPECT_GT(failed, 50);
}

/// The events of each step, where a tensor is called by the order in which the
/// step made it, or first named it where it is older.
std::vector<std::vector<std::array<int64_t, 4>>>
stepsOf(const replay::Problem &problem) {
  std::vector<std::vector<std::array<int64_t, 4>>> steps(1);
  std::vector<int64_t> names(static_cast<size_t>(problem.tensors), 0);
  int64_t made = 0, older = 0;
  for (const replay::Event &event : problem.events) {
    if (event.action == replay::Action::StepEnd) {
      steps.emplace_back();
      std::fill(names.begin(), names.end(), 0);
      made = older = 0;
      continue;
    }
    int64_t &name = names[event.tensor];
    if (event.action == replay::Action::Allocate)
      name = ++made;
    else if (name == 0)
      name = --older;
    steps.back().push_back(
        {static_cast<int64_t>(event.action), event.stream, name, event.bytes});
  }
  steps.pop_back();
  return steps;
}

/// Why a replay may stop where a step changed nothing: the next would not
/// either.
TEST(Record, StepsAreAlikeFromTheSecondOn) {
  std::mt19937 random(5);
  const Target machine = h100();
  int recorded = 0;
  for (int i = 0; i < 400; ++i) {
    const StepModel model = randomModel(random);
    const Candidate candidate = randomCandidate(model, random);
    StepEvaluator evaluator(model, machine);
    const auto problem = evaluator.record(candidate, 4);
    if (!problem)
      continue;
    const auto steps = stepsOf(*problem);
    ASSERT_EQ(steps.size(), 4u);
    EXPECT_EQ(steps[1], steps[2]) << toString(candidate.executor) << " " << i;
    EXPECT_EQ(steps[2], steps[3]) << toString(candidate.executor) << " " << i;
    ++recorded;
  }
  EXPECT_GT(recorded, 300);
}

/// A replay that stops early says what three steps say, or six where the third
/// still asks for segments.
TEST(Record, WhatIsReplayedIsAllThatWouldBe) {
  std::mt19937 random(7);
  const Target machine = h100();
  int compared = 0;
  for (int i = 0; i < 300; ++i) {
    const StepModel model = randomModel(random);
    const Candidate candidate = randomCandidate(model, random);
    StepEvaluator evaluator(model, machine);
    replay::AllocatorRules rules;
    rules.expandableSegments = i % 3 == 0;
    const auto replayed = replayReserved(evaluator, candidate, rules);
    if (!replayed)
      continue;
    for (int steps : {3, 6}) {
      const auto whole =
          replay::solve(*evaluator.record(candidate, steps), rules);
      const auto &peaks = whole.reservedPeakByStep;
      if (steps == 3 && peaks[2] != peaks[1])
        continue;
      EXPECT_EQ(replayed->reservedBytes, whole.statistics.reservedPeak) << i;
      EXPECT_EQ(replayed->allocatedBytes, whole.statistics.allocatedPeak) << i;
      EXPECT_EQ(peaks[static_cast<size_t>(replayed->steps) - 1], peaks.back());
      ++compared;
      break;
    }
  }
  EXPECT_GT(compared, 200);
}

} // namespace
