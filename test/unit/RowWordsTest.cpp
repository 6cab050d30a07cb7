//===- RowWordsTest.cpp - Words of a measured run's columns ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/RowWords.h"
#include "passes/Validate/Validate.h"

#include "test/unit/MeasuredRows.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <tuple>

using namespace accel;
using namespace accel::validate;

namespace {

TEST(RowWords, WordsAndPaths) {
  EXPECT_TRUE(hasWord("lion, 8 gpus", "lion"));
  EXPECT_FALSE(hasWord("a million tokens", "lion"));
  EXPECT_FALSE(hasWord("lionel", "lion"));
  EXPECT_TRUE(hasWord("qlora(nf4-dq)", "nf4"));
  EXPECT_EQ(withoutPaths("a/b 8/64 3.3s/it refs/a100_liger.csv line 2"),
            "a/b 8/64 3.3s/it  line 2");
}

TEST(RowWords, Wrappers) {
  using Kind = FrameworkKind;
  const std::tuple<const char *, const char *, std::optional<Kind>, int>
      cases[] = {{"hf trainer", "zero-3", Kind::Deepspeed, 3},
                 {"hf trainer", "zero3", Kind::Deepspeed, 3},
                 {"hf trainer", "deepspeed zero stage 2", Kind::Deepspeed, 2},
                 {"trainer + deepspeed", "stage-1", Kind::Deepspeed, 1},
                 {"trainer + deepspeed", "ds_z3 offload", Kind::Deepspeed, 3},
                 {"trainer + deepspeed zero3", "none", Kind::Deepspeed, 3},
                 {"trainer + deepspeed", "zero (stage not stated)",
                  Kind::Deepspeed, -1},
                 {"hf trainer", "ds z3", Kind::Deepspeed, 3},
                 {"hf trainer", "stage 3", Kind::Deepspeed, 3},
                 {"hf trainer", "zero-3 offload", Kind::Deepspeed, 3},
                 {"hf trainer", "zero-offload", Kind::Deepspeed, 2},
                 {"hf trainer", "hsdp 2x2", Kind::Fsdp1, -1},
                 {"hf trainer", "fsdp full_shard", Kind::Fsdp1, -1},
                 {"hf trainer", "_hybrid_shard_zero2", Kind::Fsdp1, -1},
                 {"hf trainer", "fsdp (as zero-3)", Kind::Fsdp1, -1},
                 {"hf trainer", "fsdp v2", Kind::Fsdp2, -1},
                 {"hf trainer", "fully_shard", Kind::Fsdp2, -1},
                 {"fsdp2 trainer", "", Kind::Fsdp2, -1},
                 {"hf trainer", "ddp", Kind::Ddp, -1},
                 {"hf trainer", "multi_gpu", Kind::Ddp, -1},
                 {"hf trainer", "dp=8", Kind::Ddp, -1},
                 {"hf trainer", "none", std::nullopt, -1},
                 {"hf trainer", "", std::nullopt, -1}};
  for (const auto &[framework, sharding, executor, stage] : cases) {
    const WrapperWords words = wrapperWords(framework, sharding);
    EXPECT_EQ(words.executor, executor) << framework << ", " << sharding;
    EXPECT_EQ(words.zeroStage.value_or(-1), stage) << sharding;
  }
  EXPECT_TRUE(offloadWords("zero-3 offload optimizer+param").parameters);
  EXPECT_FALSE(offloadWords("zero-2, optimizer offload").parameters);
  EXPECT_TRUE(offloadWords("zero-2, optimizer offload").optimizer);
  EXPECT_TRUE(offloadWords("fsdp + cpu offload").parameters);
  EXPECT_FALSE(offloadWords("fsdp no offload").optimizer);
  EXPECT_FALSE(offloadWords("fsdp activation offload").optimizer);
}

TEST(RowWords, Offload) {
  for (const char *text :
       {"zero-3 + cpu adamw", "zero-3 cpuadam", "zero-3 deepspeedcpuadam",
        "zero-3, optimizer states on cpu",
        "hf trainer optimizer offload, zero-3",
        "zero-3, optimizer offload, no activation offload",
        "zero-3, optimizer offload + activation checkpointing",
        "full-parameter optimizer offload", "no liger + cpu adamw"}) {
    EXPECT_TRUE(offloadWords(text).optimizer) << text;
    EXPECT_FALSE(offloadWords(text).parameters) << text;
  }
  for (const char *text :
       {"zero-3, params and optimizer on host", "zero-3 cpu-offload",
        "offload_params", "zero-3 full offload",
        "activation checkpointing + cpu offload"}) {
    EXPECT_TRUE(offloadWords(text).optimizer) << text;
    EXPECT_TRUE(offloadWords(text).parameters) << text;
  }
  for (const char *text : {"no cpu offload", "without optimizer offload",
                           "offload_optimizer: none", "activation cpu offload",
                           "offloaded activations", "zero-3 w/o offload"})
    EXPECT_FALSE(offloadWords(text).optimizer) << text;
  for (const char *text :
       {"fsdp1, activation offload", "full, activation offloading",
        "offload_activations=true", "activations on the host"})
    EXPECT_TRUE(offloadWords(text).activations) << text;
  for (const char *text :
       {"no activation offload", "zero-3 cpu-offload",
        "activation offload=false", "activation checkpointing + cpu offload"})
    EXPECT_FALSE(offloadWords(text).activations) << text;
  EXPECT_NE(offloadWords("zero-infinity nvme").refused, "");
}

/// Degrees of axes in the spellings of tables.
TEST(RowWords, Meshes) {
  auto of = [](const char *sharding) { return meshWords("own", sharding); };
  for (const char *text :
       {"tp8", "fsdp2 tp=8", "tp: 8", "tp-8", "tp(8)", "tp8pp2", "tp8xpp2",
        "tensor_parallel_size=8", "8-way tp", "tensor parallelism of 8"})
    EXPECT_EQ(of(text).tensor.degree, 8) << text;
  for (const char *text : {"fsdp2=32+asynctp", "etp=4", "no tp", "fsdp=4", ""})
    EXPECT_FALSE(of(text).tensor.named) << text;
  EXPECT_TRUE(of("tp").tensor.named);
  EXPECT_FALSE(of("tp 1f1b").tensor.degree);
  EXPECT_EQ(of("tp8pp2").stages.degree, 2);
  EXPECT_EQ(of("fsdp2 cp2").context.degree, 2);
  for (const char *text :
       {"ep=8", "ep8", "ep 8", "ep-8", "ep size 8", "expert parallel 8",
        "expert_parallel=8", "expert parallelism of 8", "dist-optimizer;ep=8"})
    EXPECT_EQ(of(text).experts.degree, 8) << text;
  for (const char *text :
       {"vp=2", "vpp=2", "vpp2", "interleaved=2", "virtual stages 2",
        "1f1b-interleaved-vpp2", "virtual_pipeline_model_parallel_size=2"})
    EXPECT_EQ(of(text).chunks.degree, 2) << text;
  EXPECT_FALSE(of("vpp2").stages.named);
  for (const char *text : {"zero-1", "zero1", "distributed optimizer",
                           "dist_opt", "use-distributed-optimizer"})
    EXPECT_EQ(of(text).distributedOptimizer, true) << text;
  for (const char *text :
       {"no distributed optimizer", "zero-0", "no zero-1", "zero-1=false",
        "zero-1: off", "distributed_optimizer=none"})
    EXPECT_EQ(of(text).distributedOptimizer, false) << text;
  EXPECT_EQ(of("dp=16").distributedOptimizer, std::nullopt);
  for (const char *text :
       {"no sp", "sp=false", "sequence parallelism=false",
        "sequence parallelism: off", "sequence_parallel=none"}) {
    EXPECT_TRUE(of(text).sequence.refused) << text;
    EXPECT_FALSE(of(text).sequence.named) << text;
  }
  EXPECT_EQ(of("distributed optimizer offload").distributedOptimizer, true);
  EXPECT_TRUE(of("tp=2 sp").sequence.named);
  for (const char *text :
       {"hsdp 2x4", "hsdp=2x4", "dp_replicate=2 dp_shard=4",
        "replicate 2 shard 4", "fsdp2 replicate=2 shard=4",
        "data_parallel_replicate_degree=2 data_parallel_shard_degree=4"}) {
    EXPECT_EQ(of(text).replicas, 2) << text;
    EXPECT_EQ(of(text).shards, 4) << text;
  }
  EXPECT_EQ(of("fsdp1 full_shard=2").shards, 2);
  for (const char *text : {"fsdp 4", "fsdp(4)", "fsdp4", "fsdp of 4"})
    EXPECT_EQ(of(text).shards, 4) << text;
  EXPECT_FALSE(of("fsdp-2").shards) << "a version";
  for (const char *text : {"fsdp 8-way tp", "fsdp 4 nodes", "fsdp 16-mixed"})
    EXPECT_FALSE(of(text).shards) << text;
}

TEST(RowWords, WhatNothingReads) {
  for (const char *text :
       {"fsdp2=8+asynctp+1f1b", "dist-optimizer;ep=8;vp=4", "zero-1 dp=4 ep=4",
        "shard_grad_op", "hsdp=16x128", "zero (stage not stated)", "none", ""})
    EXPECT_TRUE(unreadWords("sharding", text).others.empty() &&
                unreadWords("sharding", text).refused.empty())
        << text;
  for (const char *text :
       {"amp_bf16/default", "bf16(pure)", "fp8-cs", "mxfp8_cublas_rceil",
        "fp8 rowwise with bfloat16 all-gather", "16-mixed"})
    EXPECT_TRUE(unreadWords("precision", text).others.empty() &&
                unreadWords("precision", text).refused.empty())
        << text;
  for (const char *text :
       {"megatron-lm(23e00ed)", "accelerate launch + hf trainer (sft_trainer) "
                                "qlora(nf4) r16 accelerated-peft-bnb-foak"})
    EXPECT_TRUE(unreadWords("framework", text).others.empty()) << text;
  for (const auto &[column, text] :
       {std::pair("sharding", "something"), std::pair("precision", "banana"),
        std::pair("sharding", "gemini"), std::pair("sharding", "fsdp2 xp=4"),
        std::pair("sharding", "fsdp2 ulysses 4")})
    EXPECT_NE(unreadWords(column, text).refused, "") << text;
  EXPECT_EQ(unreadWords("sharding", "fsdp2 banana").others,
            std::vector<std::string>{"banana"});
  RunRow row = plainRow();
  row.sharding = "FSDP2, banana";
  const validate::Run run = interpret(row);
  EXPECT_EQ(run.skipped, "");
  EXPECT_NE(std::find(run.assumptions.begin(), run.assumptions.end(),
                      "'banana' of the column sharding is not read"),
            run.assumptions.end());
}

/// What sharding says of the mesh beside the columns, or is refused for.
TEST(RowWords, MeshesOfRows) {
  RunRow row = plainRow();
  row.sharding = "FSDP2 TP4";
  EXPECT_EQ(interpret(row).mesh.size("tp"), 4);
  row.sharding = "HSDP 2x4";
  EXPECT_EQ(interpret(row).mesh.size("dp_replicate"), 2);
  row.sharding = "replicate 2 shard 4";
  EXPECT_EQ(interpret(row).mesh.size("dp_replicate"), 2);
  row.sharding = "FSDP 4";
  EXPECT_EQ(interpret(row).mesh.size("dp_replicate"), 2);
  const std::vector<std::string> assumed = interpret(row).assumptions;
  EXPECT_EQ(
      std::count(assumed.begin(), assumed.end(),
                 "groups of 4 ranks that shard are replicas of each other"),
      1);
  const std::pair<const char *, const char *> refused[] = {
      {"FSDP2 TP", "degree of tensor parallelism is not stated"},
      {"FSDP2 EP8", "expert parallelism"},
      {"FSDP2 sp=2", "sequence parallelism"},
      {"HSDP 2x8", "not the 8 of samples"},
      {"FSDP 3", "3 ranks that shard by the column sharding do not divide"},
      {"something", "'something' of the column sharding"},
      {"zero9", "no stage 9"},
      {"ZeRO-Infinity NVMe", "NVMe"}};
  for (const auto &[sharding, reason] : refused) {
    row.sharding = sharding;
    EXPECT_NE(interpret(row).skipped.find(reason), std::string::npos)
        << sharding << ": " << interpret(row).skipped;
  }
  row.sharding = "FSDP2 TP4";
  row.tensorParallel = 2;
  EXPECT_NE(interpret(row).skipped.find("column tp"), std::string::npos);
  row = plainRow();
  row.globalBatch = 7;
  EXPECT_NE(interpret(row).skipped.find("no multiple"), std::string::npos);
  row = plainRow();
  row.framework = "Colossal-AI";
  EXPECT_NE(interpret(row).skipped.find("colossal"), std::string::npos);
  row = plainRow();
  row.framework = "Megatron-LM";
  row.tensorParallel = 2;
  row.pipelineParallel = 2;
  row.globalBatch = 64;
  row.sharding = "zero1 VPP2 no SP";
  validate::Run run = interpret(row);
  EXPECT_EQ(run.skipped, "");
  EXPECT_TRUE(run.megatron.distributedOptimizer);
  EXPECT_FALSE(run.megatron.sequenceParallelism);
  EXPECT_EQ(run.megatron.chunks, 2);
  for (const std::string &assumed : run.assumptions)
    EXPECT_EQ(assumed.find("sequence parallelism"), std::string::npos);
  for (const char *sharding :
       {"interleaved", "ZeRO-3", "ZeRO-1 no distributed optimizer", "EP",
        "zbv"}) {
    row.sharding = sharding;
    EXPECT_NE(interpret(row).skipped, "") << sharding;
  }
  row.sharding = "EP 2 distributed optimizer";
  row.model = "Qwen3 MoE 30B";
  run = interpret(row);
  EXPECT_EQ(run.skipped, "");
  EXPECT_EQ(run.megatron.experts, 2);
}

TEST(RowWords, PrecisionAndCheckpoints) {
  for (const char *text :
       {"bf16", "bf16-mixed", "bfloat16 amp", "", "half bf16"})
    EXPECT_EQ(precisionWords(text).compute, plan::DType::BF16) << text;
  for (const char *text : {"fp16", "float16", "fp16-mixed", "16-mixed", "half"})
    EXPECT_EQ(precisionWords(text).compute, plan::DType::F16) << text;
  for (const char *text : {"fp32", "float32", "32-true", "tf32", "no"})
    EXPECT_EQ(precisionWords(text).compute, plan::DType::F32) << text;
  for (const char *text : {"bf16(pure)", "pure bf16", "bf16-true"})
    EXPECT_TRUE(precisionWords(text).pure) << text;
  EXPECT_FALSE(precisionWords("bf16 amp").pure);
  for (const char *text :
       {"gradient_checkpointing", "checkpointing + offload", "unsloth", "on",
        "1", "full", "non-reentrant", "true"})
    EXPECT_EQ(recomputesLayers(text), true) << text;
  for (const char *text : {"", "none", "off", "disabled", "0", "n/a"})
    EXPECT_EQ(recomputesLayers(text), false) << text;
  for (const char *text : {"selective activation checkpointing", "norm, act"})
    EXPECT_EQ(recomputesLayers(text), std::nullopt) << text;
}

TEST(RowWords, Adapters) {
  const std::tuple<const char *, int64_t, size_t> ranks[] = {
      {"trl lora r16", 16, 0},
      {"trl lora r-16", 16, 0},
      {"trl lora (r=64, alpha=16)", 64, 0},
      {"lora rank 8 all-linear", 8, 0},
      {"lora lora_r: 32 q_proj v_proj", 32, 2},
      {"lora r8 q,v", 8, 2},
      {"lora attention r4", 4, 4},
      {"lora", 0, 0}};
  for (const auto &[text, rank, targets] : ranks) {
    const AdapterWords words = adapterWords(text);
    EXPECT_TRUE(words.adapter) << text;
    EXPECT_EQ(words.rank, rank) << text;
    EXPECT_EQ(words.targets.size(), targets) << text;
    EXPECT_EQ(words.allLinear, targets == 0) << text;
    EXPECT_EQ(words.refused, "") << text;
  }
  EXPECT_TRUE(adapterWords("dora r32").magnitude);
  EXPECT_TRUE(adapterWords("dora r32").adapter);
  EXPECT_EQ(adapterWords("lora r8 dropout 0.05").dropout, 0.05);
  EXPECT_FALSE(adapterWords("hf trainer full").adapter);
  EXPECT_EQ(adapterWords("lora (emb)").saved.size(), 2u);
  EXPECT_EQ(otherTraining("trl dpo lora"), "dpo");
  EXPECT_EQ(otherTraining("trl sft lora"), "");
  for (const char *text : {"galore", "lora-fa r32", "ia3", "badam", "lisa full",
                           "freeze-tuning", "loftq r8", "lora r0", "lora r=-4",
                           "lora rank: -4", "lora r8 dropout=-0.1"})
    EXPECT_NE(adapterWords(text).refused, "") << text;
}

TEST(RowWords, Bases) {
  const std::pair<const char *, const char *> formats[] = {
      {"qlora", "nf4"},
      {"qlora(nf4 double quant)", "nf4,double_quant"},
      {"qlora(nf4-dq)", "nf4,double_quant"},
      {"lora fp4", "fp4"},
      {"qlora(bnb int4)", "nf4"},
      {"qlora int4", "gptq,bits=4,group=128"},
      {"qlora(gptq int8)", "gptq,bits=8,group=128"},
      {"lora load_in_8bit", "int8"},
      {"lora llm.int8()", "int8"},
      {"lora adamw_8bit", ""},
      {"full adamw_torch_4bit", ""},
      {"full 4-bit adamw", ""},
      {"full ; none ; bf16, adamw_8bit", ""},
      {"full adamw_bnb_8bit", ""},
      {"lora 8-bit adamw", ""},
      {"lora 8-bit, adamw", "int8"},
      {"lora 8-bit base", "int8"},
      {"qlora paged_adamw_8bit", "nf4"},
      {"qdora r16", "nf4"},
      {"full mxfp4", ""},
      {"lora", ""}};
  for (const auto &[text, format] : formats)
    EXPECT_EQ(quantizationWords(text).format, format) << text;
  EXPECT_EQ(quantizationWords("lora awq").refused, "awq");
  for (const char *text :
       {"lora, quantized base", "lora quantised r8", "quantized dora r16"})
    EXPECT_TRUE(namesQuantizedBase(text)) << text;
  for (const char *text :
       {"lora, unquantized base", "lora no quantization",
        "lora quantization: none", "lora, quantized optimizer states"})
    EXPECT_FALSE(namesQuantizedBase(text)) << text;
  EXPECT_EQ(quantizationWords("lora r16 8-bit", "8-bit").format, "int8");
}

TEST(RowWords, Optimizers) {
  const std::pair<const char *, const char *> names[] = {
      {"full adamw", ""},
      {"full adamw_bnb_8bit", "adamw_8bit"},
      {"full 8-bit adam", "adamw_8bit"},
      {"qlora paged_adamw_8bit", "paged_adamw_8bit"},
      {"qlora paged_adamw_32bit", "paged_adamw_32bit"},
      {"full adafactor", "adafactor"},
      {"full lion", "lion"},
      {"full lion 8-bit", "lion_8bit"},
      {"a million tokens", ""},
      {"full sgd", "sgd"},
      {"full muon", "muon"},
      {"full adamw_torch_4bit", "adamw_torch_4bit"},
      {"full 4-bit adamw", "adamw_torch_4bit"},
      {"full adamw_torch_8bit", "adamw_torch_8bit"},
      {"full adam8bit", "adamw_8bit"},
      {"bf16, adamw_8bit", "adamw_8bit"},
      {"lora load_in_8bit", ""},
      {"full adagrad", "adagrad"},
      {"full rmsprop", "rmsprop"},
      {"full rmsprop_bnb", "rmsprop_bnb"},
      {"full rmsprop_bnb_8bit", "rmsprop_bnb_8bit"},
      {"lora ademamix", "ademamix"},
      {"lora ademamix_8bit", "ademamix_8bit"},
      {"lora paged_ademamix_32bit", "paged_ademamix_32bit"},
      {"lora paged_ademamix_8bit", "paged_ademamix_8bit"}};
  for (const auto &[text, name] : names)
    EXPECT_EQ(optimizerWords(text).name, name) << text;
  EXPECT_EQ(optimizerWords("apollo").refused, "apollo");
}

TEST(RowWords, MonthsAndReleases) {
  EXPECT_EQ(monthIn("a blog, april 2024"), 202404);
  EXPECT_EQ(monthIn("updated apr 12, 2024"), 202404);
  EXPECT_EQ(monthIn("bench_2023-10.md"), 202310);
  EXPECT_EQ(monthIn("20264058880 bytes, 20244 mib"), 0);
  EXPECT_EQ(monthIn("h100"), 0);
  EXPECT_EQ(releasesOf(202404).transformers, "4.40");
  EXPECT_EQ(releasesOf(202404).torch, "2.3");
  EXPECT_EQ(releasesOf(209901).transformers,
            frameworks::Versions().transformers);
  EXPECT_EQ(monthOfTorch("2.1.1"), 202310);
  EXPECT_EQ(monthOfTorch("1.13"), 0);
}

/// What the words make of a row.
TEST(RowWords, Rows) {
  RunRow row = plainRow();
  row.framework = "accelerate launch + TRL SFTTrainer LoRA r8 q_proj v_proj";
  row.sharding = "none";
  row.gpus = 2;
  row.globalBatch.reset();
  row.source = "docs 2023-10";
  validate::Run run = interpret(row);
  EXPECT_EQ(run.executor, FrameworkKind::Ddp) << "nothing shards it";
  EXPECT_EQ(run.transformersVersion, "4.34");
  EXPECT_EQ(run.torchVersion, "2.1");
  EXPECT_EQ(run.adapterDtype, plan::DType::BF16) << "PEFT before 0.12";
  EXPECT_EQ(run.adapter->target.names,
            (std::vector<std::string>{"q_proj", "v_proj"}));
  row.source = "refs/a100_liger.csv [transformers 4.48; nvidia-smi]";
  run = interpret(row);
  EXPECT_FALSE(run.fusedLoss) << "a path is no technique";
  EXPECT_EQ(run.memory, MemoryKind::Device);
  row.source = "[max reserved]";
  EXPECT_EQ(interpret(row).memory, MemoryKind::Reserved);
  row.source = "[peak torch allocated 1, nvidia-smi 2]";
  EXPECT_EQ(interpret(row).memory, MemoryKind::Allocated);
  row.attention = "eager";
  EXPECT_TRUE(interpret(row).eagerAttention);
  EXPECT_EQ(interpret(row).skipped, "");
  row.sharding = "DeepSpeed";
  EXPECT_NE(interpret(row).skipped.find("ZeRO stage"), std::string::npos);
  row.sharding = "DeepSpeed stage 3";
  EXPECT_EQ(interpret(row).zeroStage, 3);
  row.framework = "own loop QLoRA(nf4) r8";
  row.sharding = "FSDP1";
  run = interpret(row);
  EXPECT_EQ(run.skipped, "") << "a loop around transformers' models";
  EXPECT_TRUE(run.ownUnits);
  row.framework = "litgpt QLoRA(nf4)";
  EXPECT_NE(interpret(row).skipped.find("QLoRA"), std::string::npos);
  row.framework = "HF Trainer QLoRA(gptq) accelerated-peft-autogptq";
  EXPECT_NE(interpret(row).skipped.find("GPTQ"), std::string::npos);
  row.source = "fms-acceleration";
  EXPECT_EQ(interpret(row).skipped, "") << "its plugin views the int32";
  row.framework = "TRL SFTTrainer LoRA";
  row.source = "huggingface/peft docs/source/accelerate/fsdp.md";
  row.checkpointing = "full";
  run = interpret(row);
  EXPECT_EQ(run.parameters, plan::DType::F32) << "examples/sft loads in fp32";
  EXPECT_FALSE(run.reentrant);
  EXPECT_EQ(run.memory, MemoryKind::Device);
  row.framework = "TRL SFTTrainer QLoRA";
  EXPECT_TRUE(interpret(row).reentrant);
  row.framework = "HF Trainer full";
  row.precision = "int8";
  EXPECT_NE(interpret(row).skipped.find("full fine-tuning of a base"),
            std::string::npos);
  row.precision = "bf16, adamw_8bit";
  run = interpret(row);
  EXPECT_EQ(run.skipped, "");
  EXPECT_EQ(run.optimizer, "adamw_8bit");
  EXPECT_FALSE(run.adapter || run.quantization);
  row.precision = "bf16";
  row.sharding = "device_map=auto";
  EXPECT_NE(interpret(row).skipped.find("device_map"), std::string::npos);
  row.sharding = "ZeRO-2 offload";
  EXPECT_TRUE(interpret(row).offloadOptimizer);
  EXPECT_FALSE(interpret(row).offloadParameters) << "of stage 3 alone";
  row.framework = "HF Trainer full muon";
  row.sharding = "ZeRO-3";
  EXPECT_EQ(interpret(row).skipped.find(
                "the optimizer 'muon' cannot run under deepspeed: "),
            0u);
  row.sharding = "DDP";
  EXPECT_EQ(interpret(row).skipped, "");
  row.framework = "HF Trainer full adamw_8bit";
  row.sharding = "FSDP2";
  run = interpret(row);
  EXPECT_EQ(run.skipped, "");
  EXPECT_NE(std::find_if(run.assumptions.begin(), run.assumptions.end(),
                         [](const std::string &assumed) {
                           return assumed.starts_with(
                               "the optimizer 'adamw_8bit' stops at its first "
                               "step under FSDP2");
                         }),
            run.assumptions.end());
  row.framework = "HF Trainer quantized DoRA r16";
  EXPECT_NE(interpret(row).skipped.find("format of the quantised base"),
            std::string::npos);
  row.framework = "torchtune full, activation offloading";
  row.attention.clear();
  run = interpret(row);
  EXPECT_EQ(run.skipped, "");
  EXPECT_TRUE(run.activationOffload);
  EXPECT_FALSE(run.optimizerInBackward);
  row.checkpointing = "none";
  EXPECT_NE(interpret(row).skipped.find("offloaded activations of layers"),
            std::string::npos);
  row.checkpointing = "full";
  row.framework = "HF Trainer GaLore";
  EXPECT_NE(interpret(row).skipped.find("galore"), std::string::npos);
}

/// Until 4.45 `logits = logits.float()` gives the 16-bit logits back before the
/// loss, and what the model returns is in fp32: nothing is converted.
TEST(RowWords, LogitsByRelease) {
  RunRow row = plainRow();
  row.model = "llama3-8b";
  row.gpu = "A100-80GB";
  row.gpus = 1;
  row.globalBatch.reset();
  row.sharding = "none";
  row.checkpointing = "full";
  row.sequence = 4096;
  auto bytes = [&](const char *framework, const char *precision,
                   const char *release) {
    row.framework = framework;
    row.precision = precision;
    row.source = std::string("a blog [transformers ") + release + "]";
    const RowResult result = predictRow(row, shipped);
    EXPECT_EQ(result.skipped, "");
    return result.prediction.peakBytes;
  };
  const int64_t narrow = int64_t(4096) * 128256 * 2;
  for (const char *precision : {"bf16(pure)", "bf16 amp"}) {
    const char *lora = "HF Trainer LoRA r16";
    EXPECT_EQ(bytes(lora, precision, "4.46.0") -
                  bytes(lora, precision, "4.45.2"),
              narrow)
        << precision;
  }
  const char *fused = "HF Trainer LoRA r16 foak-fast-kernels";
  EXPECT_EQ(bytes(fused, "bf16 amp", "4.46.0") -
                bytes(fused, "bf16 amp", "4.45.2"),
            narrow);
}

/// int32 that FSDP1 flattens with 16-bit parameters is sharded with them.
TEST(RowWords, PackedWeightsThatAreViewed) {
  RunRow row = plainRow();
  row.model = "mistral-7b";
  row.gpu = "A100-80GB";
  row.framework = "HF Trainer QLoRA(gptq) r16 accelerated-peft-autogptq";
  row.sharding = "FSDP1 FULL_SHARD=2";
  row.precision = "fp16 amp";
  row.checkpointing = "full";
  row.source = "fms-acceleration";
  row.gpus = 2;
  row.globalBatch = 2;
  row.sequence = 1024;
  const int64_t two = predictRow(row, shipped).prediction.peakBytes;
  row.gpus = 8;
  row.globalBatch = 8;
  row.sharding = "FSDP1 FULL_SHARD=8";
  const int64_t eight = predictRow(row, shipped).prediction.peakBytes;
  EXPECT_GT(two - eight, int64_t(1) << 30) << "3/8 of 3.5 GB of packed weights";
}

} // namespace
