//===- DecidedCandidate.cpp - The candidate that a module decides ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/DecidedCandidate.h"

#include "dialects/Sharding/Sharding.h"
#include "passes/Differentiate/Differentiate.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Loss/LossHead.h"
#include "passes/Pipeline/JobAttr.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace accel {
namespace {

/// The variant of that name, or the first.
int variantNamed(const SegmentKind &kind, StringRef name) {
  for (size_t i = 0; i < kind.variants.size(); ++i)
    if (name == kind.variants[i].name)
      return static_cast<int>(i);
  return 0;
}

frameworks::Precision precisionOf(sharding::PrecisionAttr attr) {
  auto dtype = [&](Type type) {
    return toDType(type ? type : attr.getStorage()).value_or(plan::DType::F32);
  };
  frameworks::Precision p;
  p.storage = dtype(attr.getStorage());
  p.compute = dtype(attr.getCompute());
  p.reduce = dtype(attr.getReduce());
  p.output = dtype(attr.getOutput());
  p.gradient = dtype(attr.getGradient());
  p.state = dtype(attr.getState());
  p.autocast = attr.getAutocast();
  p.masterCopy = attr.getMasterCopy();
  return p;
}

class CandidateReader {
public:
  CandidateReader(mlir::ModuleOp module, const StepModel &model)
      : module(module), model(model), framework(frameworkOf(module)) {}

  FailureOr<Candidate> run() {
    auto job = sharding::findOnly<sharding::JobOp>(module);
    auto mesh = sharding::findOnly<sharding::MeshOp>(module);
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    if (!job || !mesh || !graph)
      return module.emitError("a candidate needs a sharding.mesh, a "
                              "sharding.job and a sharding.graph");
    auto accumulation = job.getAccumulationAttr();
    if (!accumulation || !job.getUpdateAttr())
      return job.emitOpError("lacks the decision ")
             << (accumulation ? "update" : "accumulation");
    candidate.executor = framework.kind();
    candidate.mesh.axes.clear();
    for (auto axis : mesh.getAxes().getAsRange<sharding::AxisAttr>())
      candidate.mesh.resize(axis.getName().str(), axis.getSize());
    candidate.ranksPerNode =
        std::max<int64_t>(job.getRanksPerNode().value_or(1), 1);
    candidate.accumulation = accumulation.getSteps();
    candidate.reduceEachMicroBatch =
        accumulation.getMode() == sharding::AccumulationMode::ReduceEach;
    if (auto prefetch = job.getPrefetchAttr()) {
      candidate.forwardPrefetch = static_cast<int>(prefetch.getForward());
      candidate.backwardPrefetch = static_cast<int>(prefetch.getBackward());
    }
    if (auto reductions = job.getReductionsAttr())
      candidate.awaitReductions = reductions.getAwait();
    if (auto gathers = job.getGathersAttr())
      candidate.holdGathers = gathers.getHeld();
    candidate.holdsOutputs = job.getHoldOutputs();
    const frameworks::Kernels kernels = kernelsOf(module);
    readScript(kernels);
    candidate.compiled = kernels.compiled || job.getCompileAttr();
    candidate.compiledWhole =
        job.getCompileAttr() &&
        job.getCompileAttr().getRegions() == sharding::CompileRegions::Model;
    candidate.replaysGraphs =
        job.getCompileAttr() && job.getCompileAttr().getReplays();
    candidate.lossOutside = kernels.lossOutside;
    const frameworks::Versions versions = versionsOf(module);
    candidate.torchVersion = versions.torch;
    candidate.accelerateVersion = versions.accelerate;
    readUnits();
    readPrecision();
    if (failed(readCalls(job, graph)))
      return failure();
    readFramework(job);
    return candidate;
  }

private:
  void readScript(const frameworks::Kernels &kernels) {
    const ScriptTraits script = scriptOf(module);
    // Trainers with models of their own make them on the meta device. A model
    // with weights of bitsandbytes is whole on each rank: rank 0 sends nothing
    // (fsdp2_prepare_model).
    const bool quantized = llvm::any_of(
        model.parameters, [](const StepParameter &p) { return p.quantized(); });
    if (kernels.transformers && !script.loadsShards)
      candidate.loading = script.loadsWhole || quantized ||
                                  framework.kind() == FrameworkKind::Fsdp1
                              ? Candidate::Loading::ByUnit
                              : Candidate::Loading::ByParameter;
    candidate.reentrantCheckpoints = script.reentrant;
    // Models checkpointed `decoder_layer.__call__`; layers checkpoint their own
    // forward since (GradientCheckpointingLayer).
    candidate.checkpointsUnits = !atLeast(script.transformers, "4.52");
    PreferenceStep &preference = candidate.preference;
    if (script.reference == "second")
      preference.reference = PreferenceStep::Reference::Second;
    else if (script.reference == "itself")
      preference.reference = PreferenceStep::Reference::Itself;
    preference.scoresFirst = script.scoresFirst;
    preference.scoresItself = script.scoresItself;
    preference.logProbabilities = script.logProbabilities;
    preference.whole = script.wholeLogProbabilities;
    preference.generationBytes = script.generationBytes;
  }

