//===- Import.cpp - A job and a model as the model phase ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/Import.h"

#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Pipeline/JobAttr.h"
#include "passes/Pipeline/ParamRules.h"
#include "passes/Quantize/MarkQuantized.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace accel {
namespace {

class Importer {
public:
  Importer(mlir::ModuleOp module, const JobConfig &job, plan::Job &training,
           const ImportOptions &options, DiagnosticEngine &engine)
      : module(module), job(job), accelerate(job.accelerate),
        training(training), options(options), engine(engine),
        framework(*frameworks::findTrainer(options.trainer, options.framework)),
        b(OpBuilder::atBlockBegin(module.getBody())) {}

  LogicalResult run() {
    addMesh();
    if (failed(markParameters()))
      return failure();
    addJob();
    if (framework.eager())
      setScript(module, {options.versions.transformers,
                         job.reentrantCheckpointing.value});
    requestWrap();
    requestPrecision();
    requestReshard();
    requestCheckpoint();
    requestLoss();
    requestPrefetch();
    requestAccumulation();
    requestCompile();
    if (framework.kind() != ExecutorKind::AccelRun)
      requestFramework();
    return success();
  }

private:
  sharding::BecauseAttr plain(StringRef why) {
    return sharding::BecauseAttr::get(b.getContext(), why);
  }

  /// The reason of a setting: its line if it was written, else its `why`.
  template <typename T>
  sharding::BecauseAttr because(const Setting<T> &setting, std::string text) {
    std::string why = setting.why.empty() ? std::move(text) : setting.why;
    std::string key = setting.key.substr(setting.key.rfind('.') + 1);
    if (!key.empty() && setting.written())
      why = setting.why.empty() ? key
            : setting.why.find(key) != std::string::npos
                ? setting.why
                : key + ": " + setting.why;
    else if (setting.origin == Origin::Default)
      why = "default: " + why;
    if (setting.at.file.empty() || setting.at.line == 0)
      return plain(why);
    return sharding::BecauseAttr::get(b.getContext(), why,
                                      b.getStringAttr(setting.at.file),
                                      setting.at.line, setting.at.column);
  }

  template <typename T> mlir::Location location(const Setting<T> &setting) {
    if (setting.at.file.empty())
      return module.getLoc();
    return FileLineColLoc::get(b.getStringAttr(setting.at.file),
                               setting.at.line, setting.at.column);
  }

  void request(StringRef what, ArrayRef<NamedAttribute> value,
               sharding::BecauseAttr because) {
    mlir::Location loc =
        because.getFile()
            ? mlir::Location(FileLineColLoc::get(
                  because.getFile(), because.getLine(), because.getColumn()))
            : module.getLoc();
    sharding::RequestOp::create(b, loc, b.getStringAttr(what),
                                b.getDictionaryAttr(value), because);
  }

  void requestPrefetch() {
    auto usual = framework.prefetch();
    if (!usual)
      return;
    int64_t forward = usual->value.forward, backward = usual->value.backward;
    sharding::BecauseAttr why = plain(std::string("default: ") + usual->why);
    if (framework.kind() == ExecutorKind::Fsdp1) {
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

  void requestCompile() {
    SmallVector<NamedAttribute> value;
    flag(value, "layers", options.compile);
    flag(value, "fp8", options.fp8);
    if (!value.empty())
      request("compile", value,
              plain(options.compile ? "torch.compile of the layers"
                                    : "matmuls in fp8"));
  }

  void flag(SmallVector<NamedAttribute> &value, StringRef name, bool set) {
    if (set)
      value.push_back(b.getNamedAttr(name, b.getUnitAttr()));
  }
  void number(SmallVector<NamedAttribute> &value, StringRef name,
              std::optional<int64_t> n) {
    if (n)
      value.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(*n)));
  }

