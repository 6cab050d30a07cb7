//===- PlanOptions.h - What a user asks of a plan ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_OPTIONS_PLANOPTIONS_H
#define ACCEL_TOOLS_DRIVER_OPTIONS_PLANOPTIONS_H

#include "frontends/Job/LossChunks.h"
#include "frontends/Job/QuantizationConfig.h"
#include "frontends/Yaml/FileTexts.h"
#include "passes/Frameworks/Framework.h"
#include "passes/Pipeline/DdpKwargs.h"
#include "runtime/plan/Optimizers.h"
#include "tools/driver/Options/ScriptOptions.h"
#include "tools/options/Values.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace accel {

class Arguments;
enum class Phase;

/// What `--emit` writes.
enum class EmitKind {
  Plan,
  Mlir,
  Schedule,
  Accelerate,
  Python,
  Job,
  Megatron,
  Torchtitan,
  Perfetto,
  MemorySnapshot,
  Dot
};
/// The name for --emit, and of the file where several are written to a folder.
const char *toString(EmitKind kind);
const char *fileName(EmitKind kind);

/// What --tune may change: what the files leave open, or written keys too.
enum class TuneScope { Open, All };

/// What the command line of `plan` says. What is not given is unset; paths and
/// names that are not given are empty.
struct PlanOptions {
  std::string config;
  bool hasConfig = true; // else `config` is what messages call the job
  /// Stand for the files of these paths, the configuration or what it names.
  yaml::FileTexts texts;

  /// MLIR's verifier runs after each pass of whatever is planned (tests).
  bool verifyEachPass = false;

  //===--- The model and the machines -------------------------------------===//
  std::string model, adapter, target;
  std::optional<int64_t> nodes;
  std::optional<int64_t> memoryBudgetBytes; // per rank
  std::optional<int64_t> nodeMemoryBytes;   // of a node's host
  std::optional<double> confidence;         // that "fits" has to have, 0 to 1

  //===--- What the script does -------------------------------------------===//
  std::optional<int64_t> sequenceLength; // tokens
  std::optional<int64_t> microBatch;     // sequences
  std::optional<int64_t> imagesPerSample;
  std::optional<std::pair<int64_t, int64_t>> imageSize; // height, width
  std::optional<int64_t> accumulation; // micro-batches of a step
  std::optional<int64_t> globalBatch;  // sequences of a step, over all ranks
  /// Open sizes of a .pt2, by name.
  std::vector<std::pair<std::string, int64_t>> dims;
  /// Of transformers' table; null: the job's.
  const plan::TransformersOptimizer *optim = nullptr;
  std::optional<DdpKwargs> ddp;
  std::optional<LossChunks> lossChunks;
  bool holdOutputs = false;
  std::optional<bool> gradientCheckpointing; // of every layer
  /// Of an evaluation over all ranks, whose logits compute_metrics gets.
  std::optional<int64_t> evalSamples;
  ScriptOptions script;
  bool reentrant = false;     // gradient checkpointing with use_reentrant=True
  bool nonReentrant = false;  // with use_reentrant=False; neither: its default
  bool trainerScript = false; // transformers' Trainer, or one of TRL's
  /// Of the frozen base; unset: as config.json says.
  std::optional<QuantizationConfig> quantization;
  std::optional<plan::DType> loadDtype; // unset: the checkpoint's
  std::string allocatorConf;            // PYTORCH_CUDA_ALLOC_CONF of the job

  //===--- Who runs it ----------------------------------------------------===//
  std::optional<FrameworkKind> executor;
  std::string trainer; // over it (frameworks::findTrainer); empty: none
  std::string accelerateVersion = "1.15.0";
  std::optional<std::string> torchVersion; // unset: the newest that is modelled
  /// torchtitan's experimental.enable_async_tensor_parallel.
  bool asyncTensor = false;
  std::optional<bool> keepUnsharded; // gradients while accumulating
  std::optional<int64_t> prefetch;   // units gathered ahead
  /// What ranks exchange in a function is over where it stands.
  bool noOverlap = false;
  std::optional<int64_t> activationBudgetBytes; // of all layers together

  //===--- Search ---------------------------------------------------------===//
  std::optional<TuneScope> tune;
  bool tunePrecision = false, maxBatch = false;
  /// What a YAML can say includes the arguments of the script's own file.
  bool scriptFileIsYaml = false;

  //===--- Output ---------------------------------------------------------===//
  std::vector<EmitKind> emit;
  std::string output;
  std::string htmlReport; // file
  std::string remarks;    // file, or "-"
  std::string dumpPhases;
  bool overwrite = false; // foreign files at these paths
  std::optional<Phase> compileTo, compileFrom;
  ReportFormat format = ReportFormat::Text;
  bool showUnits = false, showSchedule = false, showPhases = false; // in text

  bool emits(EmitKind kind) const;
  /// accel-run's program is to be written, in whatever form.
  bool emitsProgram() const;
  /// A file with a better setting is asked for.
  bool emitsSetting() const;
};

/// The rows that describe a job: model, machines, script and executor.
/// `options` must outlive `arguments`.
void addJobOptions(Arguments &arguments, PlanOptions &options);
/// One row an option.
void addPlanOptions(Arguments &arguments, PlanOptions &options);

/// Reads the command line of `plan`. False where help was printed (`exitCode`
/// 0) or it is wrong (64).
bool parsePlanOptions(int argc, char **argv, PlanOptions &options,
                      int &exitCode);

/// Adds options by name and value, as if they stood on the command line. False
/// where one is none.
bool setPlanOptions(
    PlanOptions &options,
    const std::vector<std::pair<std::string, std::string>> &given);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_OPTIONS_PLANOPTIONS_H
