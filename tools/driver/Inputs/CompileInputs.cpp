//===- CompileInputs.cpp - Jobs under torch.compile -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/CompileInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/Lint/RegionsUnsharded.h"

namespace accel {

static bool isZero(const PlanInputs &inputs, int64_t stage) {
  const auto &zero = inputs.job.accelerate.deepspeed;
  return inputs.executor == FrameworkKind::Deepspeed && zero &&
         *zero->zeroStage == stage;
}

/// What the graphs of a model are that is compiled as a whole.
static const char *regionOf(const PlanInputs &inputs) {
  switch (inputs.executor) {
  case FrameworkKind::Fsdp2:
    return "FSDP2's hooks end a graph at every unit: each is compiled by "
           "itself";
  case FrameworkKind::Fsdp1:
    return "FSDP1's forward ends a graph at every unit: each is compiled by "
           "itself";
  case FrameworkKind::Ddp:
    return "DDPOptimizer ends a graph wherever a bucket of gradients is full";
  case FrameworkKind::Deepspeed:
    if (isZero(inputs, 3))
      return "ZeRO-3's hooks end a graph around every module";
    return "the whole model, whose gradients are reduced at the end of its "
           "backward";
  case FrameworkKind::Single:
  case FrameworkKind::Megatron:
  case FrameworkKind::AccelRun:
    break;
  }
  return "the whole model, counted function by function";
}

/// What the graphs of CUDA are given.
static const char *graphsOf(const PlanInputs &inputs) {
  switch (inputs.executor) {
  case FrameworkKind::Fsdp1:
    return "CUDA graphs replay the kernels out of a pool of their own, and "
           "copy FSDP1's gathered weights into it, since views of a flat "
           "parameter are no nn.Parameter: those that are saved stay until "
           "the backward";
  case FrameworkKind::Fsdp2:
    return "CUDA graphs replay the kernels out of a pool of their own; "
           "gathered "
           "weights are taken where they are, and a new address records again";
  case FrameworkKind::Deepspeed:
    if (isZero(inputs, 3))
      return "CUDA graphs replay the kernels out of a pool of their own; "
             "gathered weights are taken where they are, and a new address "
             "records again";
    break;
  case FrameworkKind::Ddp:
  case FrameworkKind::Single:
  case FrameworkKind::Megatron:
  case FrameworkKind::AccelRun:
    break;
  }
  return "CUDA graphs replay the kernels out of a pool of their own";
}

/// The accelerate file's dynamo_config, which launch does not hand on to ranks
/// of DeepSpeed (prepare_deepspeed_cmd_env of accelerate/utils/launch.py).
static bool launchCompiles(const PlanInputs &inputs) {
  return inputs.executor != FrameworkKind::Deepspeed &&
         inputs.job.accelerate.dynamo.compiles();
}

std::optional<Setting<bool>> compiledWhole(const PlanInputs &inputs) {
  const DynamoSettings &dynamo = inputs.job.accelerate.dynamo;
  const Setting<bool> &script = inputs.job.script.compiled;
  if (!*script && !launchCompiles(inputs))
    return std::nullopt;
  Setting<bool> whole;
  if (*script) {
    whole = script;
  } else {
    whole.origin = dynamo.backend.origin;
    whole.key = dynamo.backend.key;
    whole.at = dynamo.backend.at;
  }
  whole.value = !inputs.job.script.compilesRegions &&
                (!launchCompiles(inputs) || !*dynamo.regional);
  whole.why = !*whole ? "each layer by itself, the rest operator by operator"
                      : regionOf(inputs);
  if (const auto graphs = replaysGraphs(inputs))
    whole.why += std::string("; ") + graphsOf(inputs);
  return whole;
}

std::optional<Setting<bool>> replaysGraphs(const PlanInputs &inputs) {
  if (!*inputs.job.script.replaysGraphs && !launchCompiles(inputs))
    return std::nullopt;
  return asksForGraphs(inputs.job);
}

static std::string whyNot(const PlanInputs &inputs) {
  if (inputs.executor == FrameworkKind::AccelRun)
    return "torch.compile by accel-run, which runs no Python,";
  if (inputs.executor == FrameworkKind::Megatron)
    return "torch.compile of Megatron-LM's model";
  const plan::Mesh &mesh = *inputs.job.accelerate.mesh;
  if (mesh.ranksPerSample() > 1 && inputs.trainer.empty())
    return "what a compiled layer saves of tensors that are split over ranks";
  if (inputs.job.quantization)
    return "what a compiled layer saves beside quantised weights";
  if (!inputs.model.config())
    return "what a compiled .pt2 saves";
  if (inputs.model.config()->hasDeltaRule())
    return "what a compiled gated delta rule saves";
  return "";
}

/// The figures are those of layers that are gathered one by one.
static void warnUnsharded(const PlanInputs &inputs, DiagnosticEngine &engine) {
  const AccelerateConfig &accelerate = inputs.job.accelerate;
  const auto version = parseAccelerateVersion(accelerate.version);
  const auto &of = lint::regionsUnsharded;
  if (inputs.executor == FrameworkKind::Fsdp2 && launchCompiles(inputs) &&
      *accelerate.dynamo.regional && version && of.since <= *version &&
      *version < of.until)
    engine.report(diagnosticAt(
        accelerate.dynamo.regional, Severity::Warning, of.code,
        std::string(of.message) + "; the figures are of layers that are",
        of.hint));
}

void checkCompiled(const PlanInputs &inputs, DiagnosticEngine &engine) {
  const auto asked = compiledWhole(inputs);
  if (!asked)
    return;
  if (const Setting<bool> &own = inputs.job.accelerate.useOrigParams;
      inputs.executor == FrameworkKind::Fsdp1 && !*own)
    engine.report(
        diagnosticAt(own, Severity::Error, "invalid-value",
                     "torch.compile compiles nothing of FSDP1's units without "
                     "fsdp_use_orig_params (Dynamo only supports FSDP with "
                     "use_orig_params=True)",
                     "write fsdp_use_orig_params: true, or do not compile"));
  const std::string why = whyNot(inputs);
  if (why.empty())
    return warnUnsharded(inputs, engine);
  const std::string fix =
      *inputs.job.script.compiled
          ? "leave it out to plan the model as it runs without it"
          : "write dynamo_backend: 'no' to plan the model as it "
            "runs without it";
  engine.report(diagnosticAt(*asked, Severity::Error, notSupportedCode,
                             why + " is not modelled yet", fix));
}

} // namespace accel
