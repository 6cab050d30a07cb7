//===- ScriptsTest.cpp - Arguments of training scripts --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/Command.h"
#include "frontends/Scripts/ReadSettings.h"
#include "frontends/Scripts/ScriptJob.h"
#include "frontends/Scripts/TrlConfigs.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <unistd.h>

using namespace accel;
using namespace accel::scripts;
namespace fs = std::filesystem;

namespace {

std::string codes(const DiagnosticEngine &engine) {
  std::string out;
  for (const Diagnostic &d : engine.sorted())
    out += (out.empty() ? "" : " ") + d.code;
  return out;
}

class Scripts : public ::testing::Test {
protected:
  fs::path folder;
  DiagnosticEngine engine;
  ScriptInputs inputs;

  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "argsXXXXXX").string();
    ASSERT_TRUE(mkdtemp(pattern.data()));
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string write(const std::string &name, const std::string &text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return (folder / name).string();
  }
  std::optional<JobConfig> load() {
    return loadScriptJob(inputs, {}, engine).job;
  }
  std::optional<JobConfig> trainer(const std::string &yaml) {
    inputs.trainerFiles = {write("args.yaml", yaml)};
    if (!inputs.processes)
      inputs.processes = 2;
    return load();
  }
};

TEST(ScriptArguments, everyOneHasAMeaning) {
  std::set<std::string> known;
  for (Family family : {Family::Transformers, Family::Trl, Family::LlamaFactory,
                        Family::Axolotl})
    for (const ArgumentInfo &info : argumentsOf(family)) {
      if (info.owner == "fsdp_config")
        continue; // read as the section of Accelerate
      known.insert(std::string(toString(family)) + "." +
                   std::string(info.name));
      EXPECT_TRUE(
          meaningOf(family, info.name) ||
          (family == Family::Trl && meaningOf(Family::Transformers, info.name)))
          << toString(family) << " " << info.name;
    }
  for (const ArgumentMeaning &meaning : allMeanings())
    EXPECT_TRUE(known.count(std::string(toString(meaning.family)) + "." +
                            std::string(meaning.name)))
        << meaning.name;
}

TEST(ScriptArguments, tablesAreWhole) {
  EXPECT_GT(argumentsOf(Family::Transformers).size(), 115u);
  EXPECT_GT(argumentsOf(Family::Accelerate).size(), 115u);
  EXPECT_GT(argumentsOf(Family::Trl).size(), 200u);
  const ArgumentInfo *optim =
      findArgument(Family::Transformers, "TrainingArguments", "optim");
  ASSERT_TRUE(optim);
  EXPECT_EQ(optim->standard, "\"adamw_torch_fused\"");
  EXPECT_EQ(loraTargets("llama"),
            (std::vector<std::string>{"q_proj", "v_proj"}));
  EXPECT_TRUE(loraTargets("unheard").empty());
}

TEST(ScriptArguments, trlsFilesAreAcceleratesOnes) {
  EXPECT_EQ(trlConfigNames(), (std::vector<std::string>{
                                  "fsdp1", "fsdp2", "multi_gpu", "single_gpu",
                                  "zero1", "zero2", "zero3"}));
  for (const std::string &name : trlConfigNames()) {
    DiagnosticEngine found;
    const std::string path = trlConfigFile(name);
    const auto text = trlConfigText(path);
    ASSERT_TRUE(text);
    LoadOptions options;
    options.accelerate.texts[path] = *text;
    const auto job = loadConfig(path, options, found).job;
    ASSERT_TRUE(job) << name << ": " << codes(found);
    EXPECT_FALSE(found.hasErrors()) << name << ": " << codes(found);
    EXPECT_EQ(job->accelerate.mixedPrecision.value, MixedPrecision::Bf16);
  }
  // At the lines of TRL's file, whose first one is a comment.
  EXPECT_EQ(trlConfigText("<TRL's fsdp2.yaml>")->find("\ncompute_environment"),
            0u);
  EXPECT_EQ(trlConfigCopy("<TRL's zero1.yaml>"), "a copy of TRL's zero1.yaml");
  for (const char *other : {"fsdp2", "fsdp2.yaml", "<TRL's .yaml>",
                            "<TRL's zero4.yaml>", "<TRL's zero1.yaml> "})
    EXPECT_FALSE(trlConfigText(other) || trlConfigCopy(other)) << other;
}

