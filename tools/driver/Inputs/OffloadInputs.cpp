//===- OffloadInputs.cpp - What waits in host memory ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/OffloadInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "runtime/plan/DiskLayout.h"
#include "runtime/plan/Optimizers.h"
#include "runtime/plan/Timeline.h"

#include <algorithm>

namespace accel {
namespace {

/// The first one that is set, or null.
const Setting<bool> *
firstOf(std::initializer_list<const Setting<bool> *> settings) {
  const auto *first =
      std::find_if(settings.begin(), settings.end(),
                   [](const Setting<bool> *s) { return s->value; });
  return first == settings.end() ? nullptr : *first;
}

const Setting<bool> *askedActivations(const JobConfig &job) {
  return firstOf({&job.offloadActivations,
                  &job.accelerate.activationCheckpointingOffload,
                  &job.script.offloadsCheckpoints});
}

} // namespace

bool checkOffload(const PlanInputs &inputs, const std::string &device,
                  DiagnosticEngine &engine) {
  const JobConfig &job = inputs.job;
  const Setting<bool> *updates =
      firstOf({&job.accelerate.offloadParams, &job.offloadStates});
  const Setting<bool> *asked = updates ? updates : askedActivations(job);
  if (!asked)
    return true;
  auto refuse = [&](std::string what, std::string fix) {
    engine.report(diagnosticAt(*asked, Severity::Error, notSupportedCode,
                               std::move(what), std::move(fix)));
    return false;
  };
  if (device == "cpu")
    return refuse(
        "nothing is offloaded from a CPU: the device is the host already",
        "leave it out, or plan for a GPU");
  if (job.accelerate.mesh->size("pp") > 1)
    return refuse("accel-run does not offload what stages of a pipeline hold",
                  "leave pp at 1, or the offload out");
  const auto *optimizer = plan::findOptimizer(job.optimizer.name.value);
  if (updates && optimizer && optimizer->reads != plan::UpdateReads::Elements)
    return refuse(std::string("accel-run does not run the optimizer '") +
                      optimizer->name +
                      "' on the host: ranks exchange sums or matrices in its "
                      "update",
                  "use adamw, sgd or lion, or leave the offload out");
  return true;
}

bool checkDrive(const PlanInputs &inputs, const Target &target,
                DiagnosticEngine &engine) {
  const DiskConfig &disk = inputs.job.disk;
  if (disk.folder.value.empty())
    return true;
  auto refuse = [&](const auto &at, const char *code, std::string what,
                    std::string fix) {
    engine.report(diagnosticAt(at, Severity::Error, code, std::move(what),
                               std::move(fix)));
    return false;
  };
  const int64_t least = plan::leastBuffers(*disk.readAhead, *disk.writeBehind);
  if (*disk.buffers && **disk.buffers < least)
    return refuse(disk.buffers, "invalid-value",
                  std::to_string(**disk.buffers) +
                      (**disk.buffers == 1 ? " buffer is" : " buffers are") +
                      " too few to read and write beside an update",
                  "write at least " + std::to_string(least) +
                      ", or read_ahead or write_behind false");
  if (const auto &background = inputs.job.checkpoint.background; *background)
    return refuse(background, notSupportedCode,
                  "a checkpoint in the background copies all states to the "
                  "host's memory, and the job has them on a drive",
                  "write background: false, or states: cpu");
  if (target.drive.readBytesPerSecond <= 0)
    return refuse(disk.folder, "missing-key",
                  "target " + target.name +
                      " does not say how fast its drive is, so that nothing "
                      "bounds the time of an update",
                  "write drive: {read_bandwidth, write_bandwidth}, bytes per "
                  "second and rank, in a target of your own; accel-run --fit "
                  "then measures them");
  return true;
}

void warnIdleOffload(const PlanInputs &inputs, const plan::Plan &plan,
                     DiagnosticEngine &engine) {
  const Setting<bool> *asked = askedActivations(inputs.job);
  const bool moves = std::any_of(
      plan.programs.begin(), plan.programs.end(),
      [](const plan::Program &p) { return plan::hostBytes(p) > 0; });
  if (asked && plan.offload.activations && !moves)
    engine.report(diagnosticAt(
        *asked, Severity::Warning, "offload-no-gain",
        "no activation waits on the host: what calls save is read again while "
        "it would be copied, or has fewer than 1024 bytes",
        "leave it out"));
}

} // namespace accel