  /// What the file and the script say of the framework's own subjects.
  void requestFramework() {
    requestOffload();
    const DeepspeedSettings *zero =
        framework.kind() == ExecutorKind::Deepspeed && accelerate.deepspeed
            ? &*accelerate.deepspeed
            : nullptr;
    SmallVector<NamedAttribute> step;
    const bool clips = job.optimizer.maxGradNorm.value > 0 ||
                       (zero && zero->gradientClipping.value.value_or(0) > 0);
    flag(step, "clip", clips);
    if (const auto kernel = options.optimizerKernel ? options.optimizerKernel
                                                    : job.optimizer.kernel)
      step.push_back(b.getNamedAttr(
          "kernel",
          b.getStringAttr(*kernel == OptimizerKernel::Fused     ? "fused"
                          : *kernel == OptimizerKernel::Foreach ? "foreach"
                                                                : "for_loop")));
    if (job.optimizer.stateDtype)
      step.push_back(b.getNamedAttr(
          "state", TypeAttr::get(floatType(*job.optimizer.stateDtype))));
    if (!step.empty())
      request("optimizer", step,
              job.optimizer.maxGradNorm.value > 0
                  ? because(job.optimizer.maxGradNorm, "gradients are clipped")
              : clips ? because(zero->gradientClipping, "gradients are clipped")
                      : plain("the script's optimizer"));
    if (zero)
      requestZero(*zero);
    if (framework.kind() == ExecutorKind::Ddp) {
      SmallVector<NamedAttribute> value;
      const bool found = options.chosen && options.chosen->bucketBytes;
      number(value, "bucket",
             found ? options.chosen->bucketBytes : options.ddp.bucketBytes);
      flag(value, "as_view", options.ddp.gradientAsBucketView);
      if (!options.ddp.commHook.empty())
        value.push_back(
            b.getNamedAttr("hook", b.getStringAttr(options.ddp.commHook)));
      if (!value.empty())
        request("ddp", value,
                plain(found ? options.chosen->why : "--ddp-kwargs"));
    }
  }

  void requestOffload() {
    SmallVector<NamedAttribute> value;
    sharding::BecauseAttr why;
    auto ask = [&](StringRef name, bool set, sharding::BecauseAttr because) {
      flag(value, name, set);
      if (set && !why)
        why = because;
    };
    const bool fsdp = framework.kind() == ExecutorKind::Fsdp1 ||
                      framework.kind() == ExecutorKind::Fsdp2;
    if (fsdp) {
      auto because_ = because(accelerate.offloadParams, "CPU offload");
      ask("parameters", accelerate.offloadParams.value, because_);
      ask("optimizer", accelerate.offloadParams.value, because_);
    }
    if (framework.kind() == ExecutorKind::Deepspeed && accelerate.deepspeed) {
      // What goes to an NVMe disk leaves the device as what goes to the host.
      const DeepspeedSettings &zero = *accelerate.deepspeed;
      ask("parameters",
          *zero.zeroStage == 3 &&
              *zero.offloadParameters != OffloadDevice::None,
          because(zero.offloadParameters, "offload_param"));
      ask("optimizer",
          *zero.zeroStage > 0 && *zero.offloadOptimizer != OffloadDevice::None,
          because(zero.offloadOptimizer, "offload_optimizer"));
    }
    ask("layer_inputs", accelerate.activationCheckpointingOffload.value,
        because(accelerate.activationCheckpointingOffload,
                "activation offload"));
    if (const auto &chosen = options.chosen;
        chosen && (chosen->offloadParameters || chosen->offloadOptimizer ||
                   chosen->offloadLayerInputs)) {
      value.clear();
      why = plain(chosen->why);
      flag(value, "parameters", chosen->offloadParameters.value_or(false));
      flag(value, "optimizer", chosen->offloadOptimizer.value_or(false));
      flag(value, "layer_inputs", chosen->offloadLayerInputs.value_or(false));
    }
    if (!value.empty())
      request("offload", value, why);
  }

