//===- CompileTest.cpp - From a configuration to a report -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/Compile.h"
#include "passes/Pipeline/Phases.h"
#include "test/unit/driver/Fixture.h"
#include "tools/driver/Inputs/EditFiles.h"
#include "tools/driver/Session/DecidedSteps.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::test;

namespace {

class Compile : public ::testing::Test {
protected:
  CompileResult run(const PlanOptions &options) {
    engine.emplace();
    return compile(options, *engine);
  }
  /// The options with a change's lines and flags.
  PlanOptions taken(PlanOptions options, const tune::ConfigEdit &change) {
    FileEditor editor(options.texts);
    EXPECT_TRUE(editor.set(change.yaml)) << editor.why();
    options.texts = editor.texts();
    EXPECT_TRUE(setPlanOptions(options, change.flags));
    return options;
  }
  /// Each printed change, planned: what was said of it.
  int holdsWhatItSays(const PlanOptions &options) {
    CompileResult first = run(options);
    EXPECT_TRUE(first.valid && first.report.advice) << findings(*engine);
    if (!first.valid || !first.report.advice)
      return 0;
    int count = 0;
    for (const tune::Change &change : first.report.advice->changes) {
      if (change.expression.yaml.empty() && change.expression.flags.empty())
        continue;
      CompileResult second = run(taken(options, change.expression));
      EXPECT_TRUE(second.valid) << change.text << "\n" << findings(*engine);
      const StepPrediction &p = second.report.prediction;
      EXPECT_EQ(p.deviceBytes, change.evaluation.bytes) << change.text;
      EXPECT_EQ(p.stepSeconds, change.evaluation.seconds) << change.text;
      EXPECT_EQ(second.report.fits, change.fits) << change.text;
      ++count;
    }
    return count;
  }

