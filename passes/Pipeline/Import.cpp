//===- Import.cpp - A job and a model as the model phase ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/Import.h"

#include "dialects/Sharding/Sharding.h"
#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/Job/QuantizedRefusals.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Pipeline/JobAttr.h"
#include "passes/Pipeline/ParamRules.h"
#include "passes/Pipeline/Requests.h"
#include "passes/Quantize/MarkQuantized.h"
#include "passes/Random/SeparateEval.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace accel {
namespace {

class Importer : RequestWriter {
public:
  Importer(mlir::ModuleOp module, const JobConfig &job, plan::Job &training,
           const ImportOptions &options, DiagnosticEngine &engine)
      : RequestWriter(module, job, options), training(training),
        engine(engine) {}

  LogicalResult run() {
    addMesh();
    if (failed(markParameters()))
      return failure();
    addJob();
    if (framework.eager())
      setScript(module, scriptTraits());
    requestWrap(*this);
    requestPrecision();
    requestReshard(*this);
    requestCheckpoint();
    requestLoss();
    if (job.sequenceParallel.value)
      request(
          sequenceRequest, {},
          because(job.sequenceParallel, "sequence_parallel of the job file"));
    requestExperts();
    if (training.sampling.count > 0 || !training.evalPredictions.empty() ||
        llvm::is_contained(training.evalMetrics, "accuracy"))
      request(predictionsRequest, {},
              plain("the evaluation of the job file asks for them"));
    if (framework.kind() == FrameworkKind::Megatron)
      requestMegatronExchanges();
    else if (accelerate.contextSends.value && framework.eager())
      request(contextSendsRequest, {},
              because(accelerate.contextSends, "cp_comm_strategy"));
    SmallVector<NamedAttribute> pipeline;
    if (*job.pipelineChunks > 1)
      pipeline.push_back(
          b.getNamedAttr("chunks", b.getI64IntegerAttr(*job.pipelineChunks)));
    if (*job.splitBackward)
      pipeline.push_back(b.getNamedAttr("split_backward", b.getUnitAttr()));
    if (*job.forwardsFirst)
      pipeline.push_back(b.getNamedAttr("forwards_first", b.getUnitAttr()));
    if (!pipeline.empty())
      request("pipeline", pipeline,
              *job.splitBackward
                  ? because(job.splitBackward, "schedule of the pipeline")
              : *job.forwardsFirst
                  ? because(job.forwardsFirst, "schedule of the pipeline")
                  : because(job.pipelineChunks, "chunks of the pipeline"));
    requestPrefetch();
    requestWaits();
    requestAccumulation();
    requestCompile();
    requestFp8();
    requestFramework(*this);
    return success();
  }

private:
  void requestExperts() {
    // transformers allocates for the rows that come, of which a router that is
    // balanced sends each expert as many.
    const bool library = framework.kind() == FrameworkKind::Fsdp2;
    const auto &own = *job.script.ownShards;
    if (accelerate.mesh->size(plan::expertAxis) == 1 &&
        !(library && own && own->experts > 1))
      return;
    SmallVector<StringRef> axes = {plan::expertAxis};
    if (library && accelerate.mesh->size("tp") > 1)
      axes.push_back("tp"); // transformers' ep_size counts them too
    SmallVector<NamedAttribute> value = {
        b.getNamedAttr("axes", b.getStrArrayAttr(axes)),
        b.getNamedAttr("imbalance",
                       b.getF64FloatAttr(library ? 1 : *job.expertImbalance))};
    flag(value, "sorts_again", library);
    request(expertsRequest, value,
            because(accelerate.mesh, library ? "ep_size in distributed_config"
                                             : "ep in the mesh"));
  }

  /// Transformer Engine's ring sends keys from neighbour to neighbour
  /// (cp_comm_type p2p, Megatron's default).
  void requestMegatronExchanges() {
    request(contextSendsRequest, {}, plain("Megatron's cp_comm_type is p2p"));
    if (const auto &megatron = accelerate.megatron;
        megatron && *megatron->sequenceParallelism)
      request(sequenceRequest, {},
              because(megatron->sequenceParallelism, "sequence parallelism"));
  }