TEST_F(Scripts, aRecipeTellsTheLauncher) {
  const std::string recipe = write(
      "sft.yaml", "model_name_or_path: m\ndataset_name: d\nnum_processes: 4\n"
                  "accelerate_config: zero3\n");
  inputs.command = {"trl", "sft", "--config", recipe};
  auto job = load();
  ASSERT_TRUE(job) << codes(engine);
  EXPECT_EQ(*job->accelerate.numProcesses, 4);
  EXPECT_EQ(job->accelerate.numProcesses.at.file, recipe);
  EXPECT_EQ(job->accelerate.numProcesses.at.line, 3);
  ASSERT_TRUE(job->accelerate.deepspeed);
  EXPECT_EQ(*job->accelerate.deepspeed->zeroStage, 3);
  EXPECT_EQ(codes(engine), "no-bytes trl-configuration");
}

TEST_F(Scripts, defaultsAreTrainers) {
  auto job = trainer("output_dir: out\nbf16: true\n");
  ASSERT_TRUE(job) << codes(engine);
  EXPECT_EQ(job->data.microBatch.value, 8);
  EXPECT_EQ(*job->script.optim, "adamw_torch_fused");
  EXPECT_EQ(*job->optimizer.maxGradNorm, 1.0);
  EXPECT_EQ(*job->accelerate.mixedPrecision, MixedPrecision::Bf16);
  EXPECT_EQ(*job->accelerate.strategy, Strategy::Ddp);
  EXPECT_EQ(codes(engine), "no-bytes");
}

TEST_F(Scripts, valuesKnowTheirPlace) {
  auto job = trainer("bf16: true\nper_device_train_batch_size: 4\n");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->data.microBatch.at.line, 2);
  EXPECT_EQ(job->accelerate.mixedPrecision.at.file,
            (folder / "args.yaml").string());
  EXPECT_EQ(job->accelerate.mixedPrecision.at.line, 1);
}

TEST_F(Scripts, fsdpConfigHasItsOwnDefaults) {
  auto job = trainer("bf16: true\nfsdp: true\n"
                     "fsdp_config: {transformer_layer_cls_to_wrap: "
                     "[LlamaDecoderLayer]}\n");
  ASSERT_TRUE(job) << codes(engine);
  EXPECT_EQ(*job->accelerate.strategy, Strategy::Fsdp2);
  EXPECT_FALSE(*job->accelerate.cpuRamEfficientLoading);
  EXPECT_EQ(*job->accelerate.stateDictType, StateDictType::Full);
  ASSERT_TRUE(*job->accelerate.wrapClasses);
  EXPECT_EQ(**job->accelerate.wrapClasses,
            std::vector<std::string>{"LlamaDecoderLayer"});
}

TEST_F(Scripts, bothCheckpointingsStopTrainer) {
  trainer("fsdp: true\nfsdp_config: {activation_checkpointing: true}\n"
          "activation_checkpointing: true\n");
  EXPECT_NE(codes(engine).find("conflicting-arguments"), std::string::npos);
  EXPECT_EQ(engine.outcome(), Outcome::Invalid);
}

TEST_F(Scripts, formerFsdpTextIsOfVersionTwo) {
  trainer("fsdp: hybrid_shard auto_wrap\n");
  EXPECT_EQ(engine.outcome(), Outcome::Invalid);
}

