//===- CheckInputs.cpp - What cannot be planned, by name ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/CheckInputs.h"

#include "frontends/Accelerate/DeepspeedJson.h"
#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/Job/QuantizedRefusals.h"
#include "frontends/Lint/Lint.h"
#include "passes/Kernels/MissingKernels.h"

#include <tuple>

namespace accel {
namespace {

class InputChecker {
public:
  InputChecker(const PlanInputs &inputs, const PlanOptions &options,
               DiagnosticEngine &engine)
      : inputs(inputs), options(options), engine(engine) {}

  void run() {
    refuseUnsupported();
    checkReference();
    checkPredictions();
    checkPhases();
    checkAttention();
    checkHalfGradients();
    checkModelKernels();
    checkReentrant();
    checkWaits();
    checkReleases();
    noteLoadDtype();
    checkVersions();
  }

private:
  const JobConfig &job() const { return inputs.job; }

  void report(Severity severity, std::string code, const Location &at,
              std::string key, std::string message, std::string hint = "") {
    engine.report(diagnosticAt(at, std::move(key), severity, std::move(code),
                               std::move(message), std::move(hint),
                               options.config));
  }

  /// How to plan what accelerate itself would do with the file.
  std::string withoutAccelRun() const {
    if (job().isJob)
      return "";
    return options.executor
               ? "leave --executor out to plan what accelerate itself would do"
               : "-o takes a program of accel-run: leave it out to plan what "
                 "accelerate itself would do (the report of --format json goes "
                 "to standard output)";
  }

  void refuseUnsupported() {
    const AccelerateConfig &a = job().accelerate;
    auto refuse = [&](bool condition, const auto &setting,
                      const std::string &what) {
      if (condition)
        report(Severity::Error, notSupportedCode, setting.at, setting.key,
               what + " is not supported by accel-run yet", withoutAccelRun());
    };
    if (options.emits(EmitKind::Accelerate) &&
        job().script.trainer != TrainerKind::None &&
        (a.file == job().script.file || !options.hasConfig))
      report(Severity::Error, notSupportedCode, {}, "",
             "--emit accelerate: the script describes the job without an "
             "accelerate file that could be improved",
             "what would help is said in the script's own words");
    const ScriptSettings &script = job().script;
    if (script.generationShare.value && inputs.targetName.empty())
      report(Severity::Error, "no-target", script.generationShare.at,
             script.generationShare.key,
             "vLLM keeps a share of the device's memory, and no device is "
             "given",
             "pass --target, or --generation-memory with the bytes");
    refuse((script.trainer == TrainerKind::Dpo ||
            script.trainer == TrainerKind::Grpo) &&
               inputs.executor == FrameworkKind::AccelRun,
           script.reference,
           std::string("the loss of ") + toString(script.trainer));
    if ((script.trainer == TrainerKind::Dpo ||
         script.trainer == TrainerKind::Grpo) &&
        options.lossChunks)
      report(Severity::Error, notSupportedCode, script.reference.at, "",
             std::string("--loss-chunks: ") + toString(script.trainer) +
                 " takes log-probabilities of all logits at once",
             "leave it out");
    refuse(*script.attention == AttentionKernel::Eager &&
               inputs.executor == FrameworkKind::AccelRun,
           script.attention, "eager attention");
    if (inputs.model.program() && *script.attention == AttentionKernel::Eager)
      report(Severity::Error, notSupportedCode, script.attention.at,
             script.attention.key,
             "a .pt2 computes attention as it was exported",
             "export the model with attn_implementation='eager'");
    for (auto [executor, least] : {std::pair{FrameworkKind::Fsdp2, "2.6"},
                                   std::pair{FrameworkKind::Fsdp1, "2.1"}})
      if (inputs.executor == executor && inputs.torchVersion &&
          !atLeast(*inputs.torchVersion, least))
        report(Severity::Error, "needs-torch", a.strategy.at, a.strategy.key,
               std::string(toString(executor)) + " needs torch " + least +
                   " or later, this is " + *inputs.torchVersion +
                   "; every rank stops",
               std::string("install torch ") + least);
    bool own = inputs.executor == FrameworkKind::AccelRun;
    const bool emitsOwn =
        (options.emitsProgram() || options.emits(EmitKind::Mlir) ||
         options.compileTo) &&
        !options.emitsSetting();
    const auto &budget = job().activationBudget;
    if (!own && !emitsOwn && options.activationBudgetBytes)
      report(Severity::Error, notSupportedCode, budget.at, "",
             std::string("--activation-budget: ") + toString(inputs.executor) +
                 " cannot keep activations by bytes",
             "pass --executor accel-run, or use "
             "fsdp_activation_checkpointing");
    if (!own && !emitsOwn) {
      const auto &offload = job().offloadActivations;
      if (offload.value)
        report(Severity::Error, notSupportedCode, offload.at, offload.key,
               std::string(toString(inputs.executor)) +
                   " leaves no activations on the host for a key of the job",
               "pass --executor accel-run, or write "
               "fsdp_activation_checkpointing_offload");
      if (const auto &folder = job().disk.folder; !folder.value.empty())
        report(Severity::Error, notSupportedCode, folder.at, folder.key,
               std::string(toString(inputs.executor)) +
                   " leaves no states on a drive",
               "pass --executor accel-run, or write states: cpu");
      else
        refuseOffload();
      return;
    }
    refuseLayers();
    refuse(a.strategy.value == Strategy::Other, a.distributedType,
           std::string(toString(a.distributedType.value)));
    refuse(*script.tf32, script.tf32, "TF32");
    refuse(a.mixedPrecision.value == MixedPrecision::Fp8, a.mixedPrecision,
           "fp8");
    refuse(script.fp8->has_value(), script.fp8, "fp8");
  }

