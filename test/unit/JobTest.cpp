//===- JobTest.cpp - job.yaml ---------------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Job/JobConfig.h"
#include "runtime/plan/Optimizers.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace accel;
namespace fs = std::filesystem;

namespace {

class Job : public ::testing::Test {
protected:
  fs::path folder;
  DiagnosticEngine engine;

  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "jobXXXXXX").string();
    ASSERT_TRUE(mkdtemp(pattern.data()));
    folder = pattern;
    fs::create_directories(folder / "model");
    write("model/config.json", "{}");
    write("fsdp.yaml", "distributed_type: FSDP\nnum_processes: 2\n"
                       "mixed_precision: bf16\n"
                       "fsdp_config:\n  fsdp_version: 2\n"
                       "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n");
    write("train.bin", std::string(2 * 1025, 'x'));
  }
  void TearDown() override { fs::remove_all(folder); }

  void write(const std::string &name, const std::string &text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  LoadedConfig load(const std::string &text, LoadOptions options = {}) {
    write("job.yaml", text);
    return loadConfig((folder / "job.yaml").string(), options, engine);
  }
  std::string findings() const {
    std::string out;
    for (const Diagnostic &d : engine.sorted())
      out += (out.empty() ? "" : "; ") + d.code + " " + std::to_string(d.line) +
             " " + d.key;
    return out;
  }
  const std::string base = "accelerate: fsdp.yaml\nmodel: model\n"
                           "data: {tokens: train.bin, sequence_length: 1024}\n";
};

TEST_F(Job, MinimalHasTheDefaults) {
  LoadedConfig loaded = load(base);
  EXPECT_EQ(findings(), "");
  ASSERT_TRUE(loaded.job);
  EXPECT_EQ(loaded.outcome, Outcome::Ok);
  const JobConfig &job = *loaded.job;
  EXPECT_TRUE(job.isJob);
  EXPECT_EQ(*job.model, (folder / "model").string());
  EXPECT_EQ(job.data.kind.value, DataKind::Tokens);
  EXPECT_EQ(*job.data.path, (folder / "train.bin").string());
  EXPECT_EQ(**job.data.sequenceLength, 1024);
  EXPECT_FALSE(job.data.microBatch->has_value());
  EXPECT_EQ(*job.data.dtype, "uint16");
  EXPECT_EQ(*job.accumulation, 1);
  EXPECT_EQ(plan::numberOf(job.optimizer.resolved(), "betas", 1), 0.999);
  EXPECT_EQ(*job.optimizer.weightDecay, 0.01);
  EXPECT_EQ(*job.schedule.decay, "constant");
  EXPECT_EQ(*job.checkpoint.dir, "");
  EXPECT_EQ(*job.activationCheckpointing, Checkpointing::Pointwise);
  EXPECT_EQ(job.precision->reduce, plan::DType::BF16);
  EXPECT_EQ(*job.accelerate.numProcesses, 2);
}

TEST_F(Job, EverythingGiven) {
  write("a.npy", "");
  write("val.bin", std::string(4 * 200, 'x'));
  LoadedConfig loaded = load(
      "accelerate: fsdp.yaml\nmodel: model\ninit: {seed: 7}\n"
      "trainable: 'lora_'\n"
      "data: {arrays: {input_ids: a.npy, labels: a.npy}, micro_batch: 2, "
      "shuffle: true, seed: 3}\n"
      "eval: {tokens: val.bin, dtype: uint32, sequence_length: 100, every: "
      "10, batches: 4}\n"
      "gradient_accumulation_steps: 4\n"
      "optimizer: {name: adamw, lr: 3e-4, betas: [0.9, 0.95], eps: 1.0e-8, "
      "weight_decay: 0.1, max_grad_norm: 1.0, groups: [{match: norm, "
      "weight_decay: 0.0}, {match: bias, lr: 1.0e-3}]}\n"
      "schedule: {steps: 1000, warmup_steps: 100, decay: cosine, min_lr: "
      "3.0e-5}\n"
      "checkpoint: {dir: out, every: 200, keep: 3, state_dict: full}\n"
      "target: h100-sxm-80gb\n"
      "precision: {param: bf16, reduce: fp32, output: bf16}\n"
      "activation_checkpointing: none\n");
  EXPECT_EQ(findings(), "");
  const JobConfig &job = *loaded.job;
  EXPECT_EQ(job.init->kind, InitConfig::Kind::Seed);
  EXPECT_EQ(job.init->seed, 7);
  EXPECT_EQ(job.data.arrays.at("labels").value, (folder / "a.npy").string());
  EXPECT_TRUE(job.eval.present);
  EXPECT_EQ(*job.eval.data.dtype, "uint32");
  EXPECT_EQ(**job.eval.data.microBatch, 2); // as in data
  EXPECT_EQ(*job.optimizer.lr, 3e-4);
  EXPECT_EQ(job.optimizer.lr.why, ""); // not the default's reason
  EXPECT_EQ(job.optimizer.weightDecay.why, "");
  ASSERT_EQ(job.optimizer.groups.size(), 2u);
  EXPECT_EQ(**job.optimizer.groups[0].weightDecay, 0.0);
  EXPECT_FALSE(job.optimizer.groups[0].lr->has_value());
  EXPECT_EQ(**job.optimizer.groups[1].lr, 1e-3);
  EXPECT_EQ(*job.checkpoint.dir, (folder / "out").string());
  EXPECT_EQ(*job.checkpoint.stateDict, "full");
  EXPECT_EQ(job.precision->reduce, plan::DType::F32);
  EXPECT_EQ(job.precision->upcast, Upcast::Trainable);
  EXPECT_EQ(*job.activationCheckpointing, Checkpointing::None);
}