  ScriptTraits scriptTraits() const {
    const ScriptSettings &script = job.script;
    ScriptTraits traits;
    traits.transformers = options.versions.transformers;
    traits.reentrant = job.reentrantCheckpointing.value;
    if (*script.reference != ReferenceModel::None)
      traits.reference =
          *script.reference == ReferenceModel::Second ? "second" : "itself";
    traits.scoresFirst = script.trainer == TrainerKind::Grpo;
    traits.scoresItself = script.scoresItself;
    traits.logProbabilities = script.trainer == TrainerKind::Dpo ||
                              script.trainer == TrainerKind::Grpo;
    traits.wholeLogProbabilities = script.wholeLogProbabilities;
    traits.generationBytes = options.generationBytes;
    const bool shardsModules = framework.kind() == FrameworkKind::Fsdp1 ||
                               framework.kind() == FrameworkKind::Fsdp2;
    traits.loadsShards = shardsModules && *script.ownShards;
    traits.loadsWhole = shardsModules && !*script.ownShards &&
                        !accelerate.cpuRamEfficientLoading.value;
    const PrecisionPolicy &policy = job.precision.value;
    traits.autocastAlone = *script.ownShards && policy.autocast &&
                           !policy.param &&
                           framework.kind() == FrameworkKind::Fsdp2;
    return traits;
  }

  void requestPrefetch() {
    auto usual = framework.prefetch();
    if (!usual)
      return;
    int64_t forward = usual->value.forward, backward = usual->value.backward;
    sharding::BecauseAttr why = plain(std::string("default: ") + usual->why);
    // A layer's experts are a unit of their own.
    if (accelerate.mesh->size(plan::expertAxis) > 1 &&
        framework.kind() == FrameworkKind::AccelRun) {
      forward *= 2;
      backward *= 2;
      why = plain("default: a layer, which is two units where ranks share its "
                  "experts");
    }
    if (framework.kind() == FrameworkKind::Fsdp1) {
      forward = accelerate.forwardPrefetch.value ? 1 : 0;
      backward =
          accelerate.backwardPrefetch.value == BackwardPrefetch::None ? 0 : 1;
      why = accelerate.forwardPrefetch.written()
                ? because(accelerate.forwardPrefetch, "")
                : because(accelerate.backwardPrefetch, usual->why);
    }
    if (options.prefetchForward || options.prefetchBackward) {
      // accel-run's reason stands whatever the depth.
      if (framework.eager())
        why = plain(options.chosen ? options.chosen->why : "--prefetch");
      forward = options.prefetchForward.value_or(forward);
      backward = options.prefetchBackward.value_or(backward);
    }
    request("prefetch",
            {b.getNamedAttr("forward", b.getI64IntegerAttr(forward)),
             b.getNamedAttr("backward", b.getI64IntegerAttr(backward))},
            why);
  }

  /// What a backward waits for is asked where it is chosen or written.
  void requestWaits() {
    if (framework.kind() != FrameworkKind::AccelRun)
      return;
    requestWaits("gathers", "held", options.holdGathers, options.gathersWhy,
                 job.holdGathers);
    requestWaits("reductions", "await", options.awaitReductions,
                 options.reductionsWhy, job.awaitReductions);
  }
  void requestWaits(StringRef what, StringRef count,
                    std::optional<int64_t> chosen, const std::string &why,
                    const Setting<std::optional<int64_t>> &written) {
    if (!chosen && !written.value)
      return;
    request(what,
            {b.getNamedAttr(
                count, b.getI64IntegerAttr(chosen ? *chosen : *written.value))},
            chosen ? plain(why) : because(written, written.key));
  }

