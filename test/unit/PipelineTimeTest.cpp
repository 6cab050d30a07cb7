//===- PipelineTimeTest.cpp - Predicted times of pipelines ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulate/Time.h"
#include "runtime/plan/Chunks.h"
#include "test/unit/PlanFixture.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::plan;

namespace {

Target simpleTarget() {
  Target target;
  target.kind = TargetKind::Cuda;
  target.ranksPerNode = 4;
  target.memoryBytesPerSecond = 1e9;
  target.compute[DType::F32] = {1e9, 0.5, 0.25};
  target.insideNode = {1e8, 1e-4, 1e-3};
  target.betweenNodes = {1e7, 2e-4, 1e-2};
  return target;
}

/// Two stages of one rank each and two micro-batches, forward by forward and
/// backward by backward in turns. A part calls one function of 10 ms; 200 kB go
/// to the other stage.
struct Stages {
  Stages() {
    test::Size size;
    size.layers = 1;
    plan = test::makePlan(size);
    plan.axes = {{pipelineAxis, 2}};
    plan.job.accumulation = 2;
    plan.schedule = oneFOneB;
    plan.functions.resize(1);
    Function &function = plan.functions[0];
    function = {};
    function.name = "f";
    Instruction op;
    op.op = "aten::mm";
    op.flops = 5e6;
    function.instructions = {op};
    plan.step.clear();
    plan.eval = -1;
    plan.programs.assign(2, {});
    plan.stages.resize(2);
    for (int stage = 0; stage < 2; ++stage) {
      Program &program = plan.programs[stage];
      program.name = stage == 0 ? "first" : "second";
      program.stage = stage;
      program.values.resize(2);
      for (Value &value : program.values) {
        value.dtype = DType::F32;
        value.shape = {50'000};
      }
      plan.stages[stage].step = {{stage, 2}};
    }
    fill();
    const StageAction f0{Part::Forward, 0}, f1{Part::Forward, 1},
        b0{Part::Backward, 0}, b1{Part::Backward, 1};
    plan.stages[0].order = {f0, f1, b0, b1};
    plan.stages[1].order = {f0, b0, f1, b1};
    message =
        collectiveSeconds(plan, target, 0, ProgramInstructionKind::AllGather,
                          {pipelineAxis}, 4e5);
  }
  void fill() {
    call(0);
    send(0, 1);
    add(0, ProgramInstructionKind::Pause);
    receive(0, -1);
    add(0, ProgramInstructionKind::Await).timepoint = 0;
    call(0);
    receive(1, 1);
    call(1);
    add(1, ProgramInstructionKind::Pause);
    call(1);
    send(1, -1);
    add(1, ProgramInstructionKind::Await).timepoint = 0;
  }
  ProgramInstruction &add(int stage, ProgramInstructionKind kind) {
    ProgramInstruction &instruction =
        plan.programs[stage].instructions.emplace_back();
    instruction.kind = kind;
    instruction.stream = defaultStream(kind);
    return instruction;
  }
  void call(int stage) {
    add(stage, ProgramInstructionKind::Call).function = 0;
  }
  void send(int stage, int shift) {
    ProgramInstruction &instruction = add(stage, ProgramInstructionKind::Send);
    instruction.shift = shift;
    instruction.timepoint = 0;
    instruction.inputs = {0};
  }
  void receive(int stage, int shift) {
    ProgramInstruction &instruction =
        add(stage, ProgramInstructionKind::Receive);
    instruction.shift = shift;
    instruction.outputs = {1};
  }
  PipelineTime run() {
    return *simulatePipeline(plan, TimeModel(plan, target));
  }
  Plan plan;
  Target target = simpleTarget();
  double message = 0;
};

TEST(PipelineTime, StagesWaitForMessages) {
  Stages stages;
  ASSERT_GT(stages.message, 1e-3);
  ASSERT_LT(stages.message, 10e-3);
  const PipelineTime time = stages.run();
  // The second micro-batch's forward is beside the other stage's first, whose
  // backward waits until its message is sent.
  const double makespan = 60e-3 + 3 * stages.message;
  EXPECT_NEAR(time.step.simulation.makespan, makespan, 1e-12);
  EXPECT_NEAR(time.seconds, makespan, 1e-12);
  const auto &ranks = time.step.simulation.ranks;
  ASSERT_EQ(ranks.size(), 2u);
  ASSERT_EQ(ranks[1].size(), 4u);
  EXPECT_NEAR(ranks[1][0].start, 10e-3 + stages.message, 1e-12);
  EXPECT_NEAR(ranks[1][0].end, 20e-3 + stages.message, 1e-12);
  EXPECT_NEAR(ranks[0][2].start, 30e-3 + 2 * stages.message, 1e-12)
      << "without what it waits for";
  EXPECT_NEAR(ranks[1][1].end, 30e-3 + stages.message, 1e-12)
      << "without what it sends";
  const auto &totals = time.step.simulation.totals;
  EXPECT_NEAR(totals[0].busy, 40e-3, 1e-12);
  EXPECT_NEAR(totals[0].bubble, makespan - 40e-3, 1e-12);
  EXPECT_NEAR(totals[0].gaps, makespan - 40e-3, 1e-12);
  EXPECT_NEAR(totals[1].gaps, stages.message, 1e-12);
}

TEST(PipelineTime, EachMessageHasItsOwnTime) {
  Stages stages;
  const double one = stages.run().seconds;
  for (int stage = 0; stage < 2; ++stage) {
    auto &listed = stages.plan.programs[stage].instructions;
    for (size_t i = 0; i < listed.size(); ++i)
      if (listed[i].kind == ProgramInstructionKind::Send ||
          listed[i].kind == ProgramInstructionKind::Receive) {
        listed.insert(listed.begin() + static_cast<int64_t>(i), listed[i]);
        ++i;
      }
  }
  // Of one channel, one after the other.
  EXPECT_NEAR(stages.run().seconds, one + 3 * stages.message, 1e-12);
  stages.target.measuredCollectives["send 2 ranks 200000 bytes"] = 2e-3;
  EXPECT_NEAR(stages.run().seconds, one - 3 * stages.message + 6 * 2e-3, 1e-12);
}

TEST(PipelineTime, AStageUpdatesBesideTheOthersStep) {
  Stages stages;
  const double without = stages.run().seconds;
  Plan &plan = stages.plan;
  plan.programs.push_back(plan.programs[1]);
  plan.stages[1].step = {{1, 1}, {2, 1}};
  for (int i = 0; i < 3; ++i) { // of the last micro-batch
    ProgramInstruction &update = plan.programs[2].instructions.emplace_back();
    update.kind = ProgramInstructionKind::Optimizer;
    update.unit = 1;
  }
  // Through the first stage's last backward and next forward, and no longer.
  const PipelineTime time = stages.run();
  EXPECT_NEAR(time.seconds, without, 1e-12);
  const pipeline::Span &last = time.step.simulation.ranks[1].back();
  EXPECT_NEAR(last.end - last.start, 10e-3, 1e-12) << "the backward alone";
  plan.programs.push_back(plan.programs[0]);
  plan.stages[0].step = {{0, 1}, {3, 1}};
  plan.programs[3].instructions.push_back(plan.programs[2].instructions.back());
  const double update =
      simulateTime(plan, plan.programs[3], stages.target).seconds -
      simulateTime(plan, plan.programs[0], stages.target).seconds;
  ASSERT_GT(update, 1e-3);
  ASSERT_LT(3 * update, 20e-3);
  EXPECT_NEAR(stages.run().seconds, without + update, 1e-12);
}

TEST(PipelineTime, StagesThatWaitForEachOtherHaveNoTime) {
  Stages stages;
  stages.plan.stages[0].order = {{Part::Forward, 0},
                                 {Part::Backward, 0},
                                 {Part::Forward, 1},
                                 {Part::Backward, 1}};
  stages.plan.stages[1].order = {{Part::Forward, 0},
                                 {Part::Forward, 1},
                                 {Part::Backward, 0},
                                 {Part::Backward, 1}};
  EXPECT_FALSE(
      simulatePipeline(stages.plan, TimeModel(stages.plan, stages.target)));
}

} // namespace