  /// "auto" follows the script and is left at DeepSpeed's defaults.
  void requestZero(const DeepspeedSettings &zero) {
    SmallVector<NamedAttribute> value;
    number(value, "stage", *zero.zeroStage);
    if (zero.fileRead) {
      number(value, "reduce_bucket", zero.reduceBucket.value);
      number(value, "prefetch_bucket", zero.prefetchBucket.value);
      number(value, "persistence_threshold", zero.persistenceThreshold.value);
      flag(value, "overlap", *zero.overlapCommunication);
    }
    if (options.chosen && options.chosen->zeroStage) {
      value[0] = b.getNamedAttr(
          "stage", b.getI64IntegerAttr(*options.chosen->zeroStage));
      return request("zero", value, plain(options.chosen->why));
    }
    request("zero", value, because(zero.zeroStage, "zero_stage"));
  }

  void addMesh() {
    SmallVector<Attribute> axes;
    const plan::Mesh mesh = framework.meshOf(
        options.chosen && options.chosen->mesh ? *options.chosen->mesh
                                               : *accelerate.mesh);
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
        framework.kind() == ExecutorKind::AccelRun
            ? sharding::FrameworkAttr()
            : sharding::FrameworkAttr::get(b.getContext(), framework.name(),
                                           options.versions.torch,
                                           options.versions.accelerate),
        sharding::OffloadAttr(), sharding::OptimizerStepAttr(),
        sharding::DdpAttr(), sharding::ZeroAttr(),
        options.ranksPerNode > 0 ? b.getI64IntegerAttr(options.ranksPerNode)
                                 : IntegerAttr(),
        options.holdOutputs ? b.getUnitAttr() : UnitAttr());
  }

  void requestWrap() {
    bool replicated = accelerate.strategy.value == Strategy::Single ||
                      accelerate.strategy.value == Strategy::Ddp ||
                      framework.castsByAutocast();
    const auto units = framework.layerUnits(options.versions);
    const bool first = units ? framework.kind() == ExecutorKind::Fsdp1
                             : accelerate.strategy.value == Strategy::Fsdp1;
    int version = replicated ? 0 : first ? 1 : 2;
    SmallVector<NamedAttribute> value = {
        b.getNamedAttr("fsdp_version", b.getI64IntegerAttr(version))};
    if (replicated)
      return request(
          "wrap", value,
          because(accelerate.distributedType, "parameters are replicated"));
    if (options.chosen &&
        (options.chosen->wrapClasses || options.chosen->layersPerUnit != 1))
      return requestChosenWrap(value);
    if (units) {
      value.push_back(
          b.getNamedAttr("policy", b.getStringAttr("TRANSFORMER_BASED_WRAP")));
      flag(value, "rest_in_root", !units->ends);
      value.push_back(
          b.getNamedAttr("trainer", b.getStringAttr(framework.name())));
      return request("wrap", value, plain(units->why));
    }
    requestRest(value);
    value.push_back(b.getNamedAttr(
        "policy", b.getStringAttr(toString(accelerate.wrapPolicy.value))));
    const auto *reason = &accelerate.wrapPolicy.at;
    std::string key = "fsdp_auto_wrap_policy";
    if (accelerate.wrapClasses.value) {
      SmallVector<StringRef> classes(accelerate.wrapClasses.value->begin(),
                                     accelerate.wrapClasses.value->end());
      value.push_back(b.getNamedAttr("classes", b.getStrArrayAttr(classes)));
      if (accelerate.wrapClasses.written()) {
        reason = &accelerate.wrapClasses.at;
        key = "fsdp_transformer_layer_cls_to_wrap";
      }
    }
    if (job.transformersTrainer.value && options.adapted &&
        accelerate.strategy.value == Strategy::Fsdp1)
      value.push_back(b.getNamedAttr("trained_leaves", b.getUnitAttr()));
    if (accelerate.wrapPolicy.value == WrapPolicy::Size) {
      value.push_back(b.getNamedAttr(
          "min_params", b.getI64IntegerAttr(accelerate.minNumParams.value)));
      if (accelerate.minNumParams.written()) {
        reason = &accelerate.minNumParams.at;
        key = "fsdp_min_num_params";
      }
    }
    if (!accelerate.ignoredModules.value.empty())
      value.push_back(b.getNamedAttr(
          "ignored_modules", b.getStringAttr(accelerate.ignoredModules.value)));
    request("wrap", value,
            reason->file.empty() || reason->line == 0
                ? plain("default: no wrap policy is set")
                : sharding::BecauseAttr::get(b.getContext(), key,
                                             b.getStringAttr(reason->file),
                                             reason->line, reason->column));
  }