  void requestCompile() {
    SmallVector<NamedAttribute> value;
    flag(value, "layers", options.compile);
    flag(value, "fp8", options.operands == LinearOperands::Fp8);
    flag(value, "mxfp8", options.operands == LinearOperands::Mxfp8);
    flag(value, "nvfp4", options.operands == LinearOperands::Nvfp4);
    flag(value, "async_tensor", options.asyncTensor);
    flag(value, "tf32", options.tf32);
    flag(value, "flash_attention", options.flashAttention);
    SmallVector<StringRef> sets;
    for (frameworks::KernelSet set : options.kernels)
      sets.push_back(frameworks::toString(set));
    if (!sets.empty())
      value.push_back(b.getNamedAttr("kernels", b.getStrArrayAttr(sets)));
    if (options.compiledWhole)
      value.push_back(b.getNamedAttr(
          "regions",
          b.getStringAttr(options.compiledWhole->value ? "model" : "layers")));
    flag(value, "replays", options.replaysGraphs);
    if (!value.empty())
      request("compile", value,
              options.compiledWhole
                  ? because(*options.compiledWhole, "torch.compile")
                  : plain(options.compile ? "torch.compile of the layers"
                          : options.operands == LinearOperands::Nvfp4
                              ? "matmuls of 4-bit operands"
                          : options.operands != LinearOperands::Computed
                              ? "matmuls in fp8"
                          : options.tf32 ? "fp32 matmuls in TF32"
                          : options.flashAttention
                              ? "attention by the package flash-attn"
                              : "the script replaces the modules' "
                                "kernels"));
  }

  void requestFp8() {
    if (!options.fp8Training)
      return;
    const Fp8Training &asked = options.fp8Training->value;
    SmallVector<NamedAttribute> value = {
        b.getNamedAttr("recipe", b.getStringAttr(toString(asked.recipe))),
        b.getNamedAttr("amax_history", b.getI64IntegerAttr(asked.amaxHistory))};
    flag(value, "gathers", asked.gathers);
    request("fp8", value, because(*options.fp8Training, ""));
  }

  void addMesh() {
    SmallVector<Attribute> axes;
    frameworks::RankGroups groups;
    const auto &zero = accelerate.deepspeed;
    const bool staged = options.chosen && options.chosen->zeroStage;
    if (zero && (staged ? *options.chosen->zeroStage : *zero->zeroStage) == 3)
      groups = {*zero->secondaryRanks, *zero->micsRanks};
    const plan::Mesh mesh = framework.meshOf(
        options.chosen && options.chosen->mesh ? *options.chosen->mesh
                                               : *accelerate.mesh,
        groups);
    for (const plan::Axis &axis : mesh.axes)
      axes.push_back(
          sharding::AxisAttr::get(b.getContext(), axis.name, axis.size));
    sharding::MeshOp::create(b, location(accelerate.mesh),
                             b.getStringAttr("mesh"), b.getArrayAttr(axes));
  }

  void addJob() {
    // The frontend's word on which modules wrapping looks for.
    auto anatomy = module->getAttrOfType<DictionaryAttr>(sharding::anatomyAttr);
    module->removeAttr(sharding::anatomyAttr);
    sharding::JobOp::create(
        b, module.getLoc(), b.getStringAttr(options.modelName),
        b.getI64IntegerAttr(options.microBatch),
        b.getI64IntegerAttr(options.sequenceLength),
        b.getStringAttr(options.device), sharding::AccumulationAttr(),
        sharding::PrefetchAttr(), sharding::UpdateAttr(),
        sharding::CheckpointAttr(), anatomy ? anatomy : b.getDictionaryAttr({}),
        jobToAttr(b.getContext(), training),
        framework.kind() == FrameworkKind::AccelRun
            ? sharding::FrameworkAttr()
            : sharding::FrameworkAttr::get(b.getContext(), framework.name(),
                                           options.versions.torch,
                                           options.versions.accelerate),
        sharding::OffloadAttr(), sharding::OptimizerStepAttr(),
        sharding::DdpAttr(), sharding::ZeroAttr(), sharding::MegatronAttr(),
        sharding::CompileAttr(), sharding::Fp8Attr(),
        options.ranksPerNode > 0 ? b.getI64IntegerAttr(options.ranksPerNode)
                                 : IntegerAttr(),
        options.holdOutputs ? b.getUnitAttr() : UnitAttr(),
        options.capability > 0 ? b.getF64FloatAttr(options.capability)
                               : FloatAttr(),
        sharding::ReductionsAttr(), sharding::GathersAttr());
  }

