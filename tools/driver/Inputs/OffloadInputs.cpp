//===- OffloadInputs.cpp - What waits in host memory ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/OffloadInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "runtime/plan/Optimizers.h"

namespace accel {

bool checkOffload(const PlanInputs &inputs, const std::string &device,
                  DiagnosticEngine &engine) {
  const Setting<bool> &parameters = inputs.job.accelerate.offloadParams;
  const Setting<bool> &asked =
      parameters.value ? parameters : inputs.job.offloadStates;
  if (!asked.value)
    return true;
  auto refuse = [&](std::string what, std::string fix) {
    engine.report(diagnosticAt(asked, Severity::Error, notSupportedCode,
                               std::move(what), std::move(fix)));
    return false;
  };
  if (device == "cpu")
    return refuse(
        "nothing is offloaded from a CPU: the device is the host already",
        "leave it out, or plan for a GPU");
  if (inputs.job.accelerate.mesh->size("pp") > 1)
    return refuse("accel-run does not offload what stages of a pipeline hold",
                  "leave pp at 1, or the offload out");
  const auto *optimizer = plan::findOptimizer(inputs.job.optimizer.name.value);
  if (optimizer && optimizer->reads != plan::UpdateReads::Elements)
    return refuse(std::string("accel-run does not run the optimizer '") +
                      optimizer->name +
                      "' on the host: ranks exchange sums or matrices in its "
                      "update",
                  "use adamw, sgd or lion, or leave the offload out");
  return true;
}

} // namespace accel
