//===- PreferenceTest.cpp - Steps that are compared with frozen weights ---===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StepEvaluator.h"
#include "test/unit/RecordedBytes.h"
#include "test/unit/StepModels.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::stepmodels;

namespace {

using Reference = PreferenceStep::Reference;

Candidate randomPreference(const StepModel &model, std::mt19937 &random) {
  Candidate candidate = randomCandidate(model, random);
  while (candidate.executor == FrameworkKind::AccelRun)
    candidate = randomCandidate(model, random);
  PreferenceStep &preference = candidate.preference;
  preference.reference = static_cast<Reference>(random() % 3);
  preference.scoresFirst = random() % 2;
  preference.scoresItself = random() % 2;
  preference.logProbabilities = true;
  preference.whole = random() % 2 && !preference.scoresFirst;
  preference.generationBytes = static_cast<int64_t>(random() % 2) << 20;
  return candidate;
}

/// What is folded is what is run one by one; what is allocated is freed, and is
/// recorded tensor by tensor.
TEST(Preference, FoldedIsExpandedAndRecorded) {
  std::mt19937 random(5);
  const Target machine = h100();
  for (int i = 0; i < 400; ++i) {
    const StepModel model = randomModel(random);
    const Candidate candidate = randomPreference(model, random);
    const std::string what =
        std::string(toString(candidate.executor)) + " " + std::to_string(i);
    StepEvaluator evaluator(model, machine);
    EvaluateOptions expanded;
    expanded.expanded = true;
    const StepPrediction each = evaluator.evaluate(candidate, expanded);
    const StepPrediction p = evaluator.evaluate(candidate);
    EXPECT_EQ(p.peakBytes, each.peakBytes) << what;
    EXPECT_EQ(p.stepSeconds, each.stepSeconds) << what;
    EXPECT_EQ(p.reservedBytes, each.reservedBytes) << what;
    EXPECT_EQ(p.endBytes, p.persistentBytes) << what;
    const auto problem = evaluator.record(candidate, 3);
    ASSERT_TRUE(problem) << what;
    EXPECT_EQ(replay::verify(*problem), "") << what;
    EXPECT_EQ(bytesAtPeak(*problem), p.peakBytes) << what;
    if (HasFailure())
      return;
  }
}

/// A second model beside the first: whole, in shards, or one unit that is
/// gathered whole while the collective's output is still there.
TEST(Preference, SecondModelIsHeldAsItsFrameworkHoldsIt) {
  constexpr int64_t layers = 6, rows = 256, columns = 512;
  const StepModel model = uniformModel(layers, {rows, columns}, 1 << 20);
  const int64_t whole = layers * rows * columns * 4;
  const Target machine = h100();
  auto more = [&](FrameworkKind executor, Reference reference, bool peak) {
    Candidate candidate = uniformCandidate(model, executor);
    if (executor != FrameworkKind::Single && executor != FrameworkKind::Ddp)
      candidate.mesh.resize("dp_shard", 8);
    StepEvaluator evaluator(model, machine);
    const StepPrediction without = evaluator.evaluate(candidate);
    candidate.preference.reference = reference;
    const StepPrediction with = evaluator.evaluate(candidate);
    EXPECT_GT(with.stepSeconds, without.stepSeconds);
    return peak ? with.peakBytes - without.peakBytes
                : with.persistentBytes - without.persistentBytes;
  };
  EXPECT_EQ(more(FrameworkKind::Single, Reference::Second, false), whole);
  EXPECT_EQ(more(FrameworkKind::Ddp, Reference::Second, false), whole);
  EXPECT_EQ(more(FrameworkKind::Fsdp2, Reference::Second, false), whole / 8);
  for (FrameworkKind executor :
       {FrameworkKind::Single, FrameworkKind::Fsdp2, FrameworkKind::Fsdp1})
    EXPECT_EQ(more(executor, Reference::Itself, false), 0)
        << toString(executor);
  EXPECT_GE(more(FrameworkKind::Fsdp2, Reference::Second, true), whole);
}

/// Log-probabilities keep the logits and hold two tensors of their size in the
/// backward, in fp32 where a wrapper converts them; the reference's are there
/// beside a copy for the metrics.
TEST(Preference, LogProbabilitiesHoldTheirGradients) {
  constexpr int64_t logits = 4 << 20, chunk = 1 << 16;
  StepModel model = uniformModel(2, {64, 64}, 0);
  model.sequenceLength = 128 << 10; // a chunk of the metrics is small
  SegmentKind &head = model.kinds.emplace_back(model.kinds.front());
  head.loss = true;
  head.logitsBytes = logits;
  head.variants.front().savedBytes = 2 * logits;
  model.calls.back().kind = 1;
  Candidate candidate = uniformCandidate(model, FrameworkKind::Single);
  candidate.preference.logProbabilities = true;
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  auto peak = [&] { return evaluator.evaluate(candidate).peakBytes; };
  const int64_t plain = peak(); // saved, and two of them
  candidate.dtypes.compute = plan::DType::BF16;
  EXPECT_NEAR(peak() - plain, 0, chunk); // saved and output, and a copy
  candidate.dtypes.outputFloat = true;
  EXPECT_NEAR(peak() - plain, 3 * logits, chunk);
  candidate.preference.reference = Reference::Itself;
  EXPECT_NEAR(peak() - plain, 3 * logits, chunk);
  candidate.dtypes.outputFloat = false;
  EXPECT_NEAR(peak() - plain, logits, chunk);
  EXPECT_EQ(evaluator.evaluate(candidate).endBytes,
            evaluator.evaluate(candidate).persistentBytes);
}

} // namespace