  /// From the module, not the step model, which other wrappings share.
  void readUnits() {
    llvm::StringMap<int> parameters, units;
    for (size_t p = 0; p < model.parameters.size(); ++p)
      parameters[model.parameters[p].fqn] = static_cast<int>(p);
    candidate.unitOf.assign(model.parameters.size(), 0);
    for (auto unit : module.getOps<sharding::UnitOp>()) {
      StringRef name = unit.getName();
      int number = candidate.numUnits();
      // Frameworks that gather both keep the frozen part in the same unit.
      StringRef stem = name;
      auto whole = framework.joinsFrozen() && stem.consume_back("/frozen")
                       ? units.find(stem)
                       : units.end();
      if (whole != units.end()) {
        number = whole->second;
      } else {
        units[name] = number;
        // ZeRO's stage decides whether its modules are sharded at all.
        candidate.reshardAfterForward.push_back(
            unit.getReshardAttr().getAfterForward() ||
            framework.unitsByModule());
        candidate.wholeParameters |= unit.getReshardAttr().getWhole();
        if (llvm::any_of(unit.getModules().getAsRange<StringAttr>(),
                         [](StringAttr m) { return m.empty(); }))
          candidate.rootUnit = number;
      }
      for (auto fqn : unit.getParams().getAsRange<StringAttr>())
        if (auto at = parameters.find(fqn.getValue()); at != parameters.end())
          candidate.unitOf[at->second] = number;
    }
  }

  /// Of the first unit that is trained; frozen ones differ in their storage.
  void readPrecision() {
    llvm::StringMap<sharding::ParamOp> params;
    for (auto param : module.getOps<sharding::ParamOp>())
      params[param.getFqn()] = param;
    sharding::PrecisionAttr trained, any, base;
    bool upcastFrozen = false, asLoaded = true, asStored = true;
    for (auto unit : module.getOps<sharding::UnitOp>()) {
      auto precision = unit.getPrecisionAttr();
      if (!precision || unit.getParams().empty())
        continue;
      auto fqn = cast<StringAttr>(unit.getParams()[0]).getValue();
      sharding::ParamOp param = params.lookup(fqn);
      if (!any)
        any = precision;
      if (!base && param && !param.getKeepsDtype())
        base = precision;
      // A framework may cast parameters of several dtypes to one.
      for (auto name : unit.getParams().getAsRange<StringAttr>()) {
        sharding::ParamOp held = params.lookup(name.getValue());
        asLoaded &= held && held.getTensorType().getElementType() ==
                                precision.getStorage();
      }
      asStored &= precision.getCompute() == precision.getStorage();
      if (param && !param.getFrozen() && !trained)
        trained = precision;
      if (param && param.getFrozen() &&
          param.getTensorType().getElementType() != precision.getStorage())
        upcastFrozen = true;
    }
    if (!trained)
      trained = any;
    if (!trained)
      return;
    // Where each parameter has its own dtype, the dtypes is the base model's.
    const bool own = asLoaded && asStored;
    candidate.dtypes =
        stepDtypesOf(precisionOf(own && base ? base : trained), upcastFrozen);
    candidate.dtypes.storesAsLoaded = asLoaded;
    candidate.dtypes.computesAsStored = own;
    candidate.dtypes.gathersAsStored = scriptOf(module).autocastAlone;
  }

  /// The model may have calls that the module's functions, of signatures alone,
  /// are not read for: masks and the like, which kernels make once
  /// (passes/Kernels/EagerForm.h).
  LogicalResult readCalls(sharding::JobOp job, sharding::GraphOp graph) {
    auto usual = job.getCheckpointAttr();
    const bool asked =
        job.getOffloadAttr() && job.getOffloadAttr().getActivations();
    candidate.offloadSaved =
        asked && framework.kind() == FrameworkKind::AccelRun;
    const bool offload = asked && !candidate.offloadSaved;
    auto calls = llvm::to_vector(graph.getBody().getOps<sharding::CallOp>());
    const bool whole = calls.size() == model.calls.size();
    auto next = calls.begin();
    for (const StepCall &of : model.calls) {
      if (!whole &&
          (next == calls.end() ||
           !isVariantOf(model.kinds[of.kind].name, next->getCallee()))) {
        candidate.variants.push_back(0);
        candidate.offloadActivations.push_back(false);
        continue;
      }
      sharding::CallOp call = *next++;
      auto how = call.getCheckpointAttr();
      const sharding::CheckpointMode mode =
          how     ? how.getMode()
          : usual ? usual.getMode()
                  : sharding::CheckpointMode::None;
      StringRef name = mode == sharding::CheckpointMode::None   ? "none"
                       : mode == sharding::CheckpointMode::Full ? "full"
                                                                : "pointwise";
      candidate.variants.push_back(variantNamed(model.kinds[of.kind], name));
      candidate.offloadActivations.push_back(name == "full" && offload);
      // The functions of accel-run hold the chunks themselves.
      if (auto loss = call->getAttrOfType<sharding::LossAttr>(lossAttr);
          loss && framework.eager())
        candidate.lossChunks = loss.getChunks();
    }
    if (next != calls.end())
      return job.emitError("the job has calls that the step model has not");
    return success();
  }