TEST_F(Scripts, whatIsNotModelledIsRefusedByName) {
  for (const char *text :
       {"label_smoothing_factor: 0.1\n", "optim_target_modules: [q_proj]\n"}) {
    DiagnosticEngine one;
    inputs.trainerFiles = {write("args.yaml", text)};
    inputs.processes = 2;
    loadScriptJob(inputs, {}, one);
    EXPECT_EQ(one.outcome(), Outcome::NotSupported) << text << codes(one);
  }
}

TEST_F(Scripts, formerNamesAreErrorsOfTheNewRelease) {
  trainer("evaluation_strategy: epoch\n");
  EXPECT_EQ(codes(engine), "former-argument");
  DiagnosticEngine older;
  inputs.versions.transformers = "4.44.0";
  EXPECT_TRUE(loadScriptJob(inputs, {}, older).job);
  EXPECT_EQ(older.outcome(), Outcome::Ok);
}

TEST_F(Scripts, commandLineGoesBeforeItsFiles) {
  const std::string yaml =
      write("f.yaml", "compute_environment: LOCAL_MACHINE\n"
                      "distributed_type: MULTI_GPU\n"
                      "num_processes: 2\n"
                      "mixed_precision: 'no'\n");
  inputs.command = {"accelerate",
                    "launch",
                    "--config_file",
                    yaml,
                    "--num-processes",
                    "4",
                    "train.py",
                    "--bf16",
                    "--per_device_train_batch_size=2",
                    "--mystery",
                    "7"};
  auto job = load();
  ASSERT_TRUE(job) << codes(engine);
  EXPECT_EQ(*job->accelerate.numProcesses, 4);
  EXPECT_EQ(job->data.microBatch.value, 2);
  EXPECT_EQ(*job->accelerate.mixedPrecision, MixedPrecision::Bf16);
  EXPECT_EQ(job->data.microBatch.at.file, commandLineName);
  EXPECT_EQ(codes(engine), "unknown-argument");
}

TEST_F(Scripts, wrongValuesPointAtTheirWord) {
  inputs.command = {"python", "train.py", "--bf16", "maybe"};
  load();
  const auto found = engine.sorted();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, "invalid-argument");
  EXPECT_EQ(found[0].column, 24);
}

TEST_F(Scripts, torchrunTellsRanks) {
  inputs.command = {"torchrun",   "--nproc_per_node", "8",
                    "--nnodes=2", "train.py",         "--fp16"};
  auto job = load();
  ASSERT_TRUE(job) << codes(engine);
  EXPECT_EQ(*job->accelerate.numProcesses, 16);
  EXPECT_EQ(*job->accelerate.numMachines, 2);
}

TEST_F(Scripts, trlHasItsOwnDefaults) {
  const std::string recipe =
      write("sft.yaml", "model_name_or_path: m\ndataset_name: d\n"
                        "packing: true\nmax_length: 2048\n");
  inputs.command = {"trl", "sft", "--config", recipe, "--num_processes", "2"};
  auto job = load();
  ASSERT_TRUE(job) << codes(engine);
  EXPECT_EQ(job->script.trainer, TrainerKind::Sft);
  EXPECT_TRUE(*job->script.layerCheckpointing);
  EXPECT_EQ(*job->accelerate.mixedPrecision, MixedPrecision::Bf16);
  EXPECT_EQ(*job->script.lossChunkRows, 256);
  EXPECT_EQ(job->data.sequenceLength.value, 2048);
  EXPECT_EQ(job->script.loadDtype.value, plan::DType::F32);
}

TEST_F(Scripts, trlMovesTheInputsOfRecomputedLayers) {
  for (const char *trainer : {"sft", "dpo"})
    for (bool recomputes : {true, false}) {
      const std::string recipe =
          write("moved.yaml", std::string("model_name_or_path: m\n"
                                          "activation_offloading: true\n"
                                          "gradient_checkpointing: ") +
                                  (recomputes ? "true\n" : "false\n"));
      inputs.command = {"trl",  trainer,           "--config",
                        recipe, "--num_processes", "2"};
      DiagnosticEngine found;
      const auto job = loadScriptJob(inputs, {}, found).job;
      if (recomputes)
        EXPECT_TRUE(job && *job->script.offloadsCheckpoints) << trainer;
      else
        EXPECT_NE(codes(found).find("not-supported"), std::string::npos)
            << trainer; // all saved tensors
    }
}