  /// What becomes of parameters that no match of the wrap policy holds, by
  /// release: until 1.13 all are in the root's unit, to which torch applies
  /// the resharding that was asked for from 2.8 on (before, a root never
  /// reshards).
  void requestRest(SmallVector<NamedAttribute> &value) {
    if (accelerate.strategy.value != Strategy::Fsdp2)
      return;
    if (job.isJob) // of accel-run
      value.push_back(b.getNamedAttr("embedding_inside", b.getUnitAttr()));
    const bool inRoot = accelerate.restUnits.value == RestUnits::Root;
    if (inRoot)
      value.push_back(b.getNamedAttr("rest_in_root", b.getUnitAttr()));
    if (inRoot && atLeast(accelerate.torchVersion, 2, 8))
      value.push_back(b.getNamedAttr("root_reshards", b.getUnitAttr()));
    if (!inRoot && !job.isJob && !atLeast(accelerate.version, 1, 15) &&
        atLeast(accelerate.torchVersion, 2, 13))
      value.push_back(b.getNamedAttr("refuse_ties", b.getUnitAttr()));
  }
  static bool atLeast(const std::string &version, int major, int minor) {
    auto parsed = parseAccelerateVersion(version);
    return !parsed || *parsed >= AccelerateVersion{major, minor};
  }

  void requestChosenWrap(SmallVector<NamedAttribute> value) {
    const ImportOptions::Chosen &chosen = *options.chosen;
    requestRest(value);
    value.push_back(
        b.getNamedAttr("policy", b.getStringAttr("TRANSFORMER_BASED_WRAP")));
    const auto &classes =
        chosen.wrapClasses ? chosen.wrapClasses : accelerate.wrapClasses.value;
    if (classes) {
      SmallVector<StringRef> names(classes->begin(), classes->end());
      value.push_back(b.getNamedAttr("classes", b.getStrArrayAttr(names)));
    }
    if (chosen.layersPerUnit != 1)
      value.push_back(b.getNamedAttr(
          "layers_per_unit", b.getI64IntegerAttr(chosen.layersPerUnit)));
    request("wrap", value, plain(chosen.why));
  }

  Type floatType(plan::DType dtype) {
    return accel::floatType(b.getContext(), dtype);
  }