TEST_F(Job, AccelerateKeysMayStandInline) {
  LoadedConfig below = load("accelerate:\n  distributed_type: MULTI_GPU\n"
                            "  num_processes: 4\nmodel: model\n"
                            "data: {text: train.bin}\n");
  EXPECT_EQ(findings(), "");
  EXPECT_EQ(below.job->accelerate.numProcesses.key, "accelerate.num_processes");
  EXPECT_EQ(below.job->accelerate.numProcesses.at.line, 3);
  LoadedConfig beside = load("distributed_type: MULTI_GPU\nnum_processes: 4\n"
                             "model: model\ndata: {text: train.bin}\n"
                             "optimiser: {}\n");
  EXPECT_EQ(findings(), "unknown-key 5 optimiser");
  EXPECT_EQ(engine.all()[0].hint, "did you mean 'optimizer'?");
  EXPECT_EQ(*beside.job->accelerate.strategy, Strategy::Ddp);
}

TEST_F(Job, UnknownKeysAreErrors) {
  load(base + "optimizer: {learning_rate: 1, betas: [0.9, 0.95]}\n"
              "shedule: {}\n");
  EXPECT_EQ(findings(), "unknown-key 4 optimizer.learning_rate; "
                        "unknown-key 5 shedule");
  EXPECT_EQ(engine.outcome(), Outcome::Invalid);
}

TEST_F(Job, TypesAndRanges) {
  load(base + "gradient_accumulation_steps: 0\n"
              "optimizer:\n  lr: .nan\n  eps: -1\n  weight_decay: '0.1'\n"
              "  betas: [0.9, 1.0]\n  max_grad_norm: [1]\n"
              "  groups: {match: x}\n"
              "schedule:\n  steps: 1.5\n  warmup_steps: -1\n  decay: cosin\n"
              "checkpoint: {dir: 7}\n"
              "activation_checkpointing: no\n"
              "precision: {param: fp8}\n");
  EXPECT_EQ(findings(),
            "invalid-value 4 gradient_accumulation_steps; "
            "invalid-value 6 optimizer.lr; invalid-value 7 optimizer.eps; "
            "invalid-value 8 optimizer.weight_decay; "
            "invalid-value 9 optimizer.betas; "
            "invalid-value 10 optimizer.max_grad_norm; "
            "invalid-value 11 optimizer.groups; "
            "invalid-value 13 schedule.steps; "
            "invalid-value 14 schedule.warmup_steps; "
            "invalid-value 15 schedule.decay; invalid-value 16 checkpoint.dir; "
            "invalid-value 17 activation_checkpointing; "
            "invalid-value 18 precision.param");
}

TEST_F(Job, MissingFilesAreNamedAtTheirLine) {
  load("accelerate: nothere.yaml\nmodel: nomodel\n"
       "data: {tokens: nodata.bin}\ntarget: ./my.yaml\n");
  EXPECT_EQ(findings(), "file-not-found 1 accelerate; file-not-found 2 model; "
                        "file-not-found 3 data.tokens; "
                        "file-not-found 4 target");
}