TEST_F(Scripts, theBalancingLossIsTheScripts) {
  auto trl = [&](const std::string &more, const char *version) {
    const std::string recipe =
        write("moe.yaml", "model_name_or_path: m\n" + more);
    inputs.command = {"trl", "sft", "--config", recipe, "--num_processes", "2"};
    inputs.versions.trl = version;
    const auto job = load();
    return job ? *job->script.balancing : std::optional(-1.0);
  };
  EXPECT_EQ(trl("", "1.7.0"), 0.001);
  EXPECT_EQ(trl("router_aux_loss_coef: 0.0\n", "1.7.0"), 0);
  EXPECT_EQ(trl("", "1.6.0"), std::nullopt); // as config.json says
  inputs = {};
  inputs.processes = 2;
  auto axolotl = [&](const std::string &config, DiagnosticEngine &found) {
    inputs.config = write("ax.yaml", "base_model: m\nmicro_batch_size: 1\n"
                                     "gradient_accumulation_steps: 1\n"
                                     "model_config: {" +
                                         config + "}\n");
    const auto job = loadScriptJob(inputs, {}, found).job;
    return job ? *job->script.balancing : std::optional(-1.0);
  };
  DiagnosticEngine right, wrong;
  EXPECT_EQ(axolotl("output_router_logits: true", right), 0.001);
  EXPECT_EQ(axolotl("output_router_logits: false", right), 0);
  axolotl("output_router_logits: true, sliding_window: 4096", wrong);
  EXPECT_EQ(codes(right).find("not-supported"), std::string::npos);
  EXPECT_NE(codes(wrong).find("not-supported"), std::string::npos);
  inputs.config =
      write("lf.yaml", "model_name_or_path: mistralai/Mixtral-8x7B-v0.1\n"
                       "stage: sft\nfinetuning_type: lora\n"
                       "moe_aux_loss_coef: 0.02\n");
  const auto factory = load();
  ASSERT_TRUE(factory) << codes(engine);
  EXPECT_EQ(*factory->script.balancing, 0.02);
}

TEST_F(Scripts, preferencePairsAreTwoSequences) {
  const std::string recipe = write(
      "dpo.yaml", "model_name_or_path: m\nbeta: 0.1\nuse_peft: true\n"
                  "lora_target_modules: [q_proj]\n"
                  "per_device_train_batch_size: 3\nloss_type: [sigmoid]\n");
  inputs.command = {"trl", "dpo", "--config", recipe, "--num_processes", "2"};
  auto job = load();
  ASSERT_TRUE(job) << codes(engine);
  EXPECT_EQ(job->data.microBatch.value, 6);
}

TEST_F(Scripts, factoryHasItsOwnReferenceAndLoss) {
  const char *pair = "model_name_or_path: m\nstage: dpo\nbf16: true\n";
  inputs.command = {"llamafactory-cli", "train", ""};
  inputs.processes = 2;
  auto settings = [&](const std::string &more) {
    inputs.command.back() = write("factory.yaml", pair + more);
    auto job = load();
    EXPECT_TRUE(job) << codes(engine);
    return job ? job->script : ScriptSettings();
  };
  const ScriptSettings full = settings("finetuning_type: full\n");
  EXPECT_EQ(*full.reference, ReferenceModel::Second);
  EXPECT_TRUE(full.wholeLogProbabilities);
  EXPECT_EQ(*settings("finetuning_type: lora\n").reference,
            ReferenceModel::Itself);
  EXPECT_EQ(*settings("finetuning_type: lora\nref_model: m\n").reference,
            ReferenceModel::Second);
  for (const char *loss : {"orpo", "simpo"})
    EXPECT_EQ(*settings("finetuning_type: full\npref_loss: " +
                        std::string(loss) + "\n")
                   .reference,
              ReferenceModel::None);
  EXPECT_FALSE(engine.hasErrors()) << codes(engine);
}