  std::optional<DiagnosticEngine> engine;
};

TEST_F(Compile, AReportWithoutAProgram) {
  CompileResult result = run(planOf(fsdp2(8)));
  ASSERT_TRUE(result.valid) << findings(*engine);
  EXPECT_FALSE(result.program);
  ASSERT_TRUE(result.shown);
  EXPECT_EQ(result.report.title, "llama-3.2-1b");
  EXPECT_EQ(result.report.strategy, "FSDP2");
  EXPECT_EQ(result.report.executor, FrameworkKind::Fsdp2);
  EXPECT_TRUE(result.report.fits.value_or(false));
  EXPECT_GT(result.report.prediction.deviceBytes, int64_t(1) << 30);
  EXPECT_GT(result.report.prediction.stepSeconds, 0);
}

TEST_F(Compile, AProgramWhereItIsAskedFor) {
  PlanOptions options = planOf(fsdp2(8));
  options.emit = {EmitKind::Plan, EmitKind::Mlir, EmitKind::Schedule};
  CompileResult result = run(options);
  ASSERT_TRUE(result.valid) << findings(*engine);
  ASSERT_TRUE(result.program);
  EXPECT_FALSE(result.program->programs.empty());
  EXPECT_TRUE(result.shown->programs.empty());
  EXPECT_NE(result.sharded.find("sharding.job"), std::string::npos);
  EXPECT_NE(result.scheduled.find("schedule.program"), std::string::npos);
}

TEST_F(Compile, TheBudgetIsTheCommandLinesOrTheTargets) {
  PlanOptions options = planOf(fsdp2(8));
  const CompileResult whole = run(options);
  options.memoryBudgetBytes = int64_t(1) << 30;
  const CompileResult small = run(options);
  ASSERT_TRUE(whole.valid && small.valid) << findings(*engine);
  EXPECT_GT(*whole.report.budgetBytes, int64_t(70) << 30);
  EXPECT_EQ(small.report.budgetBytes, int64_t(1) << 30);
  EXPECT_EQ(small.report.fits, false);
  EXPECT_EQ(whole.report.prediction.peakBytes,
            small.report.prediction.peakBytes);
}

TEST_F(Compile, BytesAloneWithoutATarget) {
  PlanOptions options = planOf(fsdp2(8));
  options.target.clear();
  const CompileResult result = run(options);
  ASSERT_TRUE(result.valid) << findings(*engine);
  EXPECT_FALSE(result.report.hasTime);
  EXPECT_FALSE(result.report.fits);
  EXPECT_EQ(result.report.prediction.deviceBytes,
            result.report.prediction.peakBytes);
}

TEST_F(Compile, PhasesStopWhereTheyAreTold) {
  PlanOptions options = planOf(fsdp2(8));
  options.compileTo = Phase::Model;
  CompileResult result = run(options);
  ASSERT_TRUE(result.valid) << findings(*engine);
  EXPECT_NE(result.report.mlir.find("func.func"), std::string::npos);
  EXPECT_EQ(result.report.mlir.find("schedule.program"), std::string::npos);
  options.compileTo = Phase::Scheduled;
  result = run(options);
  ASSERT_TRUE(result.valid) << findings(*engine);
  EXPECT_NE(result.report.mlir.find("schedule.program"), std::string::npos);
}

TEST_F(Compile, ARefusedConfigurationHasNoReport) {
  CompileResult result = run(planOf("distributed_type: FSDP\n"
                                    "fsdp_config: {fsdp_version: three}\n"));
  EXPECT_FALSE(result.valid);
  EXPECT_TRUE(engine->hasErrors());
}

TEST_F(Compile, ChangesHoldWhatTheySayUnderFsdp2) {
  EXPECT_GT(holdsWhatItSays(planOf(fsdp2(2))), 1);
}

TEST_F(Compile, ChangesHoldWhatTheySayUnderAccelRun) {
  PlanOptions options = planOf(fsdp2(8));
  options.executor = FrameworkKind::AccelRun;
  options.microBatch = 4;
  EXPECT_GT(holdsWhatItSays(options), 2);
  options.memoryBudgetBytes = int64_t(12) << 30; // does not fit
  EXPECT_GT(holdsWhatItSays(options), 2);
}

/// What a search shows of a setting is what a plan of its lines says.
TEST_F(Compile, RowsOfASearchHoldWhatTheySay) {
  for (FrameworkKind executor :
       {FrameworkKind::Fsdp2, FrameworkKind::AccelRun}) {
    PlanOptions options = planOf(fsdp2(8));
    options.executor = executor;
    options.microBatch = 4;
    options.tune = TuneScope::All;
    const CompileResult result = run(options);
    ASSERT_TRUE(result.valid && result.report.advice) << findings(*engine);
    const Advice &advice = *result.report.advice;
    PlanOptions again = options;
    again.tune.reset();
    int rows = 0;
    auto check = [&](const tune::Point &point, int64_t bytes, double seconds) {
      tune::ConfigEdit edit;
      std::vector<tune::Knob> notInYaml;
      edit.yaml = advice.editor->lines(point, notInYaml);
      if (!notInYaml.empty())
        return;
      const CompileResult planned = run(taken(again, edit));
      ASSERT_TRUE(planned.valid) << findings(*engine);
      EXPECT_EQ(planned.report.prediction.deviceBytes, bytes);
      EXPECT_EQ(planned.report.prediction.stepSeconds, seconds);
      ++rows;
    };
    for (const Tuned *tuned : {&*advice.tuned, &*advice.yaml}) {
      EXPECT_LE(tuned->result.front.size(), 8u);
      for (const tune::Verdict &row : tuned->result.front)
        check(row.point, row.evaluation.bytes, row.evaluation.seconds);
      for (const tune::Decided &decided : tuned->decisions) {
        if (decided.changed && decided.alone.expression.yaml.size())
          check(decided.alone.point, decided.alone.evaluation.bytes,
                decided.alone.evaluation.seconds);
        if (decided.refused && tuned == &*advice.tuned)
          check(decided.refused->point, decided.refused->evaluation.bytes,
                decided.refused->evaluation.seconds);
      }
    }
    EXPECT_GT(rows, 2) << toString(executor);
  }
}

/// What is verified at the end of each pipeline is valid after each pass.
TEST_F(Compile, EachPassLeavesAValidModule) {
  const std::string offload = fsdp2(8, "  fsdp_offload_params: true\n");
  const std::string ddp = "distributed_type: MULTI_GPU\n"
                          "mixed_precision: fp16\n"
                          "num_processes: 4\n";
  for (const std::string &text : {fsdp2(8), offload, ddp})
    for (bool program : {false, true}) {
      PlanOptions options = planOf(text);
      if (program)
        options.executor = FrameworkKind::AccelRun;
      const CompileResult once = run(options);
      options.verifyEachPass = true;
      const CompileResult each = run(options);
      EXPECT_EQ(once.valid, each.valid) << findings(*engine);
      if (!once.valid || !each.valid)
        continue;
      const std::vector<tune::Change> &a = once.report.advice->changes,
                                      &b = each.report.advice->changes;
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i)
        EXPECT_EQ(a[i].evaluation.bytes, b[i].evaluation.bytes) << a[i].text;
    }
}

