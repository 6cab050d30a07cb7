//===- MeshInputs.cpp - Jobs with axes inside of functions ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/MeshInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"

namespace accel {

static std::string whyNot(const PlanInputs &inputs, bool ownProgram) {
  if (ownProgram)
    return "tensor parallelism is not executed by accel-run yet";
  if (inputs.executor != FrameworkKind::Fsdp2)
    return std::string("tensor parallelism under ") +
           toString(inputs.executor) + " is not planned";
  if (inputs.job.quantization)
    return "tensor parallelism of quantised weights is not planned";
  if (inputs.adapter && inputs.adapter->magnitude)
    return "tensor parallelism of DoRA's layers is not planned";
  if (!inputs.model.config())
    return "tensor parallelism of a .pt2 is not planned: no plan says how its "
           "parameters are sharded";
  return "";
}

void checkTensorParallel(const PlanInputs &inputs, const PlanOptions &options,
                         DiagnosticEngine &engine) {
  const Setting<plan::Mesh> &mesh = inputs.job.accelerate.mesh;
  if (mesh->size("tp") <= 1)
    return;
  const bool own =
      inputs.executor == FrameworkKind::AccelRun || options.emitsProgram();
  if (const std::string why = whyNot(inputs, own); !why.empty())
    engine.report(diagnosticAt(
        mesh, Severity::Error, notSupportedCode, why,
        own ? "plan it for FSDP2 (--executor fsdp2) without accel-run's "
              "program, or leave tp_size at 1"
            : "leave tp_size at 1"));
}

} // namespace accel
