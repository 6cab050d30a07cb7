//===- AccelerateConfig.h - An accelerate YAML, understood ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What `accelerate launch` and the plugins in every rank make of a file that
// `accelerate config` wrote: typed effective values, each with the line that
// it comes from or the reason for its default. What the file says but
// Accelerate ignores is in `ignored`, and was reported.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_ACCELERATECONFIG_H
#define ACCEL_FRONTENDS_ACCELERATE_ACCELERATECONFIG_H

#include "frontends/Accelerate/LaunchEnvironment.h"
#include "frontends/Accelerate/SectionSettings.h"
#include "frontends/Yaml/FileTexts.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Plan.h"

#include <optional>
#include <string>
#include <vector>

namespace accel {

/// accelerate.utils.DistributedType, by value.
enum class DistributedType {
  No,
  MultiCpu,
  MultiGpu,
  MultiNpu,
  MultiMlu,
  MultiSdaa,
  MultiMusa,
  MultiXpu,
  MultiHpu,
  MultiNeuron,
  Deepspeed,
  Fsdp,
  Xla,
  MegatronLm,
  Tp // 1.4 to 1.9
};
const char *toString(DistributedType type); // "MULTI_GPU"
/// What is wrong with sp_size under another type than DeepSpeed's, and the fix.
std::string needsDeepspeed(DistributedType type);
inline constexpr const char *deepspeedForSequences =
    "write distributed_type: DEEPSPEED, or use cp_size";
struct AccelerateConfig;
/// Why parallelism_config reaches no rank of the job, or "".
std::string unusedParallelism(const AccelerateConfig &config);

/// What runs the job under Accelerate.
enum class Strategy { Single, Ddp, Fsdp1, Fsdp2, Other };
const char *toString(Strategy strategy); // "single", "ddp", "fsdp1", "fsdp2"

enum class MixedPrecision { No, Fp16, Bf16, Fp8 };
const char *toString(MixedPrecision precision); // "no", "bf16"

/// Sharding strategies by FSDP1's names; FSDP2 is FullShard (reshard after
/// forward), ShardGradOp (keep) and their HYBRID_ forms by its mesh.
enum class Sharding {
  FullShard,
  ShardGradOp,
  NoShard,
  HybridShard,
  HybridShardZero2
};
const char *toString(Sharding sharding); // "FULL_SHARD"

enum class WrapPolicy { None, Transformer, Size };
const char *toString(WrapPolicy policy); // "NO_WRAP"

enum class BackwardPrefetch { None, Pre, Post };
enum class StateDictType { Full, Local, Sharded };
const char *toString(StateDictType type); // "FULL_STATE_DICT"

/// Which parameters Accelerate turns into fp32 before training.
enum class Upcast {
  None,           // all stay in the dtype they were loaded in
  Trainable,      // FSDP2 from 1.14: those that require a gradient
  TrainableUnits, // FSDP1: every flat parameter that requires a gradient
  All             // FSDP2 before 1.13: frozen ones too
};
const char *toString(Upcast upcast); // "none", "trainable", "trainable units"

/// Where activation checkpointing puts its boundaries.
enum class CheckpointPlacement {
  None,
  Units,       // the modules that the wrap policy matches
  Children,    // each child of those: FSDP2 from 1.8 to 1.14
  EveryModule, // FSDP1 without a wrap policy
};
const char *toString(CheckpointPlacement placement); // "each unit"

/// What becomes of the parameters that no match of the wrap policy holds.
enum class RestUnits {
  None,             // no FSDP
  Root,             // all in the root's unit
  EmbeddingAndTail, // FSDP2 from 1.14: the input embedding has a unit of its
                    // own, the final norm and the head share one that stays
                    // gathered after the forward
};
const char *toString(RestUnits units);

/// Dtypes; an empty one is the parameter's own storage dtype.
struct PrecisionPolicy {
  Upcast upcast = Upcast::None;
  std::optional<plan::DType> param;  // gathered parameters and compute
  std::optional<plan::DType> reduce; // gradients on the wire
  std::optional<plan::DType> output; // of the model's forward
  bool castInputs = false;  // floating inputs of each unit are cast to param
  bool autocast = false;    // torch.autocast around the forward (DDP, FSDP1)
  bool lossScaling = false; // fp16
};

/// One line of the table of effective values.
struct EffectiveValue {
  std::string key;       // of the YAML, dotted
  std::string asked;     // as written; empty: not written
  std::string effective; // what happens; "(ignored)" where nothing does
  std::string why;
  Origin origin = Origin::Default;
  bool ignored = false; // written, without effect
  Location at;
};

/// Which values are wrong or missing in the file, so that reading goes on with
/// others in their place. Nothing is reported that follows from those.
struct AssumedValues {
  bool fsdpVersion = false;
  bool wrapPolicy = false;
  bool mixedPrecision = false;
  bool numMachines = false;
  bool numProcesses = false;
  bool mesh = false;
  bool stateDict = false;
  bool deepspeed = false; // the section, or its zero_stage
};

struct AccelerateConfig {
  AssumedValues assumed;
  std::string file;
  std::string version; // of accelerate whose behaviour this is
  std::string torchVersion;

