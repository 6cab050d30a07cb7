//===- InputsTest.cpp - What a plan is made of ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/driver/Fixture.h"
#include "tools/driver/Inputs/PlanInputs.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::test;

namespace {

class Inputs : public ::testing::Test {
protected:
  std::optional<PlanInputs> read(const PlanOptions &options) {
    engine.emplace();
    return readPlanInputs(options, *engine);
  }
  std::optional<DiagnosticEngine> engine;
};

TEST_F(Inputs, DefaultsAreNoted) {
  PlanOptions options = planOf(fsdp2(8));
  options.sequenceLength.reset();
  auto inputs = read(options);
  ASSERT_TRUE(inputs) << findings(*engine);
  EXPECT_EQ(inputs->training.sequenceLength, 4096);
  EXPECT_EQ(inputs->training.microBatch, 1);
  EXPECT_EQ(inputs->executor, FrameworkKind::Fsdp2);
  EXPECT_TRUE(has(*engine, "default-sequence-length"));
  EXPECT_TRUE(has(*engine, "default-micro-batch"));
}

TEST_F(Inputs, TheCommandLineIsFirst) {
  PlanOptions options = planOf(fsdp2(8));
  options.microBatch = 4;
  options.accumulation = 3;
  options.executor = FrameworkKind::AccelRun;
  auto inputs = read(options);
  ASSERT_TRUE(inputs) << findings(*engine);
  EXPECT_EQ(inputs->training.microBatch, 4);
  EXPECT_EQ(inputs->training.accumulation, 3);
  EXPECT_EQ(inputs->executor, FrameworkKind::AccelRun);
  EXPECT_FALSE(has(*engine, "default-micro-batch"));
}

TEST_F(Inputs, AGlobalBatchIsSplit) {
  PlanOptions options = planOf(fsdp2(8));
  options.microBatch = 2;
  options.globalBatch = 64;
  auto inputs = read(options);
  ASSERT_TRUE(inputs) << findings(*engine);
  EXPECT_EQ(inputs->training.accumulation, 4);
  options.globalBatch = 65;
  EXPECT_FALSE(read(options));
  EXPECT_TRUE(has(*engine, "global-batch"));
}

TEST_F(Inputs, AnExecutorThatCannotRunTheFile) {
  PlanOptions options = planOf(fsdp2(8));
  options.executor = FrameworkKind::Ddp;
  EXPECT_FALSE(read(options));
  EXPECT_TRUE(has(*engine, "executor-choice"));
}

TEST_F(Inputs, TheModelOfAnotherConfigurationIsKept) {
  auto first = read(planOf(fsdp2(8)));
  ASSERT_TRUE(first);
  PlanOptions other = planOf(fsdp2(4));
  DiagnosticEngine ignored;
  auto second = readPlanInputs(other, ignored, &*first);
  ASSERT_TRUE(second) << findings(ignored);
  EXPECT_EQ(second->modelName, "llama-3.2-1b");
  EXPECT_EQ(second->job.accelerate.numProcesses.value, 4);
}

/// A JSON of DeepSpeed that stands for a file is read in its place.
TEST_F(Inputs, TextsStandForFilesThatTheConfigurationNames) {
  PlanOptions options =
      planOf("distributed_type: DEEPSPEED\n"
             "num_machines: 1\n"
             "num_processes: 8\n"
             "deepspeed_config:\n"
             "  deepspeed_config_file: " ACCEL_DRIVER_INPUTS "/zero2.json\n"
             "  zero3_init_flag: false\n");
  auto inputs = read(options);
  ASSERT_TRUE(inputs) << findings(*engine);
  ASSERT_TRUE(inputs->job.accelerate.deepspeed);
  EXPECT_EQ(*inputs->job.accelerate.deepspeed->zeroStage, 2);
  options.texts[ACCEL_DRIVER_INPUTS "/zero2.json"] =
      "{\"zero_optimization\": {\"stage\": 3}, \"bf16\": {\"enabled\": true}}";
  inputs = read(options);
  ASSERT_TRUE(inputs) << findings(*engine);
  EXPECT_EQ(*inputs->job.accelerate.deepspeed->zeroStage, 3);
}

} // namespace
