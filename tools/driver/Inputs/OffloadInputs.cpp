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
#include <optional>

namespace accel {
namespace {

/// The key that moves something to the host.
struct Asking {
  std::string key;
  Location at;
};

/// The first one that is set.
std::optional<Asking>
firstOf(std::initializer_list<const Setting<bool> *> settings) {
  const auto *first =
      std::find_if(settings.begin(), settings.end(),
                   [](const Setting<bool> *s) { return s->value; });
  if (first == settings.end())
    return std::nullopt;
  return Asking{(*first)->key, (*first)->at};
}

/// What an executor leaves on the host: the optimizer, which updates there, or
/// parameters and activations, which are only copied.
struct Offloaded {
  std::optional<Asking> updates, copies;
};

Offloaded offloadedBy(FrameworkKind executor, const JobConfig &job) {
  const AccelerateConfig &a = job.accelerate;
  const Setting<bool> &inputs = a.activationCheckpointingOffload,
                      &ofScript = job.script.offloadsCheckpoints;
  Offloaded all;
  all.copies = firstOf({&inputs, &ofScript});
  auto take = [](std::optional<Asking> &into, bool asks, const auto &setting) {
    if (asks)
      into = Asking{setting.key, setting.at};
  };
  switch (executor) {
  case FrameworkKind::AccelRun:
    all.updates = firstOf({&a.offloadParams, &job.offloadStates});
    all.copies = firstOf({&job.offloadActivations, &inputs, &ofScript});
    break;
  case FrameworkKind::Fsdp1:
  case FrameworkKind::Fsdp2:
    all.updates = firstOf({&a.offloadParams});
    break;
  case FrameworkKind::Deepspeed:
    if (!a.deepspeed)
      break;
    take(all.updates,
         *a.deepspeed->zeroStage > 0 &&
             *a.deepspeed->offloadOptimizer != OffloadDevice::None,
         a.deepspeed->offloadOptimizer);
    take(all.copies,
         *a.deepspeed->zeroStage == 3 &&
             *a.deepspeed->offloadParameters != OffloadDevice::None,
         a.deepspeed->offloadParameters);
    break;
  case FrameworkKind::Megatron:
    if (!a.megatron)
      break;
    take(all.updates, *a.megatron->optimizerCpuOffload,
         a.megatron->optimizerCpuOffload);
    take(all.copies, *a.megatron->offloadedLayers > 0,
         a.megatron->offloadedLayers);
    break;
  case FrameworkKind::Ddp:
  case FrameworkKind::Single:
    break;
  }
  return all;
}

} // namespace

std::string whyNotOffloaded(const Target &machine, bool updates) {
  if (machine.kind == TargetKind::Cpu)
    return "the device is the host already";
  if (machine.host.bytesPerSecond <= 0)
    return "target " + machine.name +
           " does not say how fast copies to its host are";
  if (updates && machine.host.updateBytesPerSecond <= 0)
    return "target " + machine.name +
           " does not say how fast an update on its host is";
  return "";
}

bool checkOffload(const PlanInputs &inputs, FrameworkKind executor,
                  const Target &machine, DiagnosticEngine &engine) {
  const JobConfig &job = inputs.job;
  const auto [updates, copies] = offloadedBy(executor, job);
  const std::optional<Asking> &asked = updates ? updates : copies;
  if (!asked)
    return true;
  auto refuse = [&](std::string what, std::string fix,
                    const char *code = notSupportedCode) {
    engine.report(diagnosticAt(*asked, Severity::Error, code, std::move(what),
                               std::move(fix)));
    return false;
  };
  if (const std::string why = whyNotOffloaded(machine, updates.has_value());
      !why.empty()) {
    if (machine.kind == TargetKind::Cpu)
      return refuse("nothing is offloaded from a CPU: " + why,
                    "leave it out, or plan for a GPU");
    return refuse(why + ", so that nothing bounds the time of an offload",
                  "write host: {bandwidth, latency, update_bandwidth} of one "
                  "rank, bytes per second and seconds, in a target of your "
                  "own, or leave the offload out",
                  "missing-key");
  }
  if (executor != FrameworkKind::AccelRun)
    return true;
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
  const auto asked = offloadedBy(FrameworkKind::AccelRun, inputs.job).copies;
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
