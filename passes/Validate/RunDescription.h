//===- RunDescription.h - What a measured run was ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// From a row of a table to what has to be known to plan it: the model, who
// trained it, dtypes, checkpointing, the target, and what its memory figure
// counts. What a row leaves open is filled with the trainer's defaults, each
// with a note; what is not modelled is said with the reason.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_RUNDESCRIPTION_H
#define ACCEL_PASSES_VALIDATE_RUNDESCRIPTION_H

#include "frontends/Job/AdapterConfig.h"
#include "frontends/Job/Fp8Training.h"
#include "frontends/Job/QuantizationConfig.h"
#include "passes/Frameworks/Framework.h"
#include "passes/Replay/Replay.h"
#include "passes/Validate/ModelSizes.h"
#include "passes/Validate/RunTable.h"

#include <functional>

namespace accel::validate {

/// Who trained it, as tables spell them.
enum class Source {
  Torchtitan,
  KempnerForge,
  LlmFoundry,
  FmsFsdp,
  Torchtune,
  Transformers, // under accelerate, the Trainer or DeepSpeed
  Megatron,     // -LM, NeMo, Megatron-Bridge, -DeepSpeed
  Unknown
};
/// Of what a row calls its framework, in lower case.
Source sourceOf(const std::string &name);
const char *toString(Source source);
/// frameworks::findTrainer's name; empty for those without models of their own.
const char *trainerOf(Source source);

/// What the column peak_mem_gib counts.
enum class MemoryKind {
  Reserved,
  Allocated,
  Device // what the driver shows: segments, context and communicators
};

const char *toString(MemoryKind kind); // "reserved"

/// What a row of Megatron's kin says of it, or its source does.
struct MegatronRow {
  bool distributedOptimizer = false, sequenceParallelism = false;
  bool overlaps = false;      // gradients and parameters with computation
  bool coreAttention = false; // before FlashAttention
  int64_t chunks = 1;         // of layers, of each stage
  int64_t experts = 1;        // ranks that share a layer's experts
  int64_t expertTensor = 1;   // ranks that split each of them
  /// As sharding.megatron has them.
  int64_t lastLayers = 0; // of the last chunk; 0: as the others
  bool overlapsTensor = false, sendsOnce = false, overlapsExperts = false;
  bool wideGradients = false;       // reduced in fp32 although they overlap
  plan::RecomputeModules recompute; // MegatronSettings's
  plan::GraphedParts graphs;
  bool expertBiases = false, fusedExperts = false;
  bool shardsParameters = false; // Megatron's own FSDP
  int64_t offloadedLayers = 0;   // cpu_offloading_num_layers
  bool narrowStates = false;     // the optimizer's, in bf16
  int64_t tokenPredictors = 0;   // mtp_num_layers
};

/// What of each layer is recomputed in the backward.
enum class Recompute { None, Selective, Layers };

/// What the script's DeepSpeed file says; without one DeepSpeed's defaults
/// hold, and the script's optimizer.
struct ZeroFile {
  /// Elements; none: "auto", as the other sizes are.
  std::optional<int64_t> reduceBucket;
  bool overlap = false;
  bool ownOptimizer = false; // FusedAdam in place of the script's optimizer
};

struct Run {
  std::string family; // the letters of the id, else the source
  Source source = Source::Unknown;
  ModelSizes sizes;
  std::string config; // a config.json of its own; empty: of `sizes`
  std::string configFile = "config.json"; // where that was read

  FrameworkKind executor = FrameworkKind::Fsdp2;
  plan::Mesh mesh = plan::Mesh::dataParallel();
  int64_t ranksPerNode = 1;
  int64_t microBatch = 1, sequenceLength = 1, accumulation = 1;
  plan::DType parameters = plan::DType::F32; // as the model is made
  plan::DType compute = plan::DType::BF16;
  /// mixed_precision of the configuration; else the model's dtype alone counts.
  bool mixed = true;
  std::optional<plan::DType> reduce; // of the precision policy
  bool autocast = false;
  bool compiled = false;
  bool asyncTensor = false; // exchanges of tp beside matmuls, by torch
  LinearOperands operands = LinearOperands::Computed;
  /// Of torchao, under torchtitan; other trainers' operands are a rate of
  /// matmuls.
  std::optional<Fp8Training> fp8Training;
  std::string torchVersion = frameworks::Versions().torch;
  std::string transformersVersion = frameworks::Versions().transformers;
  std::string accelerateVersion = frameworks::Versions().accelerate;
  /// The script is transformers' Trainer, or one of TRL's.
  bool trainerScript = false;
  bool ownUnits = false;       // of adapters: PEFT's fsdp_auto_wrap_policy
  bool eagerAttention = false; // single matmuls that keep all scores
  bool flashAttention = false; // the package flash-attn
  bool reentrant = false; // checkpoints (JobConfig::reentrantCheckpointing)
  std::vector<frameworks::KernelSet> kernels; // in place of transformers'
  bool fusedLoss = false; // with the output layer, in chunks
  std::optional<AdapterConfig> adapter;
  plan::DType adapterDtype = plan::DType::F32; // by PEFT's release
  std::optional<QuantizationConfig> quantization;
  std::string optimizer; // of runtime/plan/Optimizers.h; empty: AdamW
  Recompute recompute = Recompute::None;
  /// Layers of which `recompute` is true; the others save everything.
  double recomputedShare = 1;
  bool clipGradients = false;
  std::optional<bool> reduceEachMicroBatch; // nothing: as the trainer does
  bool keepGathered = false; // units stay gathered from forward to backward
  bool holdsLogits = false;  // a variable refers to them during the backward
  int zeroStage = 2;         // DeepSpeed
  std::optional<ZeroFile> zeroFile;
  bool offloadParameters = false, offloadOptimizer = false;
  MegatronRow megatron;
  bool activationOffload = false;   // inputs of recomputed layers
  bool optimizerInBackward = false; // each gradient is used and freed at once

  std::string target; // a shipped one
  MemoryKind memory = MemoryKind::Allocated;
  double memoryUnit = 1073741824;   // bytes of one in the column
  replay::AllocatorRules allocator; // as the trainer's launcher sets it
  std::vector<std::string> assumptions;
  /// Why it is not modelled; "" where it is.
  std::string skipped;
};

/// A config.json of one's own.
struct OwnConfig {
  std::string text, file;
};
/// By the model's name in the table; nothing for others.
using ModelSource =
    std::function<std::optional<OwnConfig>(const std::string &)>;

/// `models` goes before the sizes of well-known models.
Run interpret(const RunRow &row, const ModelSource &models = nullptr);

/// The releases that were new in `month` (202412): what a run took that was
/// written about then.
frameworks::Versions releasesOf(int month);
/// The month in which that release of torch came; 0 for one before 2.0.
int monthOfTorch(const std::string &version);

/// When a table of torchtitan was written, as 202412, by its source; far ahead
/// if that does not say.
int monthOfTable(const std::string &source);
/// The nightly that torchtitan pinned in that month.
std::string torchOfTable(int month);

/// The shipped target of a GPU as tables spell it; "" if there is none.
std::string targetOfGpu(const std::string &gpu);

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_RUNDESCRIPTION_H