  void requestPrecision() {
    PrecisionPolicy policy = job.precision.value;
    // transformers' Trainer sets FSDP1's policy to the dtype that a quantised
    // base is packed in (_fsdp_qlora_plugin_updates).
    if (job.quantization && job.transformersTrainer.value &&
        framework.kind() == FrameworkKind::Fsdp1)
      policy.param = policy.reduce = job.quantization->values.storageDtype();
    if (framework.kind() == FrameworkKind::Fsdp2)
      policy.upcast = upcastBeside(job);
    SmallVector<NamedAttribute> value;
    if (framework.eager() || (policy.autocast && !policy.param)) {
      flag(value, "autocast", policy.autocast);
      if (accelerate.mixedPrecision.value != MixedPrecision::No)
        value.push_back(b.getNamedAttr(
            "mixed", TypeAttr::get(floatType(accelerate.mixedPrecision.value ==
                                                     MixedPrecision::Fp16
                                                 ? plan::DType::F16
                                                 : plan::DType::BF16))));
    }
    if (policy.upcast != Upcast::None)
      value.push_back(b.getNamedAttr("upcast", b.getUnitAttr()));
    if (policy.upcast == Upcast::All)
      value.push_back(b.getNamedAttr("upcast_frozen", b.getUnitAttr()));
    if (policy.param)
      value.push_back(
          b.getNamedAttr("param", TypeAttr::get(floatType(*policy.param))));
    if (policy.reduce)
      value.push_back(
          b.getNamedAttr("reduce", TypeAttr::get(floatType(*policy.reduce))));
    if (policy.output)
      value.push_back(
          b.getNamedAttr("output", TypeAttr::get(floatType(*policy.output))));
    request("precision", value,
            framework.layerUnits(options.versions)
                ? plain(framework.name() + "'s own shards and reductions, in "
                                           "the file's dtype of computation")
                : because(job.precision, "no mixed precision was asked for"));
  }

  /// A mode, or a number of bytes.
  Attribute checkpointOf(StringRef text) {
    int64_t bytes = 0;
    if (!text.getAsInteger(10, bytes))
      return b.getI64IntegerAttr(bytes);
    return b.getStringAttr(text);
  }

  /// The script's own checkpointing, of every layer or of some.
  void requestLayers() {
    const ScriptSettings &script = job.script;
    SmallVector<NamedAttribute> value = {
        b.getNamedAttr("mode", b.getStringAttr("full"))};
    const auto &every = script.checkpointedLayers;
    if (*every > 1)
      value.push_back(b.getNamedAttr("every", b.getI64IntegerAttr(*every)));
    const auto &written = script.layerCheckpointing;
    request("checkpoint", value,
            *every > 1      ? because(every, "every_n_layers")
            : written.value ? because(written, "checkpointing of layers")
                            : plain("--gradient-checkpointing"));
  }

  /// The command line goes before the job file, a budget before a mode.
  void requestCheckpoint() {
    if (options.chosen && !options.chosen->checkpoint.empty()) {
      SmallVector<NamedAttribute> calls;
      for (const auto &[path, mode] : options.chosen->calls)
        calls.push_back(b.getNamedAttr(path, checkpointOf(mode)));
      for (const auto &[path, kept] : options.chosen->keeps)
        calls.push_back(b.getNamedAttr(
            path,
            b.getDictionaryAttr(
                {b.getNamedAttr("keep", b.getDenseI64ArrayAttr(kept.first)),
                 b.getNamedAttr("why", b.getStringAttr(kept.second))})));
      SmallVector<NamedAttribute> value = {
          b.getNamedAttr("mode", b.getStringAttr(options.chosen->checkpoint))};
      if (!calls.empty())
        value.push_back(b.getNamedAttr("calls", b.getDictionaryAttr(calls)));
      return request("checkpoint", value, plain(options.chosen->why));
    }
    if (options.gradientCheckpointing)
      return requestLayers();
    // Where a trainer would checkpoint by itself.
    if (const auto &written = accelerate.activationCheckpointing;
        framework.eager() &&
        framework.recompute().value != frameworks::Recompute::None &&
        written.written() && !written.value)
      return request("checkpoint",
                     {b.getNamedAttr("mode", b.getStringAttr("none"))},
                     because(written, "no activation checkpointing"));
    if (auto budget = options.activationBudgetBytes
                          ? options.activationBudgetBytes
                          : job.activationBudget.value) {
      SmallVector<NamedAttribute> value = {
          b.getNamedAttr("bytes", b.getI64IntegerAttr(*budget)),
          b.getNamedAttr("mode", b.getStringAttr("budget"))};
      if (!options.target.empty())
        value.push_back(
            b.getNamedAttr("target", b.getStringAttr(options.target)));
      return request("checkpoint", value,
                     options.activationBudgetBytes
                         ? plain("--activation-budget")
                         : because(job.activationBudget,
                                   "activation_budget of the job file"));
    }
    request("checkpoint",
            {b.getNamedAttr("mode", b.getStringAttr(toString(
                                        job.activationCheckpointing.value)))},
            because(job.activationCheckpointing,
                    "pointwise operators, norms and views are recomputed"));
  }

