//===- ImportModule.cpp - Inputs as a module of phase model ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/ImportModule.h"

#include "dialects/Sharding/Sharding.h"
#include "frontends/HuggingFace/BuildModel.h"
#include "frontends/TorchExport/BuildProgram.h"
#include "passes/Adapters/ApplyAdapter.h"
#include "tools/driver/Inputs/AdapterInputs.h"
#include "tools/driver/Inputs/CompileInputs.h"
#include "tools/driver/Inputs/Fp8Inputs.h"
#include "tools/driver/Inputs/LoopInputs.h"
#include "tools/driver/Inputs/OptimizerInputs.h"

#include <map>

using namespace mlir;

namespace accel {

ImportOptions importOptions(const PlanInputs &inputs,
                            const PlanOptions &options, const Target *target) {
  ImportOptions import;
  import.modelName = inputs.modelName;
  // Without a target, accelerate's own device: GPUs unless use_cpu.
  import.device = target ? (target->kind == TargetKind::Cpu ? "cpu" : "cuda")
                  : inputs.job.accelerate.cpu.value ? "cpu"
                                                    : "cuda";
  import.capability = target ? target->capability : 0;
  import.microBatch = inputs.training.microBatch;
  import.sequenceLength = inputs.training.sequenceLength;
  import.accumulation = inputs.training.accumulation;
  import.checkpointDtype = inputs.loadedDtype();
  import.adapted = inputs.adapter.has_value();
  import.versions.transformers = options.script.versions.transformers;
  import.ranksPerNode =
      options.nodes ? inputs.job.accelerate.numProcesses.value / *options.nodes
                    : inputs.job.accelerate.processesPerMachine();
  import.framework = inputs.executor;
  import.trainer = inputs.trainer;
  import.versions.accelerate = inputs.job.accelerate.version;
  if (!inputs.job.accelerate.torchVersion.empty())
    import.versions.torch = inputs.job.accelerate.torchVersion;
  if (inputs.torchVersion)
    import.versions.torch = *inputs.torchVersion;
  import.holdOutputs = options.holdOutputs;
  const ScriptSettings &script = inputs.job.script;
  import.generationBytes = options.script.generationBytes.value_or(0);
  if (script.generationShare.value && target)
    import.generationBytes = static_cast<int64_t>(
        *script.generationShare.value *
        static_cast<double>(target->memoryBytes.value_or(0)));
  import.gradientCheckpointing = recomputesLayers(inputs, options);
  const DdpConfig &ddp = inputs.job.ddp;
  import.ddp = options.ddp.value_or(
      DdpKwargs{*ddp.bucketBytes, *ddp.gradientAsBucketView, *ddp.commHook});
  // torch's default, whose first bucket is smaller.
  if (import.framework == FrameworkKind::Ddp &&
      import.ddp.bucketBytes == int64_t(25) << 20)
    import.ddp.bucketBytes.reset();
  if (!import.ddp.bucketBytes)
    import.ddp.bucketBytes = *script.ddpBucketBytes;
  import.keepUnsharded = options.keepUnsharded;
  if (!import.keepUnsharded && *script.syncEachBatch)
    import.keepUnsharded = false;
  // accel-run's own request has the line as its reason.
  if (!import.keepUnsharded && inputs.job.reducesOnce.written() &&
      inputs.executor != FrameworkKind::AccelRun)
    import.keepUnsharded = *inputs.job.reducesOnce;
  import.activationBudgetBytes = options.activationBudgetBytes;
  import.tf32 = *script.tf32;
  import.flashAttention =
      *script.attention == AttentionKernel::FlashAttention2 ||
      *script.attention == AttentionKernel::FlashAttention3;
  import.compiledWhole = compiledWhole(inputs);
  import.replaysGraphs = replaysGraphs(inputs).has_value();
  // torchtitan compiles each block of its own model (apply_compile).
  if (import.compiledWhole && !import.trainer.empty()) {
    import.compile = true;
    import.compiledWhole.reset();
    import.replaysGraphs = false;
  }
  import.asyncTensor = options.asyncTensor;
  import.fp8Training = fp8Training(inputs);
  if (inputs.job.lossChunks.written())
    import.lossChunks = inputs.job.lossChunks.value;
  if (*script.fusedLoss) {
    import.lossChunks = LossChunks(); // as the kernel cuts it
    import.lossWhy = script.fusedLoss.key;
    // axolotl asks for the loss alone.
    if (script.owner != "axolotl")
      import.kernels.push_back(frameworks::KernelSet::Liger);
  } else if (const int64_t rows = *script.lossChunkRows) {
    const int64_t tokens = import.microBatch * import.sequenceLength;
    import.lossChunks =
        LossChunks{std::max<int64_t>(1, (tokens + rows - 1) / rows)};
    import.lossWhy = script.lossChunkRows.why;
  }
  if (options.lossChunks) {
    import.lossChunks = options.lossChunks;
    import.lossWhy = "--loss-chunks";
  }
  // Others than accel-run chunk the loss in a fused kernel.
  if (import.lossChunks && import.lossChunks->isAuto() &&
      inputs.executor != FrameworkKind::AccelRun)
    import.fusedLoss = true;
  import.target = inputs.targetName;
  import.prefetchForward = import.prefetchBackward = options.prefetch;
  return import;
}

static FailureOr<OwningOpRef<mlir::ModuleOp>>
buildModule(MLIRContext &context, const Model &model,
            const huggingface::BuildOptions &options,
            DiagnosticEngine &engine) {
  if (const auto *config = model.config())
    return huggingface::buildModel(context, *config, options, engine);
  torchexport::Sizes sizes = model.openSizes();
  sizes.microBatch = options.microBatch;
  sizes.sequenceLength = options.sequenceLength;
  sizes.targetLength = options.targetLength;
  return torchexport::buildProgram(context, *model.program(), sizes, engine);
}

/// Where the weights have other names than the model, or no head.
static void nameStored(mlir::ModuleOp module, const PlanInputs &inputs) {
  if (inputs.held.prefix.empty() && inputs.held.fresh.empty())
    return;
  const huggingface::ModelInfo &info = inputs.model.info();
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < info.parameters.size(); ++i)
    numbers[info.parameters[i].fqn] = i;
  Builder b(module.getContext());
  for (auto param : module.getOps<sharding::ParamOp>())
    if (auto at = numbers.find(param.getFqn().str()); at != numbers.end())
      if (auto names = namesInCheckpoint(inputs.held, info, at->second))
        param.setBaseNamesAttr(b.getStrArrayAttr(
            SmallVector<StringRef>(names->begin(), names->end())));
}

