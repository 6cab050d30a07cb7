//===- Fp8Inputs.cpp - Jobs whose linear layers compute in fp8 ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/Fp8Inputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "tools/driver/Inputs/CompileInputs.h"

#include <algorithm>

namespace accel {

std::optional<Setting<Fp8Training>> fp8Training(const PlanInputs &inputs) {
  const AccelerateConfig &a = inputs.job.accelerate;
  const auto &script = inputs.job.script.fp8;
  const bool mixed = *a.mixedPrecision == MixedPrecision::Fp8;
  if (!*script && !mixed)
    return std::nullopt;
  Setting<Fp8Training> result;
  if (*script) {
    result = {{**script}, script.origin, script.key, script.at, script.why};
    return result;
  }
  result.origin = a.mixedPrecision.origin;
  result.key = a.mixedPrecision.key;
  result.at = a.mixedPrecision.at;
  // Without a backend torchao is looked for first (Accelerator.__init__).
  if (a.fp8 && a.fp8->backend.value == "TE") {
    result.value.recipe = Fp8Recipe::Delayed;
    result.value.amaxHistory = *a.fp8->amaxHistory;
    result.why = "fp8 by TransformerEngine's DelayedScaling";
  } else {
    // AORecipeKwargs.
    result.value.gathers = !a.fp8 || *a.fp8->float8AllGather;
    result.why = a.fp8 && !a.fp8->backend.value.empty()
                     ? "fp8 by torchao"
                     : "fp8 by torchao, which Accelerate looks for first";
  }
  return result;
}

namespace {

class Checker {
public:
  Checker(const PlanInputs &inputs, const Setting<Fp8Training> &asked,
          DiagnosticEngine &engine)
      : inputs(inputs), asked(asked), engine(engine) {}

  void run() {
    const bool engineOf = asked->recipe == Fp8Recipe::Delayed;
    if (inputs.executor == FrameworkKind::Deepspeed)
      return refuse("fp8 under DeepSpeed, whose own engine casts what it "
                    "keeps, is not counted",
                    "use FSDP2, or write mixed_precision: bf16");
    if (inputs.adapter || inputs.job.quantization)
      return refuse("fp8 beside an adapter is not counted: both libraries "
                    "compute gradients of frozen weights too, or save what "
                    "no frozen weight needs",
                    "leave the adapter out, or compute in bf16");
    if (!inputs.job.trainable.value.empty())
      return refuse("fp8 of a model that is frozen in part is not counted",
                    "train all of it, or compute in bf16");
    const plan::Mesh &mesh = *inputs.job.accelerate.mesh;
    if (mesh.size("tp") > 1 && inputs.trainer.empty())
      return refuse("fp8 of matmuls that are split over ranks is not counted",
                    "leave tp out, or compute in bf16");
    if (!inputs.model.config())
      return refuse("fp8 of a .pt2 is not counted: it has no linear layers "
                    "that a library could convert",
                    "pass a model folder");
    if (engineOf)
      checkTransformerEngine();
  }

private:
  void refuse(const std::string &message, const std::string &hint,
              const char *code = notSupportedCode) {
    engine.report(diagnosticAt(asked, Severity::Error, code, message, hint));
  }

  void checkTransformerEngine() {
    if (compiledWhole(inputs))
      return refuse("TransformerEngine's modules end a compiled graph at each "
                    "linear layer, which is not counted",
                    "leave torch.compile out, or use torchao");
    for (const auto &parameter : inputs.model.info().parameters)
      if (std::any_of(
              parameter.aliases.begin(), parameter.aliases.end(),
              [](const std::string &name) { return name == "lm_head.weight"; }))
        return refuse("TransformerEngine gives the output layer a weight of "
                      "its own, which is tied here; that is not counted",
                      "use torchao, which leaves the last layer as it is");
    const auto &own = inputs.job.accelerate.fp8;
    if (!own)
      return;
    if (*own->mxfp8BlockScaling)
      return refuse("MXFP8 block scaling is not counted",
                    "write fp8_use_mxfp8_block_scaling: false");
    if (*own->format == "E5M2")
      return refuse("fp8_format E5M2 stops: DelayedScaling asserts that no "
                    "training is in E5M2 alone",
                    "write fp8_format: HYBRID", "invalid-value");
    const std::vector<bool> &wide = *own->overrides;
    if (std::find(wide.begin(), wide.end(), true) != wide.end())
      return refuse("fp8_override_linear_precision is not counted: "
                    "TransformerEngine 2.18 has no such option of "
                    "DelayedScaling",
                    "write [false, false, false]");
  }

  const PlanInputs &inputs;
  const Setting<Fp8Training> &asked;
  DiagnosticEngine &engine;
};

} // namespace

void checkFp8(const PlanInputs &inputs, DiagnosticEngine &engine) {
  if (inputs.executor == FrameworkKind::AccelRun)
    return;
  if (const auto asked = fp8Training(inputs))
    Checker(inputs, *asked, engine).run();
}

bool checkFp8Target(const PlanInputs &inputs, const Target &target,
                    DiagnosticEngine &engine) {
  const auto asked = fp8Training(inputs);
  if (!asked || target.fp8)
    return true;
  engine.report(diagnosticAt(
      *asked, Severity::Error, "fp8-device",
      "the target " + inputs.targetName +
          " has no matmuls of fp8 operands; Accelerate falls back to fp16, "
          "and torchao stops",
      "write mixed_precision: bf16, or take a target from compute capability "
      "8.9 on (l40s, h100-sxm-80gb)"));
  return false;
}

} // namespace accel