TEST_F(Scripts, transformersShardsByItself) {
  inputs.trainerFiles = {
      write("own.yaml",
            "model_name_or_path: m\nmax_length: 64\nsave_only_model: true\n"
            "model_init_kwargs: {distributed_config: {fsdp_size: 4, "
            "dp_replicate_size: 2, fsdp_mixed_precision: true}}\n")};
  inputs.processes = 8;
  auto job = load();
  ASSERT_TRUE(job) << codes(engine);
  EXPECT_FALSE(engine.hasErrors()) << codes(engine);
  ASSERT_TRUE(job->script.ownShards.value);
  EXPECT_EQ(job->accelerate.mesh->size("dp_shard"), 4);
  EXPECT_EQ(job->accelerate.mesh->size("dp_replicate"), 2);
  EXPECT_EQ(*job->accelerate.strategy, Strategy::Fsdp2);
  EXPECT_EQ(*job->accelerate.restUnits, RestUnits::EmbeddingAndTail);
  EXPECT_EQ(job->precision->param, plan::DType::BF16);
  EXPECT_EQ(job->precision->reduce, plan::DType::F32);
  EXPECT_EQ(job->precision->output, plan::DType::F32);
}

TEST_F(Scripts, someLayersAreRecomputed) {
  inputs.processes = 1;
  auto every = [&](const std::string &count) {
    inputs.trainerFiles = {
        write("t.yaml", "output_dir: o\nactivation_checkpointing: true\n"
                        "activation_checkpointing_kwargs: {every_n_layers: " +
                            count + "}\n")};
    auto job = load();
    return job ? *job->script.checkpointedLayers : int64_t(-1);
  };
  EXPECT_EQ(every("1"), 1);
  EXPECT_EQ(every("3"), 3);
  EXPECT_EQ(every("-3"), 3); // Python's remainder is 0 at the same layers
  EXPECT_FALSE(engine.hasErrors()) << codes(engine);
  every("0");
  EXPECT_TRUE(engine.hasErrors());
}

TEST_F(Scripts, referenceIsASecondModelOrTheFirstWithoutItsAdapter) {
  const char *pair = "model_name_or_path: m\nbeta: 0.1\nloss_type: [sigmoid]\n";
  inputs.command = {"trl", "dpo", "--num_processes", "2", "--config", ""};
  auto reference = [&](const std::string &more) {
    inputs.command.back() = write("dpo.yaml", pair + more);
    auto job = load();
    EXPECT_TRUE(job) << codes(engine);
    return job ? *job->script.reference : ReferenceModel::None;
  };
  EXPECT_EQ(reference(""), ReferenceModel::Second);
  EXPECT_EQ(reference("use_peft: true\nlora_target_modules: [q_proj]\n"),
            ReferenceModel::Itself);
  EXPECT_EQ(reference("precompute_ref_log_probs: true\n"),
            ReferenceModel::None);
}

TEST_F(Scripts, completionsAreScoredByMovedWeights) {
  inputs.command = {
      "trl", "grpo", "--num_processes", "2", "--model_name_or_path", "m"};
  inputs.options = {{"generation_memory", "0", "--generation-memory=0"}};
  auto job = load();
  ASSERT_TRUE(job) << codes(engine);
  EXPECT_FALSE(job->script.scoresItself);
  EXPECT_EQ(*job->script.reference, ReferenceModel::None);
  inputs.command.insert(inputs.command.end(), {"--beta", "0.04", "--use_vllm"});
  job = load();
  ASSERT_TRUE(job) << codes(engine);
  EXPECT_TRUE(job->script.scoresItself);
  EXPECT_EQ(*job->script.reference, ReferenceModel::Second);
}