  /// Layers that accel-run cannot run.
  void refuseLayers() {
    const huggingface::ModelConfig *config = inputs.model.config();
    const char *why = config && config->hasMamba()       ? noScanKernel
                      : config && config->hasDeltaRule() ? noDeltaKernel
                                                         : nullptr;
    if (why)
      report(Severity::Error, notSupportedCode, job().model.at, job().model.key,
             why, withoutAccelRun());
  }

  /// `offload` of a job, which a framework does not read: it says what the
  /// framework's own setting says, or is refused. CPUOffloadPolicy and
  /// CPUOffload of FSDP move parameters, and states are where these are.
  void refuseOffload() {
    const std::string name = toString(inputs.executor);
    const bool fsdp = inputs.executor == FrameworkKind::Fsdp1 ||
                      inputs.executor == FrameworkKind::Fsdp2;
    const auto &zero = job().accelerate.deepspeed;
    const bool isZero = inputs.executor == FrameworkKind::Deepspeed && zero;
    const auto &parameters = job().accelerate.offloadParams;
    if (isZero && *parameters && parameters.key.starts_with("offload") &&
        *zero->offloadParameters != OffloadDevice::Cpu)
      report(Severity::Error, notSupportedCode, parameters.at, parameters.key,
             name + " has parameters on the host by its own setting alone",
             "write offload_param_device: cpu, or leave it out");
    const auto &states = job().offloadStates;
    if (!states.value || (fsdp && *parameters) ||
        (isZero && *zero->offloadOptimizer == OffloadDevice::Cpu))
      return;
    report(Severity::Error, notSupportedCode, states.at, states.key,
           fsdp ? name + " has states on the host with parameters alone"
                : name + " leaves no states on the host for a key of the job",
           std::string("pass --executor accel-run, or ") +
               (fsdp ? "write parameters: cpu too" : "leave it out"));
  }

  /// transformers takes the kernels of a package where it is installed, which
  /// no file says.
  void checkModelKernels() {
    const huggingface::ModelConfig *config = inputs.model.config();
    if (config && config->hasDeltaRule() &&
        inputs.executor != FrameworkKind::AccelRun)
      report(
          Severity::Note, "model-kernels", job().model.at, job().model.key,
          "layers of a gated delta rule are planned as transformers computes "
          "them without flash-linear-attention",
          "where that package is installed, a step takes less memory and "
          "time than is predicted");
  }

  void checkReentrant() {
    if (options.reentrant && options.nonReentrant)
      report(Severity::Error, "conflicting-arguments", {}, "",
             "--reentrant and --gradient-checkpointing=non-reentrant are two "
             "forms of one checkpoint",
             "leave one of them out");
    if (options.reentrant && !options.script.offloadsCheckpoints &&
        !recomputesLayers(inputs, options))
      report(Severity::Warning, "ignored-key", {}, "",
             "--reentrant has no effect: the script recomputes nothing",
             "pass --gradient-checkpointing too, or leave it out");
  }

  void checkWaits() {
    const bool own = inputs.executor == FrameworkKind::AccelRun;
    const bool alone = *job().accelerate.numProcesses <= 1;
    auto check = [&](const Setting<std::optional<int64_t>> &waits,
                     const char *none, const char *does) {
      if (waits.value.value_or(0) == 0 || (own && !none))
        return;
      report(Severity::Warning, "ignored-key", waits.at, waits.key,
             waits.key + " has no effect: " +
                 (own ? none
                      : std::string(toString(inputs.executor)) + " " + does +
                            " when its library does"),
             own ? "leave it out"
                 : "pass --executor accel-run, or leave it out");
    };
    check(job().awaitReductions,
          alone ? "one process reduces no gradients" : nullptr, "reduces");
    check(job().holdGathers,
          alone ? "one process gathers no parameters"
          : job().accelerate.strategy.value == Strategy::Ddp
              ? "each rank of DDP has all parameters"
              : nullptr,
          "gathers");
  }

