//===- JobConfig.h - job.yaml -----------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A job.yaml says what accel-run needs beyond the accelerate keys: model, data,
// optimizer, schedule, checkpoints, target. It is our own format, so unknown
// keys and wrong types are errors. Paths are resolved against the file.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_JOB_JOBCONFIG_H
#define ACCEL_FRONTENDS_JOB_JOBCONFIG_H

#include "frontends/Accelerate/AccelerateConfig.h"
#include "frontends/Job/AdapterConfig.h"
#include "frontends/Job/LossChunks.h"
#include "frontends/Job/QuantizationConfig.h"
#include "frontends/Job/ScriptSettings.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/UpdateKernel.h"

#include <map>

namespace accel {

enum class DataKind { None, Tokens, Text, Npy, Arrays };
const char *toString(DataKind kind); // "tokens", as in plan::Data

/// A file of tokens among several.
struct DataFileConfig {
  Setting<std::string> path;             // resolved
  Setting<std::optional<double>> weight; // share of the samples
  Setting<std::string> starts;           // of documents; resolved, or empty
};

struct DataConfig {
  Setting<DataKind> kind;
  Setting<std::string> path;         // of one file of tokens; resolved
  std::vector<DataFileConfig> files; // in place of `path`
  std::map<std::string, Setting<std::string>> arrays; // by input name; resolved
  Setting<std::string> dtype; // of raw tokens: uint16, uint32, ...
  Setting<std::optional<int64_t>> sequenceLength;
  Setting<std::optional<int64_t>>
      targetLength;                           // of an encoder-decoder's labels
  Setting<std::optional<int64_t>> microBatch; // samples per rank
  Setting<bool> shuffle;
  Setting<int64_t> seed;
  /// The token that ends a document; nothing: none does.
  Setting<std::optional<int64_t>> endOfDocument;
  /// Accelerate's meanings; what an epoch's end does without both is said by
  /// plan::Data::epochEnd.
  Setting<bool> splitBatches, dropLast, evenBatches;
  bool hasDocuments() const;
};

struct EvalConfig {
  bool present = false;
  DataConfig data;          // lengths default to the training data's
  Setting<int64_t> every;   // steps; 0: at the end alone
  Setting<int64_t> batches; // micro-batches per rank; 0: all
  Setting<std::vector<std::string>> metrics; // accuracy, perplexity
  Setting<std::string> predictions;          // a file; resolved, or empty
};

struct InitConfig {
  enum class Kind {
    Automatic, // pretrained if weights are there, else seed 0
    Pretrained,
    Seed
  };
  Kind kind = Kind::Automatic;
  int64_t seed = 0;
};

struct OptimizerGroupConfig {
  Setting<std::string> match; // regex searched in FQNs; the first
                              // group that matches counts
  Setting<std::optional<double>> lr;
  Setting<std::optional<double>> weightDecay;
};

struct OptimizerConfig {
  Setting<std::string> name; // of runtime/plan/Optimizers.h
  Setting<double> lr;
  /// Hyperparameters of the optimizer's description that are given.
  std::map<std::string, Setting<std::vector<double>>> values;
  Setting<double> weightDecay;
  Setting<double> maxGradNorm; // 0: no clipping
  std::vector<OptimizerGroupConfig> groups;
  /// What frameworks launch; nothing: the description's default.
  std::optional<plan::UpdateKernel> kernel;
  /// Of states that the description keeps in the parameter's dtype.
  std::optional<plan::DType> stateDtype;
  plan::UpdateHabits habits;

