//===- DeviceInputs.cpp - The device that accelerate launch takes ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// PartialState._prepare_backend of accelerate/state.py finds no backend where
// there is no GPU and use_cpu did not reach the ranks, which the launcher of
// several GPUs never hands on (prepare_multi_gpu_env of utils/launch.py). Each
// rank is then a job of its own. AcceleratorState makes FSDP of no MULTI_CPU.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/DeviceInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"

namespace accel {

static void warnOfNoGpu(const AccelerateConfig &accelerate, bool scriptOnCpu,
                        const Target &target, DiagnosticEngine &engine) {
  const Setting<DistributedType> &type = accelerate.distributedType;
  const int64_t ranks = *accelerate.numProcesses;
  const bool shards = *type == DistributedType::Fsdp;
  // TrainingArguments(use_cpu=True) tells PartialState in each rank.
  if (!shards &&
      (ranks == 1 || scriptOnCpu || *type != DistributedType::MultiGpu))
    return;
  const std::string happens =
      ranks == 1    ? "the process trains without FSDP"
      : scriptOnCpu ? "the ranks replicate the model as DDP does"
                    : "each of the " + std::to_string(ranks) +
                          " processes trains alone, on all of the model and "
                          "without the others' gradients";
  engine.report(diagnosticAt(
      type, Severity::Warning, "target-device",
      std::string("distributed_type ") + toString(*type) +
          " needs GPUs, and target " + target.name +
          " is a CPU: under accelerate " + happens,
      ranks == 1
          ? "write distributed_type: 'NO' and use_cpu: true"
          : "write distributed_type: MULTI_CPU and use_cpu: true, which is "
            "DDP, or plan for a GPU"));
}

void warnOfDevice(const PlanInputs &inputs, const PlanOptions &options,
                  const Target &target, DiagnosticEngine &engine) {
  const AccelerateConfig &accelerate = inputs.job.accelerate;
  const FrameworkKind executor = inputs.executor;
  const bool accelerates =
      executor == FrameworkKind::Single || executor == FrameworkKind::Ddp ||
      executor == FrameworkKind::Fsdp1 || executor == FrameworkKind::Fsdp2;
  // accel-run takes the device of its plan, a script of torch the one it has.
  if (!accelerates || !inputs.trainer.empty() || options.emitsProgram() ||
      options.emits(EmitKind::Python))
    return;
  if (target.kind == TargetKind::Cpu)
    return warnOfNoGpu(accelerate, inputs.job.script.onCpu, target, engine);
  if (*accelerate.cpu)
    engine.report(diagnosticAt(
        accelerate.cpu, Severity::Warning, "target-device",
        "the job runs on the CPU, and target " + target.name + " is a GPU",
        "pass --target cpu, or leave use_cpu out"));
}

} // namespace accel