  void requestPrecision() {
    PrecisionPolicy policy = job.precision.value;
    // transformers' Trainer sets FSDP1's policy to the dtype that a quantised
    // base is packed in (_fsdp_qlora_plugin_updates).
    if (job.quantization && job.transformersTrainer.value &&
        framework.kind() == ExecutorKind::Fsdp1)
      policy.param = policy.reduce = job.quantization->values.storageDtype();
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
            because(job.precision, "no mixed precision was asked for"));
  }

  void requestReshard() {
    if (options.chosen && options.chosen->reshard) {
      SmallVector<StringRef> keep(options.chosen->keep.begin(),
                                  options.chosen->keep.end());
      SmallVector<NamedAttribute> value = {b.getNamedAttr(
          "after_forward", b.getBoolAttr(*options.chosen->reshard))};
      if (!keep.empty())
        value.push_back(b.getNamedAttr("keep", b.getStrArrayAttr(keep)));
      return request("reshard", value, plain(options.chosen->why));
    }
    SmallVector<NamedAttribute> value = {b.getNamedAttr(
        "after_forward", b.getBoolAttr(accelerate.reshardAfterForward.value))};
    const auto units = framework.layerUnits(options.versions);
    if (units && units->keepsLastLayer && accelerate.sharded())
      if (StringRef last = lastLayer(); !last.empty()) {
        value.push_back(b.getNamedAttr("keep", b.getStrArrayAttr({last})));
        return request("reshard", value, plain(units->why));
      }
    request("reshard", value,
            because(accelerate.reshardAfterForward,
                    "parameters are gathered again in the backward"));
  }

  /// The path of the last call of a repeated module.
  StringRef lastLayer() {
    StringRef last;
    if (auto graph = sharding::findOnly<sharding::GraphOp>(module))
      for (auto call : graph.getBody().getOps<sharding::CallOp>())
        if (StringRef number = call.getPath().rsplit('.').second;
            !number.empty() && llvm::all_of(number, llvm::isDigit))
          last = call.getPath();
    return last;
  }

  /// A mode, or a number of bytes.
  Attribute checkpointOf(StringRef text) {
    int64_t bytes = 0;
    if (!text.getAsInteger(10, bytes))
      return b.getI64IntegerAttr(bytes);
    return b.getStringAttr(text);
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
      return request("checkpoint",
                     {b.getNamedAttr("mode", b.getStringAttr("full"))},
                     plain("--gradient-checkpointing"));
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
    bool late = training.optimizer.maxGradNorm > 0 || training.lossScaling;
    request("update", {b.getNamedAttr("at_end", b.getBoolAttr(late))},
            training.optimizer.maxGradNorm > 0
                ? because(job.optimizer.maxGradNorm,
                          "the global gradient norm needs all gradients")
            : training.lossScaling
                ? plain("fp16: an overflow anywhere skips the whole step")
                : plain("nothing needs all gradients at once, so a unit's "
                        "gradients are freed as soon as it is updated"));
  }

  /// `trainable` freezes what it does not match; the first optimizer group
  /// that matches a name gives its rate and decay, group 0 is the rest.
  LogicalResult markParameters() {
    SmallVector<sharding::ParamOp> params;
    std::vector<std::string> names;
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

  void quantize(const QuantizationConfig &config) {
    auto places = module->getAttrOfType<DictionaryAttr>(sharding::anatomyAttr);
    auto head =
        places ? places.getAs<StringAttr>("output_embedding") : StringAttr();
    StringRef name = head ? head.getValue() : StringRef();
    name.consume_front("base_model.model.");
    // Until transformers 5 each expert had linear layers of its own.
    markQuantized(module, config, name.empty() ? StringRef("lm_head") : name,
                  !accel::atLeast(options.versions.transformers, "5.0"));
  }

  template <typename T>
  LogicalResult report(const Setting<T> &setting, std::string message) {
    Diagnostic diagnostic;
    diagnostic.code = "invalid-regex";
    diagnostic.file = setting.at.file;
    diagnostic.line = setting.at.line;
    diagnostic.column = setting.at.column;
    diagnostic.key = setting.key;
    diagnostic.message = std::move(message);
    diagnostic.hint = "parameters are named like 'model.layers.0.mlp.up_proj."
                      "weight'";
    engine.report(std::move(diagnostic));
    return failure();
  }

  mlir::ModuleOp module;
  const JobConfig &job;
  const AccelerateConfig &accelerate;
  plan::Job &training;
  const ImportOptions &options;
  DiagnosticEngine &engine;
  const frameworks::Framework &framework;
  OpBuilder b;
};

} // namespace

LogicalResult importJob(mlir::ModuleOp module, const JobConfig &job,
                        plan::Job training, const ImportOptions &options,
                        DiagnosticEngine &engine) {
  return Importer(module, job, training, options, engine).run();
}

} // namespace accel