  /// FlashAttention's kernels take 16 bits alone; autocast and FSDP's policy
  /// give them that.
  void checkAttention() {
    const auto &asked = job().script.attention;
    const AttentionKernel kernel = asked->value_or(AttentionKernel::Sdpa);
    const bool flash = kernel == AttentionKernel::FlashAttention2 ||
                       kernel == AttentionKernel::FlashAttention3;
    if (!flash || inputs.executor == FrameworkKind::AccelRun ||
        inputs.executor == FrameworkKind::Deepspeed ||
        job().accelerate.mixedPrecision.value != MixedPrecision::No ||
        job().precision.value.param || inputs.loadedDtype() != plan::DType::F32)
      return;
    report(Severity::Error, "invalid-value", asked.at, asked.key,
           std::string(toString(kernel)) +
               " computes in fp16 and bf16 alone, and the model computes in "
               "fp32: its kernel stops with a RuntimeError",
           "write mixed_precision: bf16, load the model in 16 bits (--dtype "
           "bf16), or take sdpa");
  }

  std::string notModelled() const {
    const bool other =
        inputs.executor != FrameworkKind::Megatron && !inputs.trainer.empty();
    return "what " + (other ? inputs.trainer : toString(inputs.executor)) +
           " holds outside its steps is not modelled";
  }

  void checkPhases() {
    if (inputs.hasPhases())
      return;
    if (options.showPhases)
      report(Severity::Warning, "ignored-key", {}, "",
             "--phases has no effect on phases outside the step: " +
                 notModelled(),
             "leave it out");
    if (options.nodeMemoryBytes)
      report(Severity::Note, "step-alone", {}, "",
             "the host memory of --node-memory is held against the step "
             "alone: " +
                 notModelled());
  }

  /// GradScaler unscales none in fp16, for clipping or for a step; fused
  /// kernels unscale by themselves (torch/amp/grad_scaler.py).
  void checkHalfGradients() {
    const bool ofLibraries = inputs.executor == FrameworkKind::Single ||
                             inputs.executor == FrameworkKind::Ddp ||
                             inputs.executor == FrameworkKind::Fsdp2;
    if (!ofLibraries || !scalesLoadedDtype(job()) ||
        inputs.loadedDtype() != plan::DType::F16 || !trainsAsLoaded())
      return;
    const bool fused = job().optimizer.kernel == plan::UpdateKernel::Fused,
               clips = *job().optimizer.maxGradNorm > 0;
    if (fused && !clips)
      return;
    const Setting<MixedPrecision> &mixed = job().accelerate.mixedPrecision;
    const bool ofScript =
        !mixed.at.file.empty() && mixed.at.file != job().accelerate.file;
    const bool earlier = inputs.executor == FrameworkKind::Fsdp2 &&
                         !job().ownMesh &&
                         !atLeast(job().accelerate.version, "1.14");
    report(Severity::Error, "fp16-gradients", mixed.at, mixed.key,
           std::string("the gradients of parameters in fp16 are fp16; ") +
               (clips ? "clipping" : "the first step") +
               " stops with \"Attempting to unscale FP16 gradients.\"",
           std::string("load the model in float32 (--dtype float32), ") +
               (earlier ? "use accelerate 1.14, " : "") +
               (ofScript ? "or set bf16 in place of fp16"
                         : "or write mixed_precision: bf16"));
  }

  /// Something is trained in the dtype in which the base is loaded.
  bool trainsAsLoaded() const {
    if (job().quantization && widensOthers(*job().quantization))
      return false;
    return !inputs.adapter || inputs.adapter->keepsBaseDtype ||
           !inputs.adapter->modulesToSave.empty() ||
           inputs.adapter->bias != AdapterConfig::Bias::None;
  }

  /// Logits are counted that nobody keeps.
  void checkPredictions() {
    if (!options.evalSamples)
      return;
    const ScriptSettings &script = job().script;
    auto refuse = [&](const std::string &why, const std::string &hint) {
      report(Severity::Error, "conflicting-arguments", {}, "",
             "--eval-samples: " + why, hint);
    };
    if (!inputs.hasPhases())
      return refuse(notModelled(), "leave it out");
    if (!script.evaluates)
      return refuse("the script evaluates nothing",
                    "write eval_strategy: steps, or leave it out");
    if (script.evalLossOnly)
      refuse("prediction_loss_only is true, so that the loss alone is kept",
             "leave one of them out");
  }

