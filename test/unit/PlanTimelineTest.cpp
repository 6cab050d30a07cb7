//===- PlanTimelineTest.cpp - Bytes, counted by hand ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/LiveBuffers.h"
#include "runtime/plan/Timeline.h"
#include "runtime/plan/Verify.h"
#include "test/unit/PlanFixture.h"

#include <gtest/gtest.h>

using namespace accel::plan;
using test::FunctionBuilder;

namespace {

int64_t sum(const Breakdown &b) {
  return b.parameters + b.gradients + b.optimizer + b.activations + b.logits +
         b.gathered + b.buffers;
}

// x -> a = f(x) [256 B] -> v = view(a) -> b = g(v) [1024 B], workspace 64 ->
// c = h(b) [64 B]. Results come before frees; the view keeps its base.
Function chain() {
  FunctionBuilder f("chain");
  int x = f.input(DType::F32, {64});
  int a = f.make("aten::relu", {x}, DType::F32, {64});
  int v = f.view("aten::view", a, {8, 8});
  int b = f.make("aten::view", {v}, DType::F32, {256}, 0, 64);
  int c = f.make("aten::sum", {b}, DType::F32, {1});
  return f.finish({c});
}

TEST(Timeline, FunctionKeepsStorageWhileAViewLives) {
  Function function = chain();
  // `a` itself ends at the view, its storage when the view ends.
  EXPECT_EQ(function.instructions[1].frees, std::vector<int>{1});
  EXPECT_EQ(function.instructions[2].frees, std::vector<int>{2});
  FunctionProfile kept = profileFunction(function, {0});
  EXPECT_EQ(kept.peakBytes, 256 + 1024);
  EXPECT_EQ(kept.peakTotalBytes, 256 + 1024 + 64);
  EXPECT_EQ(kept.peakInstruction, 2);
  EXPECT_EQ(kept.endBytes, 64);
}

TEST(Timeline, ConsumedInputsLeaveAtTheirLastUse) {
  Function function = chain();
  FunctionProfile given = profileFunction(function, {256});
  EXPECT_EQ(given.peakBytes, 1024) << "x is gone when b comes";
  EXPECT_EQ(given.peakTotalBytes, 1024 + 64);
  EXPECT_EQ(given.endBytes, 64 - 256);
}

TEST(Timeline, ConsumedInputThatIsNeverFreedLeavesAtTheReturn) {
  FunctionBuilder f("late");
  int x = f.input(DType::F32, {64});
  int a = f.make("aten::relu", {x}, DType::F32, {64});
  Function function = f.finish({a});
  function.instructions[0].frees.clear();
  FunctionProfile profile = profileFunction(function, {256});
  EXPECT_EQ(profile.peakBytes, 256);
  EXPECT_EQ(profile.endBytes, 0);
}

TEST(Timeline, AliasesShareOneStorage) {
  // f(x) -> (y, view of y, view of x); x is consumed but its view stays.
  FunctionBuilder f("split");
  int x = f.input(DType::F32, {64});
  int y = f.make("aten::relu", {x}, DType::F32, {128});
  int yv = f.view("aten::view", y, {2, 64});
  int xv = f.view("aten::view", x, {8, 8});
  Plan plan;
  plan.functions = {f.finish({y, yv, xv})};
  Program p;
  p.name = "p";
  p.values = {{"x", DType::F32, {64}, 256},
              {"y", DType::F32, {128}, 512},
              {"yv", DType::F32, {2, 64}, 0, 1},
              {"xv", DType::F32, {8, 8}, 0, 0}};
  p.inputs = {0};
  ProgramInstruction call;
  call.function = 0;
  call.inputs = {0};
  call.consumed = {true};
  call.outputs = {1, 2, 3};
  ProgramInstruction freeY, freeViews;
  freeY.kind = freeViews.kind = ProgramInstructionKind::Free;
  freeY.values = {1};
  freeViews.values = {2, 3};
  p.instructions = {call, freeY, freeViews};
  plan.programs = {p};
  plan.eval = 0;
  predictMemory(plan);
  EXPECT_EQ(verify(plan), std::vector<std::string>{});
  ProgramTimeline timeline = simulate(plan, p, 0);
  EXPECT_EQ(timeline.instructions[0].liveBytes, 256 + 512);
  EXPECT_EQ(timeline.instructions[1].liveBytes, 256 + 512) << "yv holds it";
  EXPECT_EQ(timeline.instructions[2].liveBytes, 0);
  EXPECT_EQ(timeline.peakBytes, 256 + 512);
}

TEST(Timeline, DroppedOutputsLeaveAtTheReturn) {
  FunctionBuilder f("pair");
  int x = f.input(DType::F32, {64});
  int a = f.make("aten::relu", {x}, DType::F32, {128});
  int b = f.make("aten::relu", {x}, DType::F32, {16});
  Plan plan;
  plan.functions = {f.finish({a, b})};
  Program p;
  p.name = "p";
  p.values = {{"x", DType::F32, {64}, 256}, {"b", DType::F32, {16}, 64}};
  p.inputs = {0};
  ProgramInstruction call;
  call.function = 0;
  call.inputs = {0};
  call.consumed = {false};
  call.outputs = {-1, 1};
  p.instructions = {call};
  plan.programs = {p};
  ProgramTimeline timeline = simulate(plan, p, 0);
  EXPECT_EQ(timeline.peakBytes, 256 + 512 + 64);
  EXPECT_EQ(timeline.endBytes, 256 + 64);
}

// The same value in two inputs leaves when the longer one ends.
TEST(Timeline, ValuePassedTwice) {
  FunctionBuilder f("twice");
  int x = f.input(DType::F32, {64}), y = f.input(DType::F32, {64});
  int a = f.make("aten::relu", {x}, DType::F32, {64});
  int b = f.make("aten::view", {a, y}, DType::F32, {64});
  int c = f.make("aten::sum", {b}, DType::F32, {64});
  Plan plan;
  plan.functions = {f.finish({c})};
  Program p;
  p.name = "p";
  p.values = {{"x", DType::F32, {64}, 256}, {"c", DType::F32, {64}, 256}};
  p.inputs = {0};
  ProgramInstruction call;
  call.function = 0;
  call.inputs = {0, 0};
  call.consumed = {true, true};
  call.outputs = {1};
  p.instructions = {call};
  ProgramTimeline timeline = simulate(plan, p, 0);
  // x + a + b at the second instruction; then x and a go.
  EXPECT_EQ(timeline.peakBytes, 3 * 256);
  EXPECT_EQ(timeline.endBytes, 256);
}

class TimelineOfPlan : public ::testing::TestWithParam<test::Size> {};

TEST_P(TimelineOfPlan, BreakdownSumsToThePeak) {
  Plan plan = test::makePlan(GetParam());
  EXPECT_EQ(sum(plan.predicted.breakdown), plan.predicted.peakBytes);
  EXPECT_EQ(plan.predicted.persistentBytes, persistentBytes(plan));
  EXPECT_GE(plan.predicted.peakBytes, plan.predicted.ownPeakBytes);
  EXPECT_GT(plan.predicted.ownPeakBytes, plan.predicted.persistentBytes);
  int64_t shards = 0;
  for (const Unit &unit : plan.units)
    shards += shardNumel(plan, unit) * itemSize(unit.storage);
  EXPECT_EQ(plan.predicted.breakdown.parameters, shards);
  EXPECT_EQ(plan.predicted.breakdown.optimizer, 2 * shards);
  EXPECT_EQ(plan.predicted.persistentBytes, 3 * shards);
}

TEST_P(TimelineOfPlan, EveryProgramIsCarriedOn) {
  Plan plan = test::makePlan(GetParam());
  EXPECT_EQ(verify(plan), std::vector<std::string>{});
  // An instruction leaves the inputs it did not consume and the loss, no more.
  int64_t start = persistentBytes(plan), grads = 0;
  for (const Unit &unit : plan.units)
    grads += roleBytes(plan, unit, Role::ShardGradient);
  for (size_t i = 0; i < plan.step.size(); ++i) {
    const Program &program = plan.programs[plan.step[i].first];
    ProgramTimeline timeline = simulate(plan, program, start + (i ? grads : 0));
    EXPECT_EQ(sum(timeline.breakdown), timeline.peakTotalBytes);
    EXPECT_EQ(timeline.endBytes - 64,
              start + (i + 1 < plan.step.size() ? grads : 0));
    EXPECT_EQ(timeline.peakBytes, program.peakBytes);
    for (const InstructionMemory &instruction : timeline.instructions) {
      EXPECT_LE(instruction.liveBytes, instruction.peakBytes);
      EXPECT_LE(instruction.peakBytes, instruction.peakTotalBytes);
      EXPECT_LE(instruction.peakTotalBytes, timeline.peakTotalBytes);
    }
  }
}

/// Whoever is listed at an instruction holds what the timeline counts there.
TEST_P(TimelineOfPlan, LiveBuffersSumToTheTimeline) {
  Plan plan = test::makePlan(GetParam());
  int64_t start = persistentBytes(plan), grads = 0;
  for (const Unit &unit : plan.units)
    grads += roleBytes(plan, unit, Role::ShardGradient);
  bool carried = false;
  for (size_t i = 0; i < plan.step.size(); ++i) {
    const int index = plan.step[i].first;
    const Program &program = plan.programs[index];
    ProgramTimeline timeline = simulate(plan, program, start + (i ? grads : 0));
    for (size_t s = 0; s < program.instructions.size(); ++s) {
      int64_t bytes = 0;
      for (const LiveBuffer &holder : liveBuffersAt(plan, index, s)) {
        EXPECT_GT(holder.bytes, 0) << holder.kind << " " << holder.name;
        EXPECT_LE(holder.since, static_cast<int>(s));
        carried |= holder.kind == "shard_gradient" && holder.since < 0;
        bytes += holder.bytes;
      }
      EXPECT_EQ(bytes, timeline.instructions[s].peakTotalBytes)
          << program.name << " instruction " << s;
    }
  }
  EXPECT_EQ(carried, plan.step.size() > 1);
}

int64_t liveAt(const Plan &plan, int program, int instruction) {
  int64_t bytes = 0;
  for (const LiveBuffer &holder : liveBuffersAt(plan, program, instruction))
    bytes += holder.bytes;
  return bytes;
}

/// Of an input that is a buffer of the model the run holds the bytes, and no
/// program; one that says otherwise is refused.
TEST_P(TimelineOfPlan, BuffersPersist) {
  const Plan data = test::makePlan(GetParam());
  Plan plan = data;
  const Program &first = plan.programs[plan.step[0].first];
  const Value input = first.values[first.inputs[0]];
  plan.buffers.push_back({input.name, input.shape, input.dtype, false});
  EXPECT_NE(verify(plan), std::vector<std::string>{});
  for (Program &program : plan.programs)
    for (Value &value : program.values)
      if (value.name == input.name)
        value.bytes = 0;
  predictMemory(plan);
  EXPECT_EQ(verify(plan), std::vector<std::string>{});
  ASSERT_EQ(buffersOf(plan, 0).size(), 1u) << "once, whoever reads it";
  EXPECT_EQ(plan.predicted.persistentBytes,
            data.predicted.persistentBytes + input.bytes);
  EXPECT_GE(plan.predicted.ownPeakBytes, data.predicted.ownPeakBytes);
  EXPECT_LE(plan.predicted.ownPeakBytes,
            data.predicted.ownPeakBytes + input.bytes);
  EXPECT_EQ(sum(plan.predicted.breakdown), plan.predicted.peakBytes);
  const int index = plan.step[0].first;
  const ProgramTimeline timeline =
      simulate(plan, plan.programs[index], persistentBytes(plan));
  for (size_t s = 0; s < plan.programs[index].instructions.size(); ++s)
    EXPECT_EQ(liveAt(plan, index, s), timeline.instructions[s].peakTotalBytes);
}

/// What libraries keep is there all the time.
TEST_P(TimelineOfPlan, KeptWorkspacesPersist) {
  const Plan without = test::makePlan(GetParam());
  Plan plan = without;
  plan.keptWorkspaceBytes = 1 << 20;
  predictMemory(plan);
  EXPECT_EQ(verify(plan), std::vector<std::string>{});
  const Predicted &p = plan.predicted, &q = without.predicted;
  EXPECT_EQ(p.persistentBytes, q.persistentBytes + (1 << 20));
  EXPECT_EQ(p.ownPeakBytes, q.ownPeakBytes + (1 << 20));
  EXPECT_EQ(p.peakBytes, q.peakBytes + (1 << 20));
  EXPECT_EQ(p.peakInstruction, q.peakInstruction);
  EXPECT_EQ(liveAt(plan, plan.step[0].first, 0),
            liveAt(without, plan.step[0].first, 0) + (1 << 20));
}

test::Size sized(int64_t ranks, int64_t replicas, int64_t accumulation) {
  test::Size size;
  size.shardRanks = ranks;
  size.replicas = replicas;
  size.accumulation = accumulation;
  return size;
}

INSTANTIATE_TEST_SUITE_P(Sizes, TimelineOfPlan,
                         ::testing::Values(sized(2, 1, 1), sized(3, 2, 1),
                                           sized(2, 2, 2), sized(2, 1, 7)));

// At the head the logits and their gradient live together.
TEST(Timeline, LogitsAreTheirOwnLine) {
  test::Size size;
  size.vocab = 4096;
  size.layers = 1;
  Plan plan = test::makePlan(size);
  EXPECT_EQ(plan.predicted.breakdown.logits, 2 * size.tokens * size.vocab * 4);
  EXPECT_NE(plan.predicted.peakWhere.find("Head.step"), std::string::npos);
}

} // namespace