/// What axolotl's validators refuse, and files that they pass.
TEST_F(Scripts, axolotlStopsWhereItsValidatorsDo) {
  const std::string usual = "base_model: m\nmicro_batch_size: 2\n"
                            "gradient_accumulation_steps: 4\n";
  auto stops = [&](const std::string &more) {
    inputs.config = write("ax.yaml", usual + more);
    inputs.processes = 2;
    DiagnosticEngine found;
    loadScriptJob(inputs, {}, found);
    return codes(found).find("axolotl-stops") != std::string::npos;
  };
  const std::string fsdp2 =
      "fsdp_version: 2\nfsdp_config: {transformer_layer_cls_to_wrap: L}\n";
  const std::string fsdp1 =
      "fsdp_config: {transformer_layer_cls_to_wrap: L, offload_params: true}\n";
  const std::string recomputed = "gradient_checkpointing: true\n";
  for (const std::string &wrong : {
           std::string("batch_size: 8\n"),
           std::string("load_in_4bit: true\n"),
           std::string("adapter: qlora\nload_in_4bit: true\n"
                       "load_in_8bit: true\nlora_target_linear: true\n"),
           std::string("sample_packing: true\nrl: dpo\n"),
           fsdp2 + "optimizer: adamw_bnb_8bit\n",
           fsdp1 + "optimizer: adamw_bnb_8bit\n",
           fsdp1 + "optimizer: muon\n",
           fsdp2 + "rl: dpo\nadapter: qlora\nload_in_4bit: true\n"
                   "lora_target_linear: true\n",
           std::string("fsdp_config: {cpu_offload_pin_memory: false}\n"),
           std::string("fp32_norms: true\n"),
           std::string("activation_offloading: true\n"),
           std::string("cut_cross_entropy: true\nliger_cross_entropy: true\n"),
           std::string("context_parallel_size: 2\n"),
           std::string("deepcompile: true\n"),
           std::string("attn_implementation: sdpa\nflash_attention: true\n"),
           std::string("lr_groups: [{name: a}]\nloraplus_lr_ratio: 2\n"),
           std::string("lora_mlp_kernel: true\ntrust_remote_code: true\n"),
           std::string("peft_layers_pattern: [layers]\n"),
           recomputed + "activation_offloading: legacy\n"
                        "selective_checkpointing: true\n",
           recomputed + "activation_offloading: hidden_states\n"
                        "gradient_checkpointing_kwargs: {use_reentrant: true}\n"
                        "unfrozen_parameters: [lm_head]\n",
           std::string("scaling_softmax: true\nattn_implementation: sdpa\n"),
           std::string("rl: ebft\n"),
       })
    EXPECT_TRUE(stops(wrong)) << wrong;
  for (const std::string &right : {
           std::string(),
           fsdp2 + "optimizer: adamw_torch_8bit\n",
           fsdp2 + "optimizer: muon\n",
           std::string("gradient_checkpointing: true\nrl: dpo\n"),
           std::string("liger_fused_linear_cross_entropy: true\n"),
           std::string("context_parallel_size: 1\n"),
           fsdp1 + "optimizer: adamw_torch\n",
           std::string("trust_remote_code: true\n"),
           recomputed + "activation_offloading: hidden_states\n",
           recomputed + "activation_offloading: true\n",
       })
    EXPECT_FALSE(stops(right)) << right;
}