  void requestLoss() {
    if (options.fusedLoss)
      return request("loss", {b.getNamedAttr("fused", b.getUnitAttr())},
                     plain(options.lossWhy.empty()
                               ? "a fused kernel computes the loss in chunks"
                               : options.lossWhy));
    if (options.lossChunks && !options.lossChunks->isAuto())
      request("loss",
              {b.getNamedAttr("chunks",
                              b.getI64IntegerAttr(*options.lossChunks->count))},
              options.lossWhy.empty()
                  ? because(job.lossChunks, "loss_chunks of the job file")
                  : plain(options.lossWhy));
  }

  void requestAccumulation() {
    SmallVector<NamedAttribute> value = {
        b.getNamedAttr("steps", b.getI64IntegerAttr(options.accumulation))};
    sharding::BecauseAttr why =
        plain("default: reducing every micro-batch keeps gradients sharded");
    if (options.keepUnsharded && framework.eager()) {
      value.push_back(b.getNamedAttr("keep_unsharded",
                                     b.getBoolAttr(*options.keepUnsharded)));
      why = plain(options.chosen ? options.chosen->why : "--accumulation");
    } else if (!options.keepUnsharded && job.reducesOnce.value &&
               framework.kind() == FrameworkKind::AccelRun) {
      value.push_back(b.getNamedAttr("keep_unsharded", b.getUnitAttr()));
      why = because(job.reducesOnce, "one reduction a step");
    } else if (options.keepUnsharded.value_or(false)) {
      value.push_back(b.getNamedAttr("keep_unsharded", b.getUnitAttr()));
      why = plain((options.chosen ? options.chosen->why
                                  : std::string("--accumulation "
                                                "keep_unsharded")) +
                  ": one reduction a step, a whole model of gradients on every "
                  "rank");
    } else if (options.accumulation == 1) {
      why = because(job.accumulation, "one micro-batch a step");
    }
    request("accumulation", value, why);
    if (framework.updatesAtEnd())
      return;
    const bool late = training.needsGradNorm();
    request("update", {b.getNamedAttr("at_end", b.getBoolAttr(late))},
            training.optimizer.maxGradNorm > 0
                ? because(job.optimizer.maxGradNorm,
                          "the global gradient norm needs all gradients")
            : training.lossScaling
                ? plain("fp16: an overflow anywhere skips the whole step")
            : late ? because(job.onNan, "a gradient that is not finite skips "
                                        "the whole step")
                   : plain("nothing needs all gradients at once, so a unit's "
                           "gradients are freed as soon as it is updated"));
  }

  /// `trainable` freezes what it does not match; the first optimizer group
  /// that matches a name gives its rate and decay, group 0 is the rest.
  LogicalResult markParameters() {
    SmallVector<sharding::ParamOp> params;
    Type loaded = floatType(options.checkpointDtype);
    for (auto param : module.getOps<sharding::ParamOp>()) {
      if (!param.getKeepsDtype())
        param.setType(param.getTensorType().clone(loaded));
      params.push_back(param);
      names.push_back(param.getFqn().str());
    }
    std::vector<bool> matches;
    std::string error;
    if (job.quantization)
      quantize(*job.quantization);
    if (!job.trainable.value.empty()) {
      if (!matchAll(job.trainable.value, /*whole=*/false, names, matches,
                    error))
        return report(job.trainable, error);
      if (llvm::none_of(matches, [](bool m) { return m; }))
        return report(job.trainable, "no parameter matches '" +
                                         job.trainable.value +
                                         "': nothing would be trained");
      for (size_t i = 0; i < params.size(); ++i)
        params[i].setFrozen(!matches[i]);
      for (const std::string &regex : job.trainableParts) {
        if (!matchAll(regex, /*whole=*/false, names, matches, error))
          return report(job.trainable, error);
        if (llvm::none_of(matches, [](bool m) { return m; }))
          return report(job.trainable, "no parameter matches '" + regex + "'");
      }
    }
    if (framework.kind() == FrameworkKind::AccelRun)
      freezeUnread(params);
    std::vector<bool> grouped(params.size(), false);
    for (auto [g, group] : llvm::enumerate(job.optimizer.groups)) {
      if (!matchAll(group.match.value, /*whole=*/false, names, matches, error))
        return report(group.match, error);
      bool any = false;
      for (size_t i = 0; i < params.size(); ++i) {
        if (!matches[i])
          continue;
        any = true;
        if (grouped[i])
          continue;
        grouped[i] = true;
        params[i].setGroup(g + 1);
      }
      if (!any)
        return report(group.match,
                      "no parameter matches '" + group.match.value + "'");
    }
    return success();
  }