TEST_F(Job, FilesAreNotOpenedOnRequest) {
  LoadOptions options;
  options.checkFiles = false;
  load("accelerate: fsdp.yaml\nmodel: nomodel\ndata: {tokens: no.bin}\n",
       options);
  EXPECT_EQ(findings(), "");
}

TEST_F(Job, StepsOfALineOfTheLog) {
  EXPECT_EQ(*load(base).job->loggingSteps, 1);
  EXPECT_EQ(*load(base + "logging_steps: 25\n").job->loggingSteps, 25);
  EXPECT_EQ(findings(), "");
  load(base + "logging_steps: 0\n");
  EXPECT_EQ(findings(), "invalid-value 4 logging_steps");
  EXPECT_EQ(engine.all()[0].message,
            "logging_steps must be a positive integer, this is 0");
}

TEST_F(Job, QuotesAreNamedWhereTheyAreWhatIsWrong) {
  load(base + "logging_steps: \"25\"\n");
  EXPECT_EQ(engine.all()[0].hint, "remove the quotes");
}

TEST_F(Job, OtherTextHasNoQuotesToRemove) {
  load(base + "logging_steps: \"soon\"\n");
  EXPECT_EQ(findings(), "invalid-value 4 logging_steps");
  EXPECT_EQ(engine.all()[0].hint, "");
}

TEST_F(Job, LinesOfTheLogAreOfWholeSteps) {
  load(base + "logging_steps: 2.5\n");
  EXPECT_EQ(findings(), "invalid-value 4 logging_steps");
}

TEST_F(Job, DataShorterThanOneSample) {
  load("accelerate: fsdp.yaml\nmodel: model\n"
       "data: {tokens: train.bin, sequence_length: 1025}\n");
  EXPECT_EQ(findings(), "data-size 3 data.tokens");
}

TEST_F(Job, DataOfHalfATokenMore) {
  write("odd.bin", "12345");
  load("accelerate: fsdp.yaml\nmodel: model\n"
       "data: {tokens: odd.bin, sequence_length: 1}\n");
  EXPECT_EQ(findings(), "data-size 3 data.tokens");
}

TEST_F(Job, DataOfOneKindOnly) {
  load("accelerate: fsdp.yaml\nmodel: model\n"
       "data: {tokens: train.bin, text: train.bin}\n");
  EXPECT_EQ(findings(), "invalid-value 3 data.text");
}

TEST_F(Job, RequiredParts) {
  LoadedConfig loaded = load("model: model\n");
  EXPECT_EQ(findings(), "missing-key 1 accelerate; missing-key 1 data");
  EXPECT_FALSE(loaded.job);
}

TEST_F(Job, SchedulesThatCannotBeMeant) {
  load(base + "optimizer: {lr: 1.0e-4}\nschedule:\n  decay: linear\n"
              "  min_lr: 1.0e-3\n");
  EXPECT_EQ(findings(),
            "missing-key 6 schedule.decay; invalid-value 7 schedule.min_lr");
}

TEST_F(Job, OptimizersToCome) {
  EXPECT_TRUE(load(base + "optimizer: {name: sgd}\n").job);
  LoadedConfig loaded = load(base + "optimizer: {name: adamax}\n");
  EXPECT_EQ(loaded.outcome, Outcome::NotSupported);
}

TEST_F(Job, PlainAccelerateFiles) {
  LoadedConfig loaded = loadConfig((folder / "fsdp.yaml").string(), {}, engine);
  EXPECT_EQ(findings(), "");
  ASSERT_TRUE(loaded.job);
  EXPECT_FALSE(loaded.job->isJob);
  EXPECT_EQ(*loaded.job->accelerate.strategy, Strategy::Fsdp2);
  EXPECT_EQ(*loaded.job->optimizer.lr, 1e-3);
}

TEST_F(Job, CheckpointingOfTheYamlIsFull) {
  write("fsdp.yaml", "distributed_type: FSDP\nnum_processes: 2\n"
                     "fsdp_config:\n  fsdp_version: 2\n"
                     "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
                     "  fsdp_activation_checkpointing: true\n");
  LoadedConfig loaded = load(base);
  EXPECT_EQ(*loaded.job->activationCheckpointing, Checkpointing::Full);
  EXPECT_EQ(loaded.job->activationCheckpointing.at.line, 6);
}

TEST_F(Job, NotAMapping) {
  EXPECT_EQ(load("- a\n").outcome, Outcome::Invalid);
  EXPECT_EQ(findings(), "not-a-mapping 0 ");
}

} // namespace