TEST_F(Scripts, axolotlIsRead) {
  inputs.config = write(
      "ax.yaml",
      "base_model: m\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\n"
      "sequence_len: 4096\nadapter: qlora\nload_in_4bit: true\n"
      "lora_r: 32\nlora_alpha: 16\nlora_target_linear: true\n"
      "optimizer: paged_adamw_8bit\nlearning_rate: 1e-5\nbf16: auto\n"
      "gradient_checkpointing: true\nflash_attention: true\n");
  inputs.processes = 2;
  auto job = load();
  ASSERT_TRUE(job) << codes(engine);
  EXPECT_EQ(job->script.owner, "axolotl");
  EXPECT_EQ(job->data.microBatch.value, 2);
  EXPECT_EQ(*job->accumulation, 4);
  EXPECT_EQ(*job->script.quantization, "nf4,double_quant,storage=bf16");
  ASSERT_TRUE(job->adapter);
  EXPECT_TRUE(job->adapter->allLinear);
  EXPECT_EQ(job->adapter->rank, 32);
  EXPECT_EQ(job->script.loadDtype.value, plan::DType::BF16);
}

/// Phases read the batch and whether anything is evaluated at all.
TEST_F(Scripts, axolotlSaysWhatItEvaluates) {
  inputs.processes = 2;
  auto read = [&](const std::string &more) {
    inputs.config =
        write("ax.yaml", "base_model: m\nmicro_batch_size: 2\n"
                         "gradient_accumulation_steps: 1\nsequence_len: 4096\n"
                         "optimizer: adamw_torch_fused\nlearning_rate: 1e-5\n"
                         "bf16: true\n" +
                             more);
    auto job = load();
    EXPECT_TRUE(job) << codes(engine);
    return job ? job->script : ScriptSettings();
  };
  const std::string held = "val_set_size: 0.05\n";
  const ScriptSettings all = read(held + "evals_per_epoch: 4\n"
                                         "eval_batch_size: 16\n"
                                         "ddp_timeout: 7200\n");
  EXPECT_TRUE(all.evaluates && all.savesStates);
  EXPECT_EQ(all.evalBatch.value, 16);
  EXPECT_EQ(all.collectiveTimeout.value, 7200);
  EXPECT_FALSE(read("").collectiveTimeout.value);
  EXPECT_FALSE(read("").evaluates);
  EXPECT_FALSE(read("eval_steps: 10\n").evaluates) << "nothing is held out";
  EXPECT_FALSE(read(held).evaluates) << "TrainingArguments' default";
  EXPECT_FALSE(read(held + "eval_strategy: \"no\"\n").evaluates);
  EXPECT_TRUE(read(held + "eval_strategy: epoch\n").evaluates);
  EXPECT_FALSE(read(held + "eval_steps: 10\n").evalBatch.value)
      << "the micro-batch";
  EXPECT_FALSE(read("save_only_model: true\n").savesStates);
}

TEST_F(Scripts, llamaFactoryIsRead) {
  inputs.config =
      write("lf.yaml", "model_name_or_path: m\nstage: sft\n"
                       "finetuning_type: lora\nlora_rank: 16\n"
                       "lora_target: all\ncutoff_len: 1024\nbf16: true\n"
                       "per_device_train_batch_size: 1\n");
  inputs.processes = 2;
  auto job = load();
  ASSERT_TRUE(job) << codes(engine);
  EXPECT_EQ(job->script.owner, "LLaMA-Factory");
  EXPECT_TRUE(*job->script.layerCheckpointing);
  ASSERT_TRUE(job->adapter);
  EXPECT_EQ(job->adapter->rank, 16);
  EXPECT_EQ(job->adapter->alpha, 32);
  EXPECT_EQ(job->data.sequenceLength.value, 1024);
}

TEST_F(Scripts, sayNothingTwice) {
  inputs.config = write("job.yaml", "model: m\n");
  inputs.processes = 2;
  EXPECT_FALSE(load());
  EXPECT_EQ(codes(engine), "wrong-file");
}

TEST_F(Scripts, processesMustBeKnown) {
  inputs.trainerFiles = {write("args.yaml", "bf16: true\n")};
  EXPECT_FALSE(load());
  EXPECT_NE(codes(engine).find("no-processes"), std::string::npos);
}

} // namespace
