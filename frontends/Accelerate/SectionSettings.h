//===- SectionSettings.h - What the sections of a file mean -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Typed values of every section but fsdp_config and parallelism_config (those
// are in AccelerateConfig itself), each with its provenance. Which values are
// wrong is reported elsewhere; what cannot be read keeps its default here.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_SECTIONSETTINGS_H
#define ACCEL_FRONTENDS_ACCELERATE_SECTIONSETTINGS_H

#include "frontends/Accelerate/Setting.h"
#include "runtime/plan/MegatronModules.h"

#include <optional>
#include <vector>

namespace accel {

enum class OffloadDevice { None, Cpu, Nvme };
const char *toString(OffloadDevice device); // "cpu"

/// ZeRO as DeepSpeed will run it: the JSON file where one is named (values have
/// their place in that file then), else what DeepSpeedPlugin builds from the
/// YAML. "auto" is an empty value: Accelerate fills it in from the script.
struct DeepspeedSettings {
  Setting<std::string> configFile; // resolved; empty: none
  /// The named file was found and is JSON.
  bool fileRead = false;
  /// It is the object "deepspeed" of a script's arguments in that file.
  bool inArguments = false;
  Setting<int64_t> zeroStage;
  Setting<OffloadDevice> offloadOptimizer, offloadParameters;
  Setting<std::string> optimizerNvmePath, parametersNvmePath;
  Setting<std::optional<int64_t>> gradientAccumulation;
  Setting<std::optional<double>> gradientClipping; // 0: none
  Setting<std::optional<int64_t>> microBatch;      // samples per device
  Setting<std::optional<int64_t>> trainBatch;      // samples per step
  Setting<bool> fp16, bf16;
  /// The file names an optimizer, which DeepSpeed makes in place of the
  /// script's: FusedAdam, or DeepSpeedCPUAdam, or torch's with torchAdam.
  Setting<bool> ownOptimizer, torchAdam;
  Setting<bool> zero3Init;      // the model is built sharded
  Setting<bool> save16BitModel; // stage 3 gathers weights to save them
  Setting<bool> overlapCommunication;
  Setting<bool> contiguousGradients;
  /// Elements, not bytes; empty: "auto".
  Setting<std::optional<int64_t>> reduceBucket, gatherBucket, prefetchBucket,
      persistenceThreshold, maxLiveParameters, maxReuseDistance;
  Setting<int64_t> subGroup; // elements that stage 3 updates at a time
  /// ZeRO++ and MiCS: ranks that hold a second copy of gathered parameters (0
  /// or 1: none), and ranks that share one copy of all (0 or less: all).
  Setting<int64_t> secondaryRanks, micsRanks;
  Setting<bool> quantizedWeights, quantizedGradients;
  Setting<std::string> hostfile, exclusionFilter, inclusionFilter, launcher;
  Setting<std::vector<std::string>> moeClasses;
};

struct MegatronSettings {
  Setting<int64_t> tensorParallel, pipelineParallel, microBatches;
  Setting<int64_t> contextParallel, expertParallel, expertTensorParallel;
  Setting<bool> sequenceParallelism, recomputeActivations, distributedOptimizer,
      optimizerCpuOffload, customFsdp;
  Setting<double> gradientClipping; // 0: none
  Setting<std::string> recomputeGranularity, recomputeMethod;
  Setting<int64_t> recomputeLayers;
  Setting<int64_t> lastStageLayers; // 0: as many as the others
  Setting<bool> preciseOptimizer, flashAttention, rotaryPositions;
  Setting<double> attentionDropout, hiddenDropout;
  /// No keys of the file: MegatronLMPlugin's other_megatron_args, and what
  /// NeMo's recipes set.
  Setting<bool> overlapsGradients, overlapsParameters, overlapsTensor,
      sendsOnce, overlapsExperts;
  Setting<int64_t> chunks{1, Origin::Default, "", {}, ""}; // of each stage
  Setting<plan::RecomputeModules> recomputeModules;        // empty: core_attn
  Setting<plan::GraphedParts> graphs; // replayed as CUDA graphs
  Setting<bool> expertBiases;         // add_bias_linear of a mixture
  /// NVTE_CUTEDSL_FUSED_GROUPED_MLP with use_transformer_engine_op_fuser.
  Setting<bool> fusedExperts;
  /// use_megatron_fsdp with data_parallel_sharding_strategy
  /// optim_grads_params.
  Setting<bool> shardsParameters;
  /// cpu_offloading_num_layers: what the first layers save goes to the host.
  Setting<int64_t> offloadedLayers;
};

struct Fp8Settings {
  Setting<std::string> backend; // "TE", "AO", "MSAMP"; empty: what is installed
  Setting<bool> autocastDuringEval, mxfp8BlockScaling;
  Setting<int64_t> margin, interval, amaxHistory;
  Setting<std::string> format, amaxAlgorithm, optLevel;
  Setting<std::vector<bool>> overrides; // fprop, dgrad, wgrad
  Setting<bool> float8AllGather, padInnerDim;
};

/// Modes of torch.compile that replay CUDA graphs (list_mode_options,
/// torch/_inductor/__init__.py).
inline bool usesCudaGraphs(const std::string &mode) {
  return mode == "reduce-overhead" || mode == "max-autotune";
}

struct DynamoSettings {
  Setting<std::string> backend; // in capitals; "NO": not compiled
  Setting<std::string> mode;
  Setting<bool> fullGraph, dynamic, regional;
  bool compiles() const { return *backend != "NO"; }
};

struct MpirunSettings {
  Setting<std::string> hostfile; // empty: mpirun is not used
  Setting<int64_t> cclWorkers;   // before 1.13
};

struct IpexSettings {
  Setting<bool> ipex, xpu;
};

struct TpuSettings {
  Setting<std::string> name, zone, trainingFunction;
  Setting<bool> cluster, sudo, downcastBf16;
};

struct SagemakerSettings {
  Setting<std::string> instanceType, role, image, profile, region, jobName;
  Setting<std::string> pytorch, transformers, python;
  Setting<std::string> distributedType;
};

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_SECTIONSETTINGS_H
