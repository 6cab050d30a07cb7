//===- RunJob.cpp - A measured run as a job of the compiler ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/RunJob.h"
#include "frontends/Accelerate/DeepspeedJson.h"

#include "dialects/Sharding/Sharding.h"
#include "frontends/HuggingFace/BuildModel.h"
#include "frontends/HuggingFace/TokenPredictors.h"
#include "passes/Adapters/ApplyAdapter.h"
#include "passes/FrameworkSteps/DecidedCandidate.h"
#include "passes/Pipeline/Phases.h"
#include "runtime/plan/Optimizers.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cmath>

namespace accel::validate {

namespace {

/// The reason of every setting that a row gives.
constexpr const char *rowsReason = "the measured run";

Strategy strategyOf(FrameworkKind executor) {
  switch (executor) {
  case FrameworkKind::Fsdp1:
    return Strategy::Fsdp1;
  case FrameworkKind::Fsdp2:
    return Strategy::Fsdp2;
  case FrameworkKind::Ddp:
    return Strategy::Ddp;
  case FrameworkKind::Single:
    return Strategy::Single;
  default:
    return Strategy::Other;
  }
}

DistributedType distributedOf(FrameworkKind executor) {
  switch (executor) {
  case FrameworkKind::Ddp:
    return DistributedType::MultiGpu;
  case FrameworkKind::Single:
    return DistributedType::No;
  case FrameworkKind::Deepspeed:
    return DistributedType::Deepspeed;
  case FrameworkKind::Megatron:
    return DistributedType::MegatronLm;
  default:
    return DistributedType::Fsdp;
  }
}

AccelerateConfig accelerateOf(const Run &run) {
  AccelerateConfig a;
  a.version = run.accelerateVersion;
  a.torchVersion = run.torchVersion;
  a.distributedType.value = distributedOf(run.executor);
  a.strategy.value = strategyOf(run.executor);
  a.numProcesses.value = run.mesh.ranks();
  a.numMachines.value =
      std::max<int64_t>(1, a.numProcesses.value / run.ranksPerNode);
  a.mixedPrecision.value =
      run.compute == plan::DType::F32 || !run.mixed ? MixedPrecision::No
      : run.compute == plan::DType::F16             ? MixedPrecision::Fp16
                                                    : MixedPrecision::Bf16;
  PrecisionPolicy &precision = a.precision.value;
  precision.autocast = run.autocast;
  const bool cast = run.executor != FrameworkKind::Single &&
                    run.executor != FrameworkKind::Ddp;
  if (cast && run.mixed && run.compute != plan::DType::F32) {
    precision.param = run.compute;
    precision.reduce = run.reduce;
    // Accelerate from 0.30 on.
    if (run.trainerScript && run.executor == FrameworkKind::Fsdp1)
      precision.upcast = Upcast::TrainableUnits;
  }
  a.mesh.value = run.mesh;
  a.reshardAfterForward.value = !run.keepGathered;
  a.wrapPolicy.value = WrapPolicy::Transformer;
  a.restUnits.value = RestUnits::Root;
  a.offloadParams.value = run.offloadParameters;
  if (run.executor == FrameworkKind::Deepspeed) {
    DeepspeedSettings zero;
    zero.zeroStage.value = run.zeroStage;
    if (run.zeroFile) {
      zero.fileRead = true;
      for (auto *size : {&zero.reduceBucket, &zero.prefetchBucket,
                         &zero.persistenceThreshold})
        size->origin = Origin::Written;
      zero.reduceBucket.value = run.zeroFile->reduceBucket;
      resolveAuto(zero, run.sizes.hidden);
      zero.overlapCommunication.value = run.zeroFile->overlap;
      zero.ownOptimizer.value = run.zeroFile->ownOptimizer;
    }
    const OffloadDevice host = OffloadDevice::Cpu, none = OffloadDevice::None;
    zero.offloadParameters.value = run.offloadParameters ? host : none;
    zero.offloadOptimizer.value = run.offloadOptimizer ? host : none;
    a.deepspeed = zero;
  }
  if (run.executor == FrameworkKind::Megatron) {
    MegatronSettings megatron;
    megatron.distributedOptimizer.value = run.megatron.distributedOptimizer;
    megatron.overlapsGradients.value = run.megatron.overlaps;
    megatron.overlapsParameters.value = run.megatron.overlaps;
    megatron.sequenceParallelism.value = run.megatron.sequenceParallelism;
    megatron.chunks.value = run.megatron.chunks;
    megatron.lastStageLayers.value = run.megatron.lastLayers;
    megatron.expertParallel.value = run.megatron.experts;
    megatron.expertTensorParallel.value = run.megatron.expertTensor;
    megatron.overlapsTensor.value = run.megatron.overlapsTensor;
    megatron.sendsOnce.value = run.megatron.sendsOnce;
    megatron.overlapsExperts.value = run.megatron.overlapsExperts;
    megatron.recomputeModules.value = run.megatron.recompute;
    megatron.graphs.value = run.megatron.graphs;
    megatron.expertBiases.value = run.megatron.expertBiases;
    megatron.fusedExperts.value = run.megatron.fusedExperts;
    megatron.shardsParameters.value = run.megatron.shardsParameters;
    megatron.offloadedLayers.value = run.megatron.offloadedLayers;
    a.megatron = megatron;
  }
  return a;
}

const char *checkpointMode(Recompute recompute) {
  switch (recompute) {
  case Recompute::None:
    return "none";
  case Recompute::Selective:
    return "pointwise";
  case Recompute::Layers:
    return "full";
  }
  return "";
}

/// Checkpoints a share of the layers, spread as evenly as fms-fsdp's
/// apply_fsdp_checkpointing spreads them.
void shareCheckpoints(mlir::ModuleOp module, double share,
                      ImportOptions::Chosen &chosen) {
  if (share >= 1)
    return;
  std::vector<std::string> layers;
  for (auto graph : module.getOps<sharding::GraphOp>())
    for (auto call : graph.getBody().getOps<sharding::CallOp>())
      if (llvm::StringRef number = call.getPath().rsplit('.').second;
          !number.empty() && llvm::all_of(number, llvm::isDigit))
        layers.push_back(call.getPath().str());
  const size_t count = layers.size();
  const auto recomputed =
      static_cast<size_t>(std::llround(share * static_cast<double>(count)));
  for (size_t i = 0, done = 0; i < count; ++i)
    if (done < (i + 1) * recomputed / count) {
      ++done;
      chosen.calls[layers[i]] = chosen.checkpoint;
    }
  chosen.checkpoint = "none";
}

/// What a name of TrainingArguments.optim makes.
void setOptimizer(const Run &run, OptimizerConfig &optimizer) {
  const plan::TransformersOptimizer *named =
      run.source == Source::Transformers
          ? plan::findTransformersOptimizer(run.optimizer)
          : nullptr;
  if (named && named->optimizer) {
    optimizer.setDefaults(*plan::findOptimizer(named->optimizer));
    optimizer.kernel = named->kernel;
    optimizer.stateDtype = named->stateDtype;
    optimizer.habits = named->habits;
    if (!atLeast(run.transformersVersion, "4.52"))
      optimizer.habits.wideEmbeddings = false;
  } else if (const auto *plain = plan::findOptimizer(run.optimizer)) {
    optimizer.setDefaults(*plain);
  }
}

} // namespace

std::optional<RunJob> jobOf(const Run &run, DiagnosticEngine &engine) {
  // Learned positions are as many as the sequence is long.
  const std::string text = run.config.empty()
                               ? configJson(run.sizes, run.sequenceLength)
                               : run.config;
  auto model = huggingface::parseModelConfig(text, run.configFile, engine);
  if (!model)
    return std::nullopt;
  if (const std::string wrong =
          huggingface::addTokenPredictors(*model, run.megatron.tokenPredictors);
      !wrong.empty()) {
    engine.error("plan", "", wrong);
    return std::nullopt;
  }
  RunJob result{std::move(*model), defaultJob(accelerateOf(run)),        {},
                run.adapter,       run.adapterDtype != plan::DType::F32, 1,
                run.eagerAttention};
  JobConfig &job = result.job;
  setOptimizer(run, job.optimizer);
  job.optimizer.maxGradNorm.value = run.clipGradients ? 1.0 : 0.0;
  if (run.megatron.narrowStates)
    job.optimizer.stateDtype = plan::DType::BF16;
  job.quantization = run.quantization;
  job.transformersTrainer.value = run.trainerScript || run.ownUnits;
  job.reentrantCheckpointing.value = run.reentrant;

  ImportOptions &import = result.import;
  import.framework = run.executor;
  import.trainer = run.megatron.coreAttention ? "megatron-core-attention"
                                              : trainerOf(run.source);
  import.versions = {run.torchVersion, run.accelerateVersion,
                     run.transformersVersion};
  import.adapted = run.adapter.has_value();
  import.fusedLoss = run.fusedLoss;
  import.kernels = run.kernels;
  import.ranksPerNode = run.ranksPerNode;
  import.holdOutputs = run.holdsLogits;
  import.modelName = "model";
  import.device = "cuda";
  import.microBatch = run.microBatch;
  import.sequenceLength = run.sequenceLength;
  import.accumulation = run.accumulation;
  if (run.reduceEachMicroBatch)
    import.keepUnsharded = !*run.reduceEachMicroBatch;
  import.prefetchForward = import.prefetchBackward = 1;
  import.checkpointDtype = run.parameters;
  import.compile = run.compiled;
  import.asyncTensor = run.asyncTensor;
  import.flashAttention = run.flashAttention;
  if (run.fp8Training)
    import.fp8Training = Setting<Fp8Training>{.value = *run.fp8Training};
  else
    import.operands = run.operands;
  import.chosen.emplace();
  import.chosen->why = rowsReason;
  import.chosen->checkpoint = checkpointMode(run.recompute);
  result.recomputedShare = run.recomputedShare;
  if (run.activationOffload)
    import.chosen->offloadLayerInputs = true;
  // A choice replaces what DeepSpeed's file asks for.
  if (run.executor != FrameworkKind::Deepspeed ||
      (run.activationOffload && run.zeroStage > 0)) {
    if (run.offloadParameters)
      import.chosen->offloadParameters = true;
    if (run.offloadOptimizer || run.offloadParameters)
      import.chosen->offloadOptimizer = true;
  }
  return result;
}

std::optional<DecidedStep> decide(mlir::MLIRContext &context, const RunJob &job,
                                  const Target &target,
                                  DiagnosticEngine &engine) {
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
    if (d.getSeverity() == mlir::DiagnosticSeverity::Error)
      engine.error("plan", "", d.str());
    return mlir::success();
  });
  huggingface::BuildOptions build;
  build.microBatch = job.import.microBatch;
  build.sequenceLength = job.import.sequenceLength;
  build.eagerAttention = job.eagerAttention;
  auto module = huggingface::buildModel(context, job.model, build, engine);
  if (mlir::failed(module))
    return std::nullopt;
  if (job.adapter && failed(applyAdapter(**module, *job.adapter, engine)))
    return std::nullopt;
  if (job.adapterAsLoaded)
    for (auto param : (**module).getOps<sharding::ParamOp>())
      param.setKeepsDtype(false);
  plan::Job training;
  training.optimizer = job.job.optimizer.resolved();
  training.microBatch = job.import.microBatch;
  training.sequenceLength = job.import.sequenceLength;
  training.accumulation = job.import.accumulation;
  ImportOptions import = job.import;
  import.capability = target.capability;
  shareCheckpoints(**module, job.recomputedShare, *import.chosen);
  if (mlir::failed(importJob(**module, job.job, training, import, engine)) ||
      mlir::failed(runDecisions(**module)) ||
      mlir::failed(runDifferentiation(**module)))
    return std::nullopt;
  StepModelOptions options;
  options.target = &target;
  auto step = decidedStep(**module, options);
  if (mlir::failed(step))
    return std::nullopt;
  return std::move(*step);
}

} // namespace accel::validate