TEST_F(Compile, AdviceChangesTheJsonOfDeepspeedWhereItRules) {
  const std::string json = ACCEL_DRIVER_INPUTS "/zero2.json";
  PlanOptions options = planOf("distributed_type: DEEPSPEED\n"
                               "num_machines: 1\n"
                               "num_processes: 8\n"
                               "deepspeed_config:\n"
                               "  deepspeed_config_file: " +
                               json + "\n  zero3_init_flag: false\n");
  // Hooks of modules make stage 3 slower than 2.
  options.texts[json] = R"({"bf16": {"enabled": true},
    "zero_optimization": {"stage": 3},
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": "auto"})";
  EXPECT_GT(holdsWhatItSays(options), 1);
  bool stage = false;
  const auto result = run(options); // outlives the loop over its changes
  for (const tune::Change &change : result.report.advice->changes)
    for (const tune::YamlLine &line : change.expression.yaml) {
      EXPECT_EQ(line.file, json) << line.key;
      stage |= line.key == "zero_optimization.stage";
    }
  EXPECT_TRUE(stage);
}

TEST(Steps, AreMadeOnceForEachBatch) {
  DiagnosticEngine engine;
  const PlanOptions options = planOf(fsdp2(8));
  Session session(options, engine);
  ASSERT_TRUE(session.load()) << findings(engine);
  DecidedSteps steps(session);
  auto one = steps.at(1, 0, 0), two = steps.at(2, 0, 0);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one, steps.at(1, 0, 0));
  EXPECT_NE(one, two);
  EXPECT_EQ(one->model->tokens() * 2, two->model->tokens());
}

TEST(Steps, AChangeThatIsRefusedHasNoFigures) {
  DiagnosticEngine engine;
  const PlanOptions options = planOf(fsdp2(8));
  Session session(options, engine);
  ASSERT_TRUE(session.load()) << findings(engine);
  DecidedSteps steps(session);
  const std::vector<tune::ConfigEdit> edits = {
      {},
      {{{"distributed_type", "NONE", "c.yaml"}}, ""},
      {{{"a", "b", "elsewhere.yaml"}}, ""},
      {{}, "", {{"--micro-batch", "none"}}},
      {}};
  const auto planned = steps.planAgain(edits);
  ASSERT_EQ(planned.size(), edits.size());
  ASSERT_TRUE(planned.front() && planned.back());
  EXPECT_EQ(planned.front()->deviceBytes, planned.back()->deviceBytes);
  for (size_t i = 1; i + 1 < edits.size(); ++i)
    EXPECT_FALSE(planned[i]) << i;
  // What was tried leaves no trace.
  EXPECT_FALSE(engine.hasErrors()) << findings(engine);
}

} // namespace
