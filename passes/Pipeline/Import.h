//===- Import.h - A job and a model as the model phase ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Adds to a model's module what the job file and the accelerate YAML say: the
// mesh, the job, frozen parameters, optimizer groups, and one request per
// subject that passes decide, each with the line that asked for it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PIPELINE_IMPORT_H
#define ACCEL_PASSES_PIPELINE_IMPORT_H

#include "frontends/Job/JobConfig.h"
#include "passes/Frameworks/Framework.h"
#include "passes/Pipeline/DdpKwargs.h"
#include "runtime/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <optional>

namespace accel {

/// What the command line and the target add to the job.
struct ImportOptions {
  /// Who runs the job, and in which releases.
  FrameworkKind framework = FrameworkKind::AccelRun;
  /// A trainer over it (frameworks::findTrainer); empty: the script's own loop
  /// over transformers' models.
  std::string trainer;
  frameworks::Versions versions;
  bool compile = false;     // a trainer's layers are under torch.compile
  bool asyncTensor = false; // Kernels::asyncTensor
  /// torch.compile with Inductor: of the whole model (true), or of each layer
  /// by itself; who asks for it.
  std::optional<Setting<bool>> compiledWhole;
  /// Its mode asks for CUDA graphs.
  bool replaysGraphs = false;
  /// Of matmuls of a trainer's layers.
  LinearOperands operands = LinearOperands::Computed;
  bool tf32 = false; // matmuls in fp32
  /// The model calls the package flash-attn, not torch's attention.
  bool flashAttention = false;
  /// Linear layers that a library converts to fp8, and who asks for it.
  std::optional<Setting<Fp8Training>> fp8Training;
  /// Whose kernels replace those of transformers' modules.
  std::vector<frameworks::KernelSet> kernels;
  int64_t ranksPerNode = 0; // 0: the target's own
  DdpKwargs ddp;
  bool holdOutputs = false;
  /// What an engine that generates completions keeps on each device.
  int64_t generationBytes = 0;
  /// The script recomputes every layer (gradient_checkpointing=True).
  bool gradientCheckpointing = false;
  /// Other than the framework's own; why it is asked for.
  std::optional<OptimizerKernel> optimizerKernel;
  /// The model has an adapter of PEFT.
  bool adapted = false;
  std::string modelName;
  std::string device = "cpu";
  double capability = 0; // Target::capability
  int64_t microBatch = 1, sequenceLength = 0, accumulation = 1;
  /// Accumulate unsharded gradients; unset: as the framework does.
  std::optional<bool> keepUnsharded;
  /// Units ahead; unset: as the file and the framework say.
  std::optional<int64_t> prefetchForward, prefetchBackward;
  /// Gathers that a backward holds back and reductions that it waits for, and
  /// why; unset: as the job says.
  std::optional<int64_t> holdGathers, awaitReductions;
  std::string gathersWhy, reductionsWhy;
  /// What a search chose beyond the YAML; `why` is its reason everywhere.
  struct Chosen {
    std::string why;
    int64_t layersPerUnit = 1;
    /// Classes of a wrap policy instead of the YAML's.
    std::optional<std::vector<std::string>> wrapClasses;
    std::optional<bool> reshard;
    std::vector<std::string> keep;            // units that stay gathered
    std::string checkpoint;                   // mode of the job
    std::map<std::string, std::string> calls; // modes or bytes by path
    /// Operations of the joint function that a call keeps, and why, by path.
    std::map<std::string, std::pair<std::vector<int64_t>, std::string>> keeps;
    std::optional<plan::Mesh> mesh;
    /// Of frameworks other than accel-run.
    std::optional<bool> offloadParameters, offloadOptimizer, offloadLayerInputs;
    std::optional<int64_t> zeroStage, bucketBytes;
    bool operator==(const Chosen &) const = default;
  };
  std::optional<Chosen> chosen;
  /// What the layers may keep for the backward, all together; unset: that of
  /// the job, if it has one.
  std::optional<int64_t> activationBudgetBytes;
  /// Chunks of the cross-entropy, and why if not the job says it. Unset: as
  /// the model has it, and so is "auto" until a number is chosen.
  std::optional<LossChunks> lossChunks;
  /// As a fused kernel cuts it (frameworks other than accel-run).
  bool fusedLoss = false;
  std::string lossWhy;
  std::string target; // for what recomputing costs; empty: the device's usual
  /// In which parameters are loaded; f32 where the model does not say.
  plan::DType checkpointDtype = plan::DType::F32;
};

/// Completes `module`; `training` (paths, optimizer, data) is kept for the
/// plan. Reports what does not fit the model (regular expressions without a
/// match, malformed ones).
mlir::LogicalResult importJob(mlir::ModuleOp module, const JobConfig &job,
                              plan::Job training, const ImportOptions &options,
                              DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_PASSES_PIPELINE_IMPORT_H