  /// The optimizer with the defaults of its description.
  void setDefaults(const plan::OptimizerDescription &description);
  /// As the plan has it.
  plan::Optimizer resolved() const;
};

struct ScheduleConfig {
  Setting<int64_t> steps; // 0: not given
  Setting<int64_t> warmupSteps;
  Setting<std::string> decay; // decayNames of runtime/plan/Fields/Job.h
  Setting<double> minLr;
  // Each of one decay alone (plan::LrSchedule).
  Setting<int64_t> cycles{1, Origin::Default, "schedule.cycles", {}, ""};
  Setting<double> power{1.0, Origin::Default, "schedule.power", {}, ""};
  Setting<int64_t> decaySteps, timescale;
  Setting<std::string> decayShape{
      "cosine", Origin::Default, "schedule.decay_shape", {}, ""};
};

/// Accelerate's DistributedDataParallelKwargs.
struct DdpConfig {
  Setting<std::string> commHook; // "", fp16, bf16, powersgd
  Setting<std::optional<int64_t>> bucketBytes;
  Setting<bool> gradientAsBucketView, findUnusedParameters;
};

/// A file of each rank for states (plan::Disk).
struct DiskConfig {
  Setting<std::string> folder; // empty: states are in memory
  Setting<std::optional<int64_t>> buffers;
  Setting<bool> readAhead{true, Origin::Default, "", {}, ""},
      writeBehind{true, Origin::Default, "", {}, ""};
  Setting<int64_t> blockBytes, queueDepth, threads; // 0: plan::Disk's
};

struct CheckpointConfig {
  Setting<std::string> dir;       // resolved; empty: nothing is written
  Setting<int64_t> every;         // steps; 0: at the end only
  Setting<int64_t> keep;          // 0: all
  Setting<std::string> stateDict; // sharded, full
  Setting<bool> background;       // written while training goes on
};

enum class Checkpointing {
  Pointwise, // recompute pointwise operators, norms and views (the default)
  Full,      // recompute each unit (YAML's fsdp_activation_checkpointing)
  None       // save everything
};
const char *toString(Checkpointing checkpointing); // "pointwise"

struct JobConfig {
  std::string file;
  bool isJob = false; // false: made of an accelerate YAML alone

  AccelerateConfig accelerate;
  /// What a script's arguments say; nothing for a job.yaml.
  ScriptSettings script;
  Setting<std::string> model; // resolved; empty: not given
  Setting<InitConfig> init;
  Setting<std::string> trainable; // regex searched in FQNs; empty: all
  /// The regexes of which `trainable` was made, where it is a list.
  std::vector<std::string> trainableParts;
  Setting<std::string> adapterPath;     // adapter_config.json or its folder
  std::optional<AdapterConfig> adapter; // what `adapter` says itself
  /// How the weights of the frozen base are quantised; nothing: they are not,
  /// unless config.json says so.
  std::optional<QuantizationConfig> quantization;
  /// The dtype that the script loads the model in; nothing: the checkpoint's.
  Setting<std::optional<plan::DType>> loadDtype;
  /// The script is transformers' Trainer, or one of TRL's: under FSDP1 it wraps
  /// the matrices of PEFT's adapters as units of their own.
  Setting<bool> transformersTrainer;
  /// Gradient checkpointing of the script is reentrant: the outputs of layers
  /// are detached, and each layer's input is a leaf of its own graph.
  Setting<bool> reentrantCheckpointing;
  /// What dropout draws by, with the micro-batch, the call and the operator.
  Setting<int64_t> dropoutSeed{0, Origin::Default, "dropout_seed", {}, ""};
  /// Of accel-run: at a step that is not finite, stop or skip; kernels that
  /// give the same bits each time.
  Setting<std::string> onNan{"stop", Origin::Default, "on_nan", {}, ""};
  Setting<bool> deterministic{false, Origin::Default, "deterministic", {}, ""};
  /// The release of torch that the job runs on, where the file says it;
  /// `accelerate.torchVersion` is what is planned for.
  Setting<std::string> torchVersion{
      "", Origin::Default, "torch_version", {}, ""};
  /// `offload.states`: the optimizer and its states are on the host. Those of
  /// parameters are `accelerate.offloadParams`, as fsdp_offload_params is.
  Setting<bool> offloadStates{false, Origin::Default, "offload", {}, ""};
  /// Where `offload.states` says nvme.
  DiskConfig disk;
  /// `offload.activations`, of accel-run: what calls save for their backward.
  Setting<bool> offloadActivations{false, Origin::Default, "offload", {}, ""};
  /// Of accel-run: every rank holds all parameters between steps, beside its
  /// shards of what the optimizer updates.
  Setting<bool> wholeParameters;
  /// `reduce_gradients`: once a step, and not at each micro-batch.
  Setting<bool> reducesOnce;
  DdpConfig ddp;
  DataConfig data;
  EvalConfig eval;
  Setting<int64_t> accumulation{
      1, Origin::Default, "gradient_accumulation_steps", {}, ""};
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  CheckpointConfig checkpoint;
  /// `sample`: texts that the model writes at an evaluation.
  Setting<plan::Sampling> sampling;
  /// `grad_scaler`: of fp16's loss scale.
  Setting<plan::GradScaler> gradScaler;
  /// `collective_timeout`: seconds; 0: accel-run's default.
  Setting<int64_t> collectiveTimeout;
  /// `logging_steps`: optimizer steps of a line of accel-run's log.
  Setting<int64_t> loggingSteps{1, Origin::Default, "logging_steps", {}, ""};
  Setting<std::string> target; // a shipped name or a resolved file; empty: none