AdapterConfig::Functions adapterFunctions(const PlanInputs &inputs,
                                          const ImportOptions &options) {
  return inputs.adapter && options.framework != FrameworkKind::AccelRun
             ? inputs.adapter->functions
             : AdapterConfig::Functions();
}

FailureOr<OwningOpRef<mlir::ModuleOp>> importModel(MLIRContext &context,
                                                   const PlanInputs &inputs,
                                                   const ImportOptions &options,
                                                   DiagnosticEngine &engine) {
  huggingface::BuildOptions build;
  build.microBatch = options.microBatch;
  build.sequenceLength = options.sequenceLength;
  build.targetLength = inputs.job.data.targetLength.value.value_or(0);
  build.eagerAttention = *inputs.job.script.attention == AttentionKernel::Eager;
  for (const auto &[name, path] : inputs.job.data.arrays)
    build.inputs.insert(name);
  build.images = inputs.images;
  if (hasDocuments(inputs.job))
    build.inputs.insert(huggingface::positionsInput);
  FailureOr<OwningOpRef<mlir::ModuleOp>> module =
      buildModule(context, inputs.model, build, engine);
  if (failed(module))
    return failure();
  nameStored(**module, inputs);
  if (std::optional<AdapterConfig> adapter = inputs.adapter) {
    adapter->functions = adapterFunctions(inputs, options);
    if (failed(applyAdapter(**module, *adapter, engine)))
      return failure();
  }
  if (!checkAdapterWeights(**module, inputs, engine))
    return failure();
  return module;
}

namespace {

/// Units of layers that stay gathered, by the names that `wrap` gives them.
std::vector<std::string> keptUnits(const tune::Space &space,
                                   const StepModel &model,
                                   const Candidate &candidate,
                                   const tune::Point &point) {
  const tune::WrapOption &wrap = space.wraps[point[tune::Knob::Wrap]];
  std::vector<std::string> result;
  for (int u = 0; u < wrap.units; ++u) {
    auto range = wrap.layers[u];
    if (range[0] < 0 || candidate.reshardAfterForward[u])
      continue;
    const std::string &layer = model.calls[space.layers[range[0]]].path;
    std::string block; // what all parameters of half a layer are in
    for (size_t p = 0; p < model.parameters.size() && wrap.perLayer < 1; ++p) {
      if (candidate.unitOf[p] != u)
        continue;
      const std::string &fqn = model.parameters[p].fqn;
      std::string child = fqn.substr(0, fqn.find('.', layer.size() + 1));
      block = block.empty() || block == child ? child : layer;
    }
    result.push_back(block.empty() ? layer : block);
  }
  return result;
}

void chooseWrap(const Advice &advice, const tune::WrapOption &wrap,
                ImportOptions::Chosen &chosen) {
  const tune::LayerClasses &classes = advice.editor->layerClasses();
  if (wrap.perLayer > 1) {
    chosen.layersPerUnit = static_cast<int64_t>(wrap.perLayer + 0.999);
    chosen.wrapClasses = classes.layers;
    return;
  }
  chosen.wrapClasses = classes.layers;
  if (wrap.perLayer < 1)
    chosen.wrapClasses->insert(chosen.wrapClasses->end(),
                               classes.blocks.begin(), classes.blocks.end());
}

/// The mode of the segments without a path is the job's, others have their
/// own.
void chooseCheckpoint(const StepModel &model, const Candidate &candidate,
                      ImportOptions::Chosen &chosen) {
  auto variantOf = [&](size_t call) -> const SegmentVariant & {
    return model.kinds[model.calls[call].kind]
        .variants[candidate.variants[call]];
  };
  auto modeOf = [&](size_t call) { return variantOf(call).name; };
  chosen.checkpoint = "pointwise";
  for (size_t c = 0; c < model.calls.size(); ++c)
    if (model.calls[c].path.empty() && modeOf(c) == "none" &&
        model.kinds[model.calls[c].kind].variants.size() > 1)
      chosen.checkpoint = "none";
  for (size_t c = 0; c < model.calls.size(); ++c) {
    std::string mode = modeOf(c);
    if (variantOf(c).solved)
      chosen.keeps[model.calls[c].path] = {
          variantOf(c).keeps,
          chosen.why + ": " + mode + ", solved for the least recomputation"};
    else if (!model.calls[c].path.empty() && mode != chosen.checkpoint &&
             model.kinds[model.calls[c].kind].variants.size() > 1)
      chosen.calls[model.calls[c].path] = mode;
  }
}

} // namespace