  /// TRL gives a second model the whole JSON (prepare_deepspeed of
  /// trl/models/utils.py), and DeepSpeed makes the optimizer that it names,
  /// with states and master weights (DeepSpeedEngine.__init__).
  void checkReference() {
    const AccelerateConfig &a = job().accelerate;
    if (*job().script.reference != ReferenceModel::Second || !a.deepspeed ||
        !a.deepspeed->fileRead)
      return;
    DiagnosticEngine silent;
    auto document =
        yaml::parseFile(*a.deepspeed->configFile, options.texts, silent);
    const yaml::Node *optimizer =
        document && document->root() && document->root()->isMapping()
            ? document->root()->find("optimizer")
            : nullptr;
    if (optimizer)
      reportInJson(engine, *a.deepspeed->configFile, Severity::Error,
                   notSupportedCode, *optimizer, "optimizer",
                   "DeepSpeed makes this optimizer for the reference model "
                   "too, whose states and master weights are not counted",
                   "leave it out of the JSON: the script's optim is used for "
                   "the trained model alone");
  }

  void checkReleases() {
    const scripts::Versions &given = options.script.versions;
    const std::tuple<const char *, const std::string &, const char *> all[] = {
        {"transformers", given.transformers, "5.23.0"},
        {"trl", given.trl, "1.10.0"},
        {"peft", given.peft, "0.21.2"},
        {"deepspeed", given.deepspeed, "0.19.8"}};
    for (const auto &[name, text, example] : all)
      if (!text.empty() && !parseAccelerateVersion(text))
        report(Severity::Error, "invalid-version", {}, "",
               "'" + printable(text) + "' is not a version of " + name,
               std::string("write it as ") + example);
  }

  /// from_pretrained without a dtype loads in fp32 until transformers 5, and in
  /// the checkpoint's dtype since. What a script passes is not known.
  void noteLoadDtype() {
    const std::string &release = options.script.versions.transformers;
    const plan::DType loaded = inputs.loadedDtype();
    if (inputs.executor == FrameworkKind::AccelRun ||
        inputs.executor == FrameworkKind::Megatron || job().script.given() ||
        job().loadDtype.value || job().quantization || !inputs.model.config() ||
        plan::itemSize(loaded) >= 4 || !isEarlierRelease(release, "5.0"))
      return;
    report(Severity::Note, "load-dtype", job().model.at, job().model.key,
           std::string("the model is taken to be loaded in ") +
               plan::toString(loaded) +
               ", as its checkpoint is; from_pretrained of transformers " +
               release + " loads it in fp32 unless torch_dtype is passed",
           "pass --dtype float32 for a script that passes none");
  }

  /// What the releases at hand do in a step that is not modelled, or where
  /// they stop.
  void checkVersions() {
    const AccelerateConfig &a = job().accelerate;
    const bool two = inputs.executor == FrameworkKind::Fsdp2;
    if (!two && inputs.executor != FrameworkKind::Fsdp1)
      return;
    auto refuse = [&](const auto &setting, const std::string &what,
                      const std::string &hint) {
      report(Severity::Error, notSupportedCode, setting.at, setting.key,
             "planning as accelerate " + a.version + ": " + what, hint);
    };
    if (two && a.offloadParams.value && a.cpuRamEfficientLoading.value &&
        !atLeast(a.version, "1.13"))
      refuse(a.cpuRamEfficientLoading,
             "before 1.13 efficient loading leaves offloaded parameters on "
             "the GPU, and what a step then holds is not modelled",
             "write fsdp_cpu_ram_efficient_loading: false");
    if (a.checkpointPlacement.value == CheckpointPlacement::Children)
      report(Severity::Note, "checkpointing-granularity",
             a.activationCheckpointing.at, a.activationCheckpointing.key,
             "accelerate " + a.version +
                 " checkpoints each child of a layer (attention, MLP, norms), "
                 "which keeps about four tensors a layer where 1.15 keeps one",
             "use accelerate 1.15");
    if (a.checkpointPlacement.value == CheckpointPlacement::EveryModule)
      refuse(a.activationCheckpointing,
             "checkpoints around every module, which activation checkpointing "
             "without a wrap policy means, are not modelled",
             "write fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP");
  }

  const PlanInputs &inputs;
  const PlanOptions &options;
  DiagnosticEngine &engine;
};

} // namespace

void checkInputs(const PlanInputs &inputs, const PlanOptions &options,
                 DiagnosticEngine &engine) {
  InputChecker(inputs, options, engine).run();
}

} // namespace accel
