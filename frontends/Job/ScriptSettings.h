//===- ScriptSettings.h - What a training script is told --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One typed description of what a script's arguments say, whoever reads them:
// transformers' TrainingArguments, TRL's configurations, axolotl,
// LLaMA-Factory, or single options of accel-opt. frontends/Scripts fills it;
// nothing after it reads an argument's text.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_JOB_SCRIPTSETTINGS_H
#define ACCEL_FRONTENDS_JOB_SCRIPTSETTINGS_H

#include "frontends/Accelerate/Setting.h"
#include "frontends/Job/AdapterConfig.h"
#include "frontends/Job/Fp8Training.h"
#include "runtime/plan/Plan.h"

#include <optional>
#include <string>

namespace accel {

/// Which trainer computes the loss.
enum class TrainerKind {
  None,    // no script is described
  Trainer, // transformers.Trainer: the model's own loss
  Sft,     // TRL's SFTTrainer
  Dpo,     // pairs of sequences, and a reference model
  Grpo     // completions, whose generation is not counted
};
const char *toString(TrainerKind kind); // "Trainer", "SFTTrainer"

/// The frozen weights that a loss of preferences is compared with.
enum class ReferenceModel {
  None,
  Itself, // the trained model without its adapter
  Second  // a model of its own, loaded as the first
};

/// attn_implementation.
enum class AttentionKernel {
  Sdpa,
  Eager, // keeps scores of every pair of tokens
  FlashAttention2,
  FlashAttention3,
  Flex
};
const char *toString(AttentionKernel kernel); // "sdpa", "flash_attention_2"

/// What advice writes for a setting: the argument and its value.
struct ScriptNames {
  std::string microBatch = "per_device_train_batch_size";
  std::string accumulation = "gradient_accumulation_steps";
  std::string checkpointing = "gradient_checkpointing", checkpoints = "true";
  std::string fusedLoss = "use_liger_kernel";
  std::string optim = "optim";
};

/// transformers shards the model itself while it loads it (DistributedConfig).
struct OwnShards {
  int64_t shards = 1, copies = 1; // ranks of a copy, and copies
  int64_t tensor = 1;             // ranks that split each layer
  int64_t experts = 1; // ranks of a copy that share a layer's experts
  bool halves = false; // fsdp_mixed_precision: bf16, reduced in fp32
  bool operator==(const OwnShards &) const = default;
};

struct ScriptSettings {
  TrainerKind trainer = TrainerKind::None;
  /// Whose names advice uses: "TrainingArguments", "SFTConfig", "axolotl",
  /// "LLaMA-Factory".
  std::string owner;
  /// The file of the script's arguments; empty where they stand on a command
  /// line alone.
  std::string file;
  ScriptNames names;
  /// Its fsdp_config is what Accelerate is given.
  bool shards = false;
  /// It tells each rank to use the CPU, whatever the launcher says.
  bool onCpu = false;
  Setting<std::optional<OwnShards>> ownShards;

  Setting<std::string> model; // a folder or a name of the Hub; empty: not given
  Setting<std::optional<int64_t>> microBatch; // sequences on a device
  Setting<std::optional<int64_t>> accumulation;
  /// The most tokens of a sequence.
  Setting<std::optional<int64_t>> sequenceLength;
  /// Sequences that the model reads for one of `microBatch`: 2 of a pair.
  int64_t sequencesPerSample = 1;
  Setting<ReferenceModel> reference;
  /// Log-probabilities of every token of the vocabulary stay, in fp32, and the
  /// reference is loaded in the dtype of computation (LLaMA-Factory).
  bool wholeLogProbabilities = false;
  /// Completions are scored by the trained weights before they are trained on.
  bool scoresItself = false;
  /// What generates completions keeps of each device's memory while a step
  /// trains; nothing: no bytes, or as many as the command line says.
  Setting<std::optional<double>> generationShare;

  Setting<std::string> optim; // as transformers names it; empty: not given
  Setting<std::optional<double>> learningRate, weightDecay, maxGradNorm;
  /// JobConfig::trainable, where the script freezes the other parameters.
  Setting<std::string> trainable;
  /// Every layer is recomputed in the backward by transformers itself.
  Setting<bool> layerCheckpointing;
  /// Of the layers the first, and each that follows after so many.
  Setting<int64_t> checkpointedLayers{1, Origin::Default, "", {}, ""};
  /// That is torch.utils.checkpoint's reentrant form.
  Setting<bool> reentrantCheckpointing;
  /// The inputs of recomputed layers wait in host memory.
  Setting<bool> offloadsCheckpoints;
  /// The loader's batch is dealt to the ranks (accelerator_config).
  Setting<bool> splitsBatches;
  /// The loss is computed in chunks by a fused kernel (Liger).
  Setting<bool> fusedLoss;
  /// torch.compile with Inductor.
  Setting<bool> compiled;
  /// Each repeated layer by itself.
  bool compilesRegions = false;
  /// Its mode replays CUDA graphs.
  Setting<bool> replaysGraphs;
  /// Operands of fp32 matmuls are rounded to TF32.
  Setting<bool> tf32;
  /// The script's own recipe of linear layers in fp8.
  Setting<std::optional<Fp8Recipe>> fp8;
  /// Rows of a chunk of the loss that TRL computes by itself; 0: all at once.
  Setting<int64_t> lossChunkRows;
  /// Coefficient of the experts' load balancing loss, where the model has any;
  /// 0: there is no such loss. Nothing: as config.json says.
  Setting<std::optional<double>> balancing;
  Setting<std::optional<AttentionKernel>> attention;
  Setting<std::optional<int64_t>> ddpBucketBytes;
  /// DDP looks for parameters that a forward did not use; nothing: Trainer
  /// decides by its model.
  Setting<std::optional<bool>> findsUnusedParameters;
  /// Gradients are reduced in every micro-batch.
  Setting<bool> syncEachBatch;
  /// Outside the steps: sequences on a device in evaluation, where there is
  /// any, and seconds that a collective may wait.
  Setting<std::optional<int64_t>> evalBatch;
  bool evaluates = true;
  /// Of predictions that are kept for compute_metrics: batches that stay on the
  /// device (eval_accumulation_steps); whether batches are joined
  /// (eval_do_concat_batches); each is judged by itself (batch_eval_metrics);
  /// or none is kept (prediction_loss_only).
  Setting<std::optional<int64_t>> evalAccumulation;
  bool evalJoins = true, evalEachBatch = false, evalLossOnly = false;
  Setting<std::optional<int64_t>> collectiveTimeout;
  /// Checkpoints have the optimizer's states; not with save_only_model, nor
  /// where only the model is saved at the end (save_strategy: no), without
  /// checkpoints to resume from.
  bool savesStates = true, savesCheckpoints = true;
  Setting<std::optional<plan::DType>> loadDtype;
  /// As --quantize spells it ("nf4,double_quant,storage=bf16"); empty: none.
  Setting<std::string> quantization;
  std::optional<AdapterConfig> adapter;

  bool given() const { return trainer != TrainerKind::None || !owner.empty(); }
};

} // namespace accel

#endif // ACCEL_FRONTENDS_JOB_SCRIPTSETTINGS_H
