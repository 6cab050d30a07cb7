//===- PlanOptionsTest.cpp - The command line of plan ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Options/PlanOptions.h"
#include "passes/Pipeline/Phases.h"
#include "tools/options/Arguments.h"

#include <gtest/gtest.h>

using namespace accel;

namespace {

/// What a command line of `plan` becomes, or its error.
class CommandLine : public ::testing::Test {
protected:
  bool parse(std::vector<std::string> words) {
    options = PlanOptions();
    std::vector<char *> pointers;
    for (std::string &word : words)
      pointers.push_back(word.data());
    ::testing::internal::CaptureStderr();
    const bool read = parsePlanOptions(static_cast<int>(pointers.size()),
                                       pointers.data(), options, exitCode);
    const std::string text = ::testing::internal::GetCapturedStderr();
    error = text.substr(0, text.find('\n'));
    return read;
  }
  std::string problem(std::vector<std::string> words) {
    words.insert(words.begin(), "c.yaml");
    EXPECT_FALSE(parse(words));
    EXPECT_EQ(exitCode, exitUsage);
    const std::string start = "accel-opt plan: error: ";
    EXPECT_TRUE(error.starts_with(start)) << error;
    return error.substr(std::min(start.size(), error.size()));
  }

  PlanOptions options;
  int exitCode = 0;
  std::string error;
};

TEST_F(CommandLine, NothingIsGiven) {
  ASSERT_TRUE(parse({"c.yaml"})) << error;
  EXPECT_EQ(options.config, "c.yaml");
  EXPECT_FALSE(options.microBatch || options.memoryBudgetBytes ||
               options.prefetch || options.executor || options.lossChunks ||
               options.tune || options.keepUnsharded || options.ddp ||
               options.optim || options.compileTo || options.compileFrom);
  EXPECT_TRUE(options.emit.empty());
}

TEST_F(CommandLine, EachValueHasItsType) {
  ASSERT_TRUE(parse({"c.yaml",
                     "--memory-budget",
                     "70GiB",
                     "--activation-budget",
                     "0",
                     "--executor",
                     "fsdp2",
                     "--accumulation",
                     "keep_unsharded",
                     "--no-prefetch",
                     "--dim",
                     "batch=4",
                     "--optim",
                     "adafactor",
                     "--tune=all",
                     "--emit",
                     "mlir",
                     "--emit",
                     "schedule",
                     "-o",
                     "out"}))
      << error;
  EXPECT_EQ(options.memoryBudgetBytes, int64_t(70) << 30);
  EXPECT_EQ(options.activationBudgetBytes, 0);
  EXPECT_EQ(options.executor, FrameworkKind::Fsdp2);
  EXPECT_EQ(options.keepUnsharded, true);
  EXPECT_EQ(options.prefetch, 0);
  EXPECT_EQ(options.dims,
            (std::vector<std::pair<std::string, int64_t>>{{"batch", 4}}));
  ASSERT_TRUE(options.optim);
  EXPECT_STREQ(options.optim->name, "adafactor");
  EXPECT_EQ(options.tune, TuneScope::All);
  EXPECT_EQ(options.emit,
            (std::vector<EmitKind>{EmitKind::Mlir, EmitKind::Schedule}));
}

TEST_F(CommandLine, LossChunks) {
  ASSERT_TRUE(parse({"c.yaml", "--loss-chunks", "8"}));
  EXPECT_EQ(options.lossChunks, LossChunks{8});
  ASSERT_TRUE(parse({"c.yaml", "--loss-chunks", "auto"}));
  ASSERT_TRUE(options.lossChunks);
  EXPECT_TRUE(options.lossChunks->isAuto());
  EXPECT_EQ(problem({"--loss-chunks", "0"}),
            "'--loss-chunks 0': expected a number of chunks, 1 or more, or "
            "auto");
}

TEST_F(CommandLine, DdpKwargsAddUp) {
  ASSERT_TRUE(
      parse({"c.yaml", "--ddp-kwargs", "bucket_cap_mb=50,comm_hook=power_sgd",
             "--ddp-kwargs", "gradient_as_bucket_view=true"}))
      << error;
  ASSERT_TRUE(options.ddp);
  EXPECT_EQ(options.ddp->bucketBytes, 50 << 20);
  EXPECT_EQ(options.ddp->commHook, "powersgd");
  EXPECT_TRUE(options.ddp->gradientAsBucketView);
  // torch's default is what is not given.
  ASSERT_TRUE(
      parse({"c.yaml", "--ddp-kwargs", "bucket_cap_mb=50,bucket_cap_mb=25"}));
  EXPECT_FALSE(options.ddp->bucketBytes);
  EXPECT_EQ(problem({"--ddp-kwargs", "bucket_cap=1"}),
            "'--ddp-kwargs bucket_cap=1': 'bucket_cap' is none of "
            "bucket_cap_mb, gradient_as_bucket_view, comm_hook; did you mean "
            "'bucket_cap_mb'?");
}

TEST_F(CommandLine, WhatTheOutputImplies) {
  ASSERT_TRUE(parse({"c.yaml", "-o", "plan.json"}));
  EXPECT_EQ(options.emit, std::vector<EmitKind>{EmitKind::Plan});
  ASSERT_TRUE(parse({"c.yaml", "--emit", "accelerate", "-o", "x"}));
  EXPECT_EQ(options.tune, TuneScope::All);
  ASSERT_TRUE(parse({"c.yaml", "--tune", "--emit", "python", "-o", "x"}));
  EXPECT_EQ(options.tune, TuneScope::Open);
  ASSERT_TRUE(parse({"c.yaml", "--compile-to", "sharded", "-o", "x"}));
  EXPECT_TRUE(options.emit.empty());
  EXPECT_EQ(options.compileTo, Phase::Sharded);
}

TEST_F(CommandLine, OptionsThatContradictEachOther) {
  EXPECT_EQ(problem({"--emit", "plan"}), "--emit needs -o PATH");
  EXPECT_EQ(problem({"--compile-to", "model", "--emit", "plan", "-o", "x"}),
            "--compile-to stops before there is anything to --emit; its MLIR "
            "goes to -o");
  EXPECT_EQ(problem({"--compile-from", "scheduled", "--compile-to", "model"}),
            "--compile-from scheduled comes after --compile-to model");
  EXPECT_EQ(problem({"--compile-from", "model", "--seq-len", "8"}),
            "--seq-len has no effect with --compile-from: the module says it");
  EXPECT_EQ(problem({"--compile-from", "model", "--no-prefetch"}),
            "--no-prefetch has no effect with --compile-from: the module says "
            "it");
  EXPECT_TRUE(problem({"--tune", "--max-batch"}).starts_with("--max-batch"));
  EXPECT_TRUE(problem({"--max-batch", "--micro-batch", "2"})
                  .starts_with("--max-batch looks for the micro-batch"));
  EXPECT_TRUE(problem({"--global-batch", "8", "--grad-accum", "2"})
                  .starts_with("--global-batch and --micro-batch"));
  EXPECT_TRUE(problem({"--tune-precision"}).starts_with("--tune-precision"));
  EXPECT_TRUE(problem({"--max-batch", "--emit", "python", "-o", "x"})
                  .starts_with("--max-batch has no setting"));
}

TEST_F(CommandLine, AChangeIsTakenByItsFlags) {
  ASSERT_TRUE(parse({"c.yaml", "--ddp-kwargs", "bucket_cap_mb=50"}));
  EXPECT_TRUE(setPlanOptions(options, {{"--micro-batch", "4"},
                                       {"--grad-accum", "2"},
                                       {"--loss-chunks", "auto"},
                                       {"--gradient-checkpointing", ""},
                                       {"--ddp-kwargs", "comm_hook=bf16"}}));
  EXPECT_EQ(options.microBatch, 4);
  EXPECT_EQ(options.accumulation, 2);
  EXPECT_TRUE(options.lossChunks->isAuto());
  EXPECT_EQ(options.gradientCheckpointing, true);
  EXPECT_TRUE(setPlanOptions(options, {{"--gradient-checkpointing", "off"}}));
  EXPECT_EQ(options.gradientCheckpointing, false);
  EXPECT_EQ(options.ddp->commHook, "bf16");
  EXPECT_EQ(options.ddp->bucketBytes, 50 << 20);
  EXPECT_FALSE(setPlanOptions(options, {{"--no-such-option", "1"}}));
  EXPECT_FALSE(setPlanOptions(options, {{"--micro-batch", "0"}}));
}

} // namespace
