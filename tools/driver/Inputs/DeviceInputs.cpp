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

#include "frontends/Accelerate/KeyTable.h"
#include "frontends/Accelerate/SettingDiagnostic.h"

namespace accel {

static void warnOfNoGpu(const AccelerateConfig &accelerate, bool scriptOnCpu,
                        const Target &target, DiagnosticEngine &engine) {
  const Setting<DistributedType> &type = accelerate.distributedType;
  const int64_t ranks = *accelerate.numProcesses;
  const bool shards = *type == DistributedType::Fsdp;
  // TrainingArguments(use_cpu=True) tells PartialState in each rank; until 1.12
  // it took ranks that find no GPU for MULTI_CPU's by itself.
  const auto version = parseAccelerateVersion(accelerate.version);
  const bool joins =
      scriptOnCpu || (version && *version < AccelerateVersion{1, 13});
  if (!shards && (ranks == 1 || joins || *type != DistributedType::MultiGpu))
    return;
  const std::string happens =
      ranks == 1 ? "the process trains without FSDP"
      : joins    ? "the ranks replicate the model as DDP does"
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
          : "on CPUs, write distributed_type: MULTI_CPU and use_cpu: true "
            "(without a file: use_cpu of the Trainer's arguments), and have "
            "torchrun --no-python or mpirun start accelerate launch: DDP; or "
            "plan for a GPU"));
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
  const bool scripts = inputs.job.script.onCpu;
  // MULTI_CPU says it by itself too.
  const bool asked = accelerate.cpu.written() && *accelerate.cpu;
  if (asked || scripts)
    engine.report(
        diagnosticAt(accelerate.cpu, Severity::Warning, "target-device",
                     std::string("the job runs on the CPU") +
                         (asked ? "" : ", as use_cpu of its arguments says") +
                         ", and target " + target.name + " is a GPU",
                     "pass --target cpu, or leave use_cpu out"));
  else if (*accelerate.cpu)
    engine.report(diagnosticAt(
        accelerate.distributedType, Severity::Warning, "target-device",
        std::string("distributed_type ") +
            toString(*accelerate.distributedType) +
            " joins ranks on CPUs, and target " + target.name + " is a GPU",
        "write MULTI_GPU, or pass --target cpu"));
}

} // namespace accel