  Setting<DistributedType> distributedType;
  Setting<Strategy> strategy; // derived
  /// Total over machines.
  Setting<int64_t> numProcesses{1, Origin::Default, "num_processes", {}, ""};
  Setting<int64_t> numMachines{1, Origin::Default, "num_machines", {}, ""};
  Setting<int64_t> machineRank;
  Setting<std::string> mainProcessIp; // empty: unset
  Setting<int64_t> mainProcessPort;   // 0: a free port
  Setting<std::string> gpuIds;        // "all" or "0,1"
  /// The job runs on CPUs: MULTI_CPU, or NO with use_cpu. (`use_cpu` with FSDP
  /// or MULTI_GPU is ignored by Accelerate.)
  Setting<bool> cpu;
  Setting<MixedPrecision> mixedPrecision;
  Setting<PrecisionPolicy> precision;

  /// The data-parallel axes, dp_replicate and dp_shard; their product is
  /// `numProcesses`. Both are 1 for a job of one process.
  Setting<plan::Mesh> mesh{
      plan::Mesh::dataParallel(), Origin::Default, "", {}, ""};
  /// Names the sizes that shard and replicate; NoShard and DDP replicate only.
  Setting<Sharding> sharding;
  /// Parameters are freed after the forward and gathered again.
  Setting<bool> reshardAfterForward;

  Setting<WrapPolicy> wrapPolicy;
  /// Class names as Accelerate splits them; nothing: the model's own
  /// `_no_split_modules`.
  Setting<std::optional<std::vector<std::string>>> wrapClasses;
  Setting<int64_t> minNumParams; // SIZE_BASED_WRAP; 0: wraps nothing
  /// Regex that must match a module's whole FQN; empty: none.
  Setting<std::string> ignoredModules;
  Setting<bool> activationCheckpointing;
  Setting<bool> activationCheckpointingOffload;
  Setting<CheckpointPlacement> checkpointPlacement; // derived
  Setting<RestUnits> restUnits;                     // derived
  Setting<bool> offloadParams;
  Setting<BackwardPrefetch> backwardPrefetch; // FSDP1 only
  Setting<bool> forwardPrefetch;              // FSDP1 only
  Setting<StateDictType> stateDictType;
  Setting<bool> useOrigParams;    // FSDP1 only
  Setting<bool> syncModuleStates; // FSDP1 only
  Setting<bool> cpuRamEfficientLoading;

  /// Sections that this job reads; empty where it does not.
  std::optional<DeepspeedSettings> deepspeed; // distributed_type DEEPSPEED
  std::optional<MegatronSettings> megatron;   // MEGATRON_LM
  std::optional<Fp8Settings> fp8;             // mixed_precision fp8
  std::optional<TpuSettings> tpu;             // XLA
  std::optional<SagemakerSettings> sagemaker;
  std::optional<MpirunSettings> mpirun; // NO and MULTI_CPU
  std::optional<IpexSettings> ipex;     // the same, before 1.13
  DynamoSettings dynamo;
  /// Ranks of each axis beside data parallelism, from parallelism_config (or
  /// tp_config before 1.7).
  Setting<int64_t> tensorParallel{1, Origin::Default, "", {}, ""};
  Setting<int64_t> contextParallel{1, Origin::Default, "", {}, ""};
  /// cp_comm_strategy alltoall: keys are sent from neighbour to neighbour. Else
  /// they are gathered at once.
  Setting<bool> contextSends{false, Origin::Default, "", {}, ""};
  Setting<int64_t> sequenceParallel{1, Origin::Default, "", {}, ""};

  /// What `accelerate launch` would set for the ranks.
  LaunchEnvironment launch;

  /// Every key above and every written key, in the order of the file, then
  /// defaults; for `lint --effective` and for decisions.
  std::vector<EffectiveValue> effective;

  /// Ranks on one machine (num_processes / num_machines, rounded down).
  int64_t processesPerMachine() const;
  bool sharded() const {
    return mesh->ranks(mesh->set(plan::AxisRole::Shard)) > 1;
  }
};

struct AccelerateOptions {
  std::string version = "1.15.0"; // accelerate's
  /// Report what accel-opt cannot plan yet as errors (exit code 4); lint turns
  /// them into notes, since Accelerate itself runs such a file.
  bool forPlanning = true;
  /// Where to put what launch would set, also for a file that is refused;
  /// null: nowhere.
  LaunchEnvironment *launch = nullptr;
  std::string torchVersion = "2.15.0";
  /// It is of the command line: a job's `torch_version` gives way.
  bool torchGiven = false;
  std::string deepspeedVersion = {}; // empty: not given
  /// Stand for the files of these paths: the configuration, and what it names.
  yaml::FileTexts texts = {};
};

/// Reads an accelerate file. Reports everything that it finds; returns a
/// configuration unless an error makes one meaningless (`engine.outcome()`
/// tells whether it may be planned).
std::optional<AccelerateConfig>
parseAccelerate(const std::string &path, const AccelerateOptions &options,
                DiagnosticEngine &engine);
inline std::optional<AccelerateConfig>
parseAccelerate(const std::string &path, const std::string &version,
                DiagnosticEngine &engine) {
  return parseAccelerate(path, AccelerateOptions{version, true}, engine);
}

/// The same from a mapping in another document. `prefix` is the dotted path of
/// `node` for diagnostics' keys ("accelerate" or ""); keys in `foreign` belong
/// to somebody else and are skipped.
std::optional<AccelerateConfig>
parseAccelerate(const std::string &file, const yaml::Node &node,
                const std::string &prefix,
                const std::vector<std::string> &foreign,
                const AccelerateOptions &options, DiagnosticEngine &engine);

/// Every top-level key of an accelerate file of this version.
std::vector<std::string> accelerateTopLevelKeys(const std::string &version);

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_ACCELERATECONFIG_H