void choose(const Advice &advice, const tune::Point &point, PlanInputs &inputs,
            ImportOptions &options) {
  const tune::Space &space = *advice.space;
  const StepModel &model = *advice.model;
  Candidate candidate = tune::expand(space, model, point);
  auto differs = [&](tune::Knob knob) {
    return point[knob] != space.configured[knob];
  };
  ImportOptions::Chosen chosen;
  chosen.why = "the search chose it (accel-opt explain PLAN job)";
  if (differs(tune::Knob::Wrap))
    chooseWrap(advice, space.wraps[point[tune::Knob::Wrap]], chosen);
  if (differs(tune::Knob::Reshard) || differs(tune::Knob::Wrap)) {
    int kept = point[tune::Knob::Reshard];
    bool all = kept && kept == static_cast<int>(space.layers.size());
    chosen.reshard = !all;
    if (!all)
      chosen.keep = keptUnits(space, model, candidate, point);
  }
  if (point.counts != space.configured.counts)
    chooseCheckpoint(model, candidate, chosen);
  // A whole mesh is that of the inputs.
  const bool whole = space.mesh(point).whole();
  if (differs(tune::Knob::Mesh) && !whole)
    chosen.mesh = candidate.mesh;
  if (differs(tune::Knob::ParameterOffload) ||
      differs(tune::Knob::OptimizerOffload) ||
      differs(tune::Knob::ActivationOffload)) {
    chosen.offloadParameters = candidate.offloadParameters;
    chosen.offloadOptimizer = candidate.offloadOptimizer;
    chosen.offloadLayerInputs = point[tune::Knob::ActivationOffload] > 0;
  }
  if (differs(tune::Knob::ZeroStage))
    chosen.zeroStage = candidate.zeroStage;
  if (differs(tune::Knob::Bucket))
    chosen.bucketBytes = candidate.bucketBytes;
  options.chosen = chosen;
  if (int precision = point[tune::Knob::Precision]) {
    inputs.job = inputs.precisions[precision - 1].job;
    inputs.training.precision =
        toString(inputs.job.accelerate.mixedPrecision.value);
    inputs.training.lossScaling = inputs.job.precision.value.lossScaling;
  }
  if (differs(tune::Knob::Optimizer) &&
      options.framework != FrameworkKind::AccelRun) {
    setOptimizer(options.versions.transformers, inputs.job,
                 *plan::findTransformersOptimizer(
                     space.optimizers[point[tune::Knob::Optimizer]].name));
    inputs.training.optimizer = inputs.job.optimizer.resolved();
  }
  options.prefetchForward = candidate.forwardPrefetch;
  options.prefetchBackward = candidate.backwardPrefetch;
  options.keepUnsharded = !candidate.reduceEachMicroBatch;
  if (differs(tune::Knob::Reductions)) {
    options.awaitReductions = candidate.awaitReductions;
    options.reductionsWhy = chosen.why;
  }
  if (differs(tune::Knob::Loss) && advice.executor == FrameworkKind::AccelRun) {
    options.lossChunks = LossChunks{space.modelChunks(point)};
    options.lossWhy = chosen.why;
  } else if (differs(tune::Knob::Loss) &&
             frameworks::framework(options.framework).eager()) {
    const int64_t chunks = space.lossChunks[point[tune::Knob::Loss]];
    options.fusedLoss = chunks == 0;
    options.lossChunks.reset();
    if (chunks > 1)
      options.lossChunks = LossChunks{chunks};
    options.lossWhy = chosen.why;
  }
  const tune::SplitOption &split = space.splits[point[tune::Knob::Split]];
  options.microBatch = inputs.training.microBatch = split.microBatch;
  options.accumulation = inputs.training.accumulation =
      space.accumulationOf(point);
}

} // namespace accel
