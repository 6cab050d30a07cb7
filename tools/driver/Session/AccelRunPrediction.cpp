//===- AccelRunPrediction.cpp - Figures of accel-run's own program --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/AccelRunPrediction.h"

#include "passes/Cost/ExchangeCost.h"
#include "passes/Export/BuildPlan.h"
#include "passes/Simulate/Time.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/ModulePath.h"
#include "runtime/plan/Timeline.h"
#include "runtime/plan/Verify.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <map>

namespace accel {
namespace {

/// What the collective that an instruction awaits does.
std::string causeOf(const plan::Plan &plan, const plan::Program &program,
                    const plan::ProgramInstruction &await) {
  if (await.kind == plan::ProgramInstructionKind::Optimizer)
    return plan.offload.states ? "update on the host" : "what updates exchange";
  for (const plan::ProgramInstruction &instruction : program.instructions)
    if (instruction.timepoint == await.timepoint &&
        instruction.kind != plan::ProgramInstructionKind::Await) {
      if (instruction.kind == plan::ProgramInstructionKind::Fetch)
        return "activations from the host";
      if (instruction.kind == plan::ProgramInstructionKind::Offload &&
          instruction.unit < 0)
        return "activations to the host";
      std::string what =
          instruction.kind == plan::ProgramInstructionKind::AllGather
              ? "gather "
          : instruction.kind == plan::ProgramInstructionKind::Offload
              ? "copy to the host "
              : "reduce ";
      if (instruction.unit < 0)
        return what + "norms";
      const std::string &name = plan.units[instruction.unit].name;
      return what + (name.empty() ? "(root)" : plan::withoutLayerNumbers(name));
    }
  return "communication";
}

/// Of a pipeline the stage that computes longest, of which a step's seconds of
/// computation are.
int slowestStage(const plan::Plan &plan) {
  int slowest = 0;
  for (int stage = 1; stage < plan.numStages(); ++stage)
    if (plan.stages[stage].busySeconds > plan.stages[slowest].busySeconds)
      slowest = stage;
  return slowest;
}

} // namespace

mlir::LogicalResult buildPredictedPlan(mlir::ModuleOp module,
                                       const Target *target,
                                       int64_t ranksPerNode,
                                       const RankAllocator &allocator,
                                       plan::Plan &plan) {
  plan.generator = "accel-opt " ACCEL_VERSION;
  if (failed(buildPlan(module, plan)))
    return mlir::failure();
  if (target && target->kind == TargetKind::Cuda)
    plan.keptWorkspaceBytes = keptWorkspaceBytes(plan, *target, allocator);
  plan::predictMemory(plan);
  plan::Predicted &p = plan.predicted;
  p.reservedBytes = p.deviceBytes = p.peakBytes;
  if (target) {
    plan.target = target->name;
    if (target->kind == TargetKind::Cuda) {
      const SegmentBytes replayed = replaySegments(plan, *target, allocator);
      p.reservedBytes = replayed.reserved;
      p.allocatedBytes = replayed.allocated;
    } else {
      p.reservedBytes = target->reservedBytes(p.peakBytes);
    }
    p.deviceBytes = p.reservedBytes + target->contextBytes;
    predictTime(plan, *target, ranksPerNode);
  }
  return mlir::success();
}

bool checkPlan(const plan::Plan &plan, const std::string &file,
               DiagnosticEngine &engine) {
  for (const std::string &problem : plan::verify(plan))
    engine.error("internal", file, "the plan is wrong: " + problem);
  return !engine.hasErrors();
}

StepPrediction accelRunPrediction(const plan::Plan &plan, const Target *target,
                                  int64_t ranksPerNode) {
  const plan::Predicted &own = plan.predicted;
  const plan::Breakdown &b = own.breakdown;
  StepPrediction p;
  p.peakBytes = own.peakBytes;
  p.persistentBytes = own.persistentBytes;
  p.hostBytes = own.hostBytes;
  p.diskBytes = own.diskBytes;
  p.reservedBytes = own.reservedBytes;
  p.deviceBytes = own.deviceBytes;
  if (target && target->kind == TargetKind::Cuda) {
    p.replayed = true;
    p.replayedBytes = own.reservedBytes;
    p.replayedAllocatedBytes = own.allocatedBytes;
    p.estimatedReservedBytes = target->reservedBytes(own.peakBytes);
  }
  p.atPeak = {b.parameters, b.gradients, b.optimizer, b.activations,
              b.logits,     b.gathered,  b.buffers};
  p.peakWhere = (own.peakWhere.empty() ? "the root" : own.peakWhere) + " (" +
                "instruction " + std::to_string(own.peakInstruction) + " of @" +
                own.peakProgram + ")";
  p.peakAction = own.peakInstruction;
  if (!own.hasTime || !target)
    return p;
  p.stepSeconds = own.stepSeconds;
  p.computeSeconds = own.computeSeconds;
  p.exposedSeconds = own.exposedCommSeconds;
  p.tokensPerSecondPerDevice =
      own.tokensPerSecond / static_cast<double>(plan.ranks());
  TimeModel model(plan, *target, ranksPerNode);
  std::map<std::string, double> waited;
  double known = 0; // of what is waited for
  for (const auto &[index, times, time] :
       model.simulateStep(slowestStage(plan), /*withEvents=*/true)) {
    const plan::Program &program = plan.programs[index];
    if (time.exchangeSeconds > 0)
      waited[exchangesOver(plan::Mesh{plan.axes})] +=
          time.exchangeSeconds * times;
    for (const TimelineEvent &event : time.events) {
      const plan::ProgramInstruction &instruction =
          program.instructions[event.instruction];
      // An update on the host is no part of the device's computation.
      if (instruction.kind == plan::ProgramInstructionKind::Optimizer &&
          event.stream == plan::Stream::Compute)
        p.optimizerSeconds += (event.end - event.begin) * times;
      if (event.exposed > 0)
        waited[causeOf(plan, program, instruction)] += event.exposed * times;
    }
  }
  for (auto &[cause, seconds] : waited) {
    p.exposed.push_back({cause, seconds});
    known += seconds;
  }
  if (!plan.stages.empty() && own.exposedCommSeconds > known)
    p.exposed.push_back({"bubble of " + plan.schedule + " and messages",
                         own.exposedCommSeconds - known});
  std::stable_sort(
      p.exposed.begin(), p.exposed.end(),
      [](const Exposed &x, const Exposed &y) { return x.seconds > y.seconds; });
  return p;
}

double recomputeSecondsOf(const plan::Plan &plan, const StepModel &model,
                          const Candidate &candidate, double all) {
  if (plan.stages.empty())
    return all;
  std::map<std::string, int> stageOf; // by parameter
  for (const plan::Parameter &parameter : plan.parameters)
    stageOf[parameter.fqn] = plan.units[parameter.unit].stage;
  const int slowest = slowestStage(plan);
  double own = 0, sum = 0;
  for (size_t c = 0; c < model.calls.size(); ++c) {
    const StepCall &call = model.calls[c];
    const double seconds =
        model.kinds[call.kind].variants[candidate.variants[c]].recomputeSeconds;
    sum += seconds;
    if (call.parameters.empty())
      continue;
    const auto at = stageOf.find(model.parameters[call.parameters.front()].fqn);
    if (at != stageOf.end() && at->second == slowest)
      own += seconds;
  }
  return sum > 0 ? all * own / sum : all;
}

} // namespace accel