  void readFramework(sharding::JobOp job) {
    plan::Job training;
    if (auto attr = job.getTrainingAttr())
      (void)jobFromAttr(attr, training);
    auto step = job.getOptimizerStepAttr();
    plan::UpdateHabits habits;
    if (step)
      habits = {step.getOneByOne(), step.getPaged(), step.getWideEmbeddings()};
    candidate.update = makeUpdateRule(
        training.optimizer,
        step && step.getState() ? toDType(step.getState()) : std::nullopt,
        habits);
    candidate.optimizer = framework.optimizerKernel(false).value;
    if (step) {
      candidate.optimizer =
          step.getKernel() == sharding::OptimizerKernel::Fused
              ? OptimizerKernel::Fused
          : step.getKernel() == sharding::OptimizerKernel::Foreach
              ? OptimizerKernel::Foreach
              : OptimizerKernel::ForLoop;
      candidate.clipGradients = step.getClip();
    } else {
      // accel-run: its job says so.
      candidate.clipGradients =
          training.optimizer.maxGradNorm > 0 || training.onNan == "skip";
    }
    if (auto offload = job.getOffloadAttr()) {
      candidate.offloadParameters = offload.getParameters();
      candidate.offloadOptimizer = offload.getOptimizer();
      if (offload.getDisk())
        candidate.disk = toDisk(offload.getDisk());
    }
    if (auto ddp = job.getDdpAttr()) {
      candidate.bucketBytes = ddp.getBucketBytes();
      candidate.firstBucketBytes = ddp.getFirstBucketBytes();
      candidate.gradientAsBucketView = ddp.getGradientAsBucketView();
      candidate.commHook = ddp.getHook().str();
    }
    if (auto megatron = job.getMegatronAttr()) {
      const frameworks::Kernels kernels = kernelsOf(module);
      candidate.megatron = {
          megatron.getDistributed(),
          megatron.getOverlapGradients(),
          megatron.getOverlapParameters(),
          kernels.attention == frameworks::AttentionKernel::Fused,
          static_cast<int>(megatron.getChunks()),
          static_cast<int>(megatron.getLastLayers()),
          megatron.getExperts(),
          megatron.getExpertTensor(),
          narrowWeightBytes(job, kernels.operands),
          static_cast<bool>(megatronRequest("shards_parameters")),
          offloadedLayers()};
    }
    if (auto zero = job.getZeroAttr()) {
      candidate.zeroStage = static_cast<int>(zero.getStage());
      candidate.zero.reduceBucket = zero.getReduceBucket();
      candidate.zero.prefetchBucket = zero.getPrefetchBucket();
      candidate.zero.persistenceThreshold = zero.getPersistenceThreshold();
      candidate.zero.overlap = zero.getOverlapCommunication();
      candidate.zero.subGroup = zero.getSubGroup();
      if (auto plus = zero.getPlus()) {
        candidate.zero.secondaryRanks = plus.getSecondary();
        candidate.zero.quantizedWeights = plus.getWeights();
        candidate.zero.quantizedGradients = plus.getGradients();
      }
    }
  }

  mlir::Attribute megatronRequest(llvm::StringRef name) const {
    auto request = sharding::findRequest(module, "megatron");
    return request ? request.getValue().get(name) : mlir::Attribute();
  }
  int offloadedLayers() const {
    auto layers = mlir::dyn_cast_or_null<mlir::IntegerAttr>(
        megatronRequest("offloaded_layers"));
    return layers ? static_cast<int>(layers.getInt()) : 0;
  }

  /// Of a weight that has 8 or 4 bits itself (fp8_param_gather,
  /// fp4_param_gather): with a scale for each block there is a copy for each
  /// order; with one scale Hopper's matmuls need the transpose too, and
  /// Blackwell's do not (is_non_tn_fp8_gemm_supported,
  /// transformer_engine/pytorch/utils.py).
  static double narrowWeightBytes(sharding::JobOp job,
                                  LinearOperands operands) {
    const auto capability = job.getCapability();
    const bool blackwell = capability && capability->convertToDouble() >= 10.0;
    const bool one = operands == LinearOperands::Fp8 && blackwell;
    return (one ? 1 : 2) * bytesOfOperand(operands);
  }

  mlir::ModuleOp module;
  const StepModel &model;
  const frameworks::Framework &framework;
  Candidate candidate;
};

} // namespace

FailureOr<Candidate> decidedCandidate(mlir::ModuleOp module,
                                      const StepModel &model) {
  return CandidateReader(module, model).run();
}

FailureOr<DecidedStep> decidedStep(mlir::ModuleOp module,
                                   const StepModelOptions &options) {
  FailureOr<StepModel> model = buildStepModel(module, options);
  if (failed(model))
    return failure();
  DecidedStep step;
  step.model = std::make_shared<const StepModel>(std::move(*model));
  FailureOr<Candidate> candidate = decidedCandidate(module, *step.model);
  if (failed(candidate))
    return failure();
  step.candidate = std::move(*candidate);
  return step;
}

} // namespace accel