  /// What no function reads gets no gradient, and torch's optimizers leave it
  /// as it is.
  void freezeUnread(ArrayRef<sharding::ParamOp> params) {
    llvm::StringSet<> read;
    SymbolTable symbols(module);
    module.walk([&](sharding::CallOp call) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      for (unsigned i = 0; callee && i < callee.getNumArguments(); ++i)
        if (auto name =
                callee.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr))
          read.insert(call.bindParam(name.getValue()));
    });
    for (sharding::ParamOp param : params) {
      bool any = read.contains(param.getFqn());
      if (ArrayAttr aliases = param.getAliasesAttr())
        for (auto alias : aliases.getAsRange<StringAttr>())
          any |= read.contains(alias.getValue());
      if (!any)
        param.setFrozen(true);
    }
  }

  void quantize(const QuantizationConfig &config) {
    auto places = module->getAttrOfType<DictionaryAttr>(sharding::anatomyAttr);
    auto head =
        places ? places.getAs<StringAttr>("output_embedding") : StringAttr();
    StringRef name = head ? head.getValue() : StringRef();
    name.consume_front("base_model.model.");
    const std::string &release = options.versions.transformers;
    const LinearLayers layers = {.experts = !accel::atLeast(release, "5.0"),
                                 .derived = !accel::atLeast(release, "5.5")};
    markQuantized(module, config, name.empty() ? StringRef("lm_head") : name,
                  layers);
    noteWideWeights(config, layers);
  }

  /// What users take for quantised and is not, where that is most of the model.
  void noteWideWeights(const QuantizationConfig &config,
                       const LinearLayers &layers) {
    int64_t packed = 0, wide = 0;
    bool experts = false;
    for (auto param : module.getOps<sharding::ParamOp>()) {
      const int64_t numel = param.getTensorType().getNumElements();
      const bool marked = quantizedParam(param).has_value();
      (marked ? packed : wide) += numel;
      experts |= !marked && param.getTensorType().getRank() == 3;
    }
    if (packed >= wide)
      return;
    auto billions = [](int64_t numel) {
      return llvm::formatv("{0:f1} B", static_cast<double>(numel) / 1e9).str();
    };
    engine.report(diagnosticAt(
        config, Severity::Note, "partly-quantised",
        std::string(plan::describe(config.values.format).name) + " packs " +
            billions(packed) + " of " + billions(packed + wide) +
            " parameters, and the others stay as they are loaded: " +
            (experts ? "since transformers 5 the experts of a layer are one "
                       "parameter of three dimensions, and no linear layers"
             : layers.derived ? "it takes linear layers alone"
                              : "it takes layers of the class nn.Linear alone"),
        experts ? "transformers 4 (--transformers-version 4.57) packs each "
                  "expert's layers"
                : ""));
  }

  template <typename T>
  LogicalResult report(const Setting<T> &setting, std::string message) {
    engine.report(diagnosticAt(setting, Severity::Error, "invalid-regex",
                               std::move(message), namedLike(names)));
    return failure();
  }

  plan::Job &training;
  DiagnosticEngine &engine;
  std::vector<std::string> names; // of parameters
};

} // namespace

LogicalResult importJob(mlir::ModuleOp module, const JobConfig &job,
                        plan::Job training, const ImportOptions &options,
                        DiagnosticEngine &engine) {
  return Importer(module, job, training, options, engine).run();
}

} // namespace accel
