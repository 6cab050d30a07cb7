//===- CompileInputs.cpp - Jobs under torch.compile -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/CompileInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"

namespace accel {

std::optional<Setting<bool>> compiledWhole(const PlanInputs &inputs) {
  const DynamoSettings &dynamo = inputs.job.accelerate.dynamo;
  const Setting<bool> &script = inputs.job.script.compiled;
  if (!*script && !dynamo.compiles())
    return std::nullopt;
  Setting<bool> whole;
  if (*script) {
    whole = script;
  } else {
    whole.origin = dynamo.backend.origin;
    whole.key = dynamo.backend.key;
    whole.at = dynamo.backend.at;
  }
  whole.value = !dynamo.compiles() || !*dynamo.regional;
  whole.why = !*whole ? "each layer by itself, the rest operator by operator"
              : inputs.executor == FrameworkKind::Fsdp2
                  ? "FSDP2's hooks end a graph at every unit: each is compiled "
                    "by itself"
                  : "the whole model, counted function by function";
  return whole;
}

static std::string whyNot(const PlanInputs &inputs) {
  switch (inputs.executor) {
  case FrameworkKind::Fsdp2:
  case FrameworkKind::Single:
    break;
  case FrameworkKind::Ddp:
    return "under DDP, torch cuts compiled graphs at the buckets of gradients "
           "(DDPOptimizer), and what is saved between the parts";
  case FrameworkKind::Fsdp1:
    return "what a compiled layer saves of FSDP1's flat parameters";
  case FrameworkKind::Deepspeed:
    return "what DeepSpeed's compiled engine saves";
  case FrameworkKind::AccelRun:
    return "torch.compile by accel-run, which runs no Python,";
  }
  const plan::Mesh &mesh = *inputs.job.accelerate.mesh;
  if (mesh.ranksPerSample() > 1)
    return "what a compiled layer saves of tensors that are split over ranks";
  if (inputs.job.quantization)
    return "what a compiled layer saves beside quantised weights";
  if (!inputs.model.config())
    return "what a compiled .pt2 saves";
  for (const auto &parameter : inputs.model.info().parameters)
    if (parameter.fqn.find(".experts.") != std::string::npos)
      return "what a compiled mixture of experts saves";
  return "";
}

void checkCompiled(const PlanInputs &inputs, DiagnosticEngine &engine) {
  const auto asked = compiledWhole(inputs);
  const std::string why = asked ? whyNot(inputs) : "";
  if (why.empty())
    return;
  engine.report(diagnosticAt(
      *asked, Severity::Error, notSupportedCode, why + " is not modelled yet",
      *inputs.job.script.compiled
          ? "leave it out to plan the model as it runs without it"
          : "write dynamo_backend: 'no' to plan the model as it runs without "
            "it"));
}

} // namespace accel