  /// `accelerate.precision` with the job's `precision` applied.
  Setting<PrecisionPolicy> precision;
  /// Full where the YAML asks for activation checkpointing, else Pointwise;
  /// `activation_checkpointing` of the job overrides.
  Setting<Checkpointing> activationCheckpointing;
  /// `activation_budget`: bytes that the layers keep for the backward, all
  /// together, on each rank and for one micro-batch; goes before the mode.
  Setting<std::optional<int64_t>> activationBudget;
  /// The job file says the mesh, which accel-run reads and other executors do
  /// not.
  bool ownMesh = false;
  /// Activations between layers are a rank's tokens: the ranks of tp share the
  /// sequence where layers do not share its features.
  Setting<bool> sequenceParallel{
      false, Origin::Default, "sequence_parallel", {}, ""};
  /// Chunks of the model that each stage of a pipeline has. With what follows
  /// they are its schedule (plan::scheduleOf).
  Setting<int64_t> pipelineChunks{
      1, Origin::Default, "pipeline.chunks", {}, ""};
  /// A stage's backward is in two parts, of which that of weights waits.
  Setting<bool> splitBackward{
      false, Origin::Default, "pipeline.schedule", {}, ""};
  /// Stages run the forwards of all micro-batches before the first backward.
  Setting<bool> forwardsFirst{
      false, Origin::Default, "pipeline.schedule", {}, ""};
  /// Of ranks that share experts (ep): for how many rows a rank's experts have
  /// a place, in even shares.
  Setting<double> expertImbalance{2.0,
                                  Origin::Default,
                                  "expert_imbalance",
                                  {},
                                  "all rows there are on 2 ranks, and twice "
                                  "what a balanced router sends to "
                                  "one of more"};
  /// `loss_chunks`: auto is the fewest that bring the loss below the rest of
  /// the peak.
  Setting<LossChunks> lossChunks{{1}, Origin::Default, "loss_chunks", {}, ""};
  /// `hold_gathers`: of a backward's, from the first behind the loss's, those
  /// that start where they are needed; nothing: auto, as predicted time and
  /// memory say.
  Setting<std::optional<int64_t>> holdGathers{
      {}, Origin::Default, "hold_gathers", {}, ""};
  /// `await_reductions`: of a backward's, from the first, those that end before
  /// the next backward; nothing: auto, as predicted time and memory say.
  Setting<std::optional<int64_t>> awaitReductions{
      {}, Origin::Default, "await_reductions", {}, ""};
};

struct LoadOptions {
  AccelerateOptions accelerate;
  /// Check that the files named in a job.yaml exist.
  bool checkFiles = true;
  /// False where the command line names the model.
  bool modelRequired = true;
};

/// True if the root has a `model` or `accelerate` key.
bool isJobFile(const yaml::Node &root);

struct LoadedConfig {
  std::optional<JobConfig> job;  // empty if nothing useful could be read
  Outcome outcome = Outcome::Ok; // of everything in the engine
};

/// Reads CONFIG.yaml: a job.yaml, or an accelerate YAML (then everything but
/// `accelerate`, `precision` and `activationCheckpointing` has its default).
/// May be used for planning iff `outcome` is Ok.
LoadedConfig loadConfig(const std::string &path, const LoadOptions &options,
                        DiagnosticEngine &engine);

/// What asks for kernels that are recorded once and replayed as CUDA graphs:
/// the script's torch_compile_mode, else Accelerate's dynamo_mode.
std::optional<Setting<bool>> asksForGraphs(const JobConfig &job);

/// The defaults of a job without a file, around an accelerate configuration.
JobConfig defaultJob(AccelerateConfig accelerate);

} // namespace accel

#endif // ACCEL_FRONTENDS_JOB_JOBCONFIG_H
