//===- PipelineTime.cpp - How long a pipeline's step takes ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulate/Time.h"

#include "runtime/plan/Chunks.h"
#include "runtime/plan/InstructionKey.h"

#include <algorithm>

namespace accel {

using namespace plan;

namespace {
/// What the schedule calls a part; what settles and updates is none of it.
std::optional<pipeline::Pass> passOf(const Plan &plan, Part part) {
  switch (part) {
  case Part::Forward:
    return pipeline::Pass::Forward;
  case Part::Backward:
    return splitsBackward(plan.schedule) ? pipeline::Pass::BackwardInput
                                         : pipeline::Pass::Backward;
  case Part::Weights:
    return pipeline::Pass::BackwardWeight;
  default:
    return std::nullopt;
  }
}

/// "model.embed_tokens to model.layers.1", as the cut was decided.
std::string partOfModel(const Plan &plan, const std::string &name) {
  for (const Decision &decision : plan.decisions)
    if (decision.what == "stage" && decision.where == name)
      return decision.choice;
  return "";
}
} // namespace

std::optional<PipelineTime> simulatePipeline(const Plan &plan,
                                             const TimeModel &model) {
  if (plan.stages.empty())
    return std::nullopt;
  PipelineTime result;
  auto &[problem, schedule, simulation, holds] = result.step;
  if (const auto *kind = pipeline::findKind(plan.schedule))
    problem.kind = kind->kind;
  const bool split = splitsBackward(plan.schedule);
  const ChunkLayout layout = plan::chunkLayoutOf(plan);
  problem.chunks = layout.chunks;
  problem.stages = layout.count();
  problem.microBatches = static_cast<int>(plan.job.accumulation);
  for (int stage = 0; stage < plan.numStages(); ++stage) {
    std::vector<pipeline::Action> &order = schedule.ranks.emplace_back();
    for (const StageAction &action : plan.stages[stage].order)
      if (const auto pass = passOf(plan, action.part))
        order.push_back({layout.numberOf(stage, action.chunk),
                         static_cast<int>(action.microBatch), *pass});
  }
  schedule.frames = pipeline::countFrames(problem, schedule);
  pipeline::Costs costs;
  std::vector<double> updates(plan.numStages());
  for (int place = 0; place < problem.stages; ++place) {
    const int stage = layout.stageOf(place), chunk = layout.chunkOf(place);
    holds.push_back(partOfModel(plan, chunkName(stage, chunk)));
    // Micro-batches take alike but for the last one's update, which no other
    // stage waits for.
    pipeline::StageCost &cost = costs.stages.emplace_back();
    double microBatches = 0;
    for (const auto &[index, repeat] : plan.stepOf(stage, chunk)) {
      const Program &program = plan.programs[index];
      const ProgramTime time = model.simulate(program);
      const double times = static_cast<double>(repeat);
      cost.forward += time.forwardSeconds * times;
      const double backward = time.seconds - time.updateSeconds;
      const double input = split ? time.inputSeconds : backward;
      cost.backwardInput += (input - time.forwardSeconds) * times;
      cost.backwardWeight += (backward - input) * times;
      updates[stage] += time.updateSeconds * times;
      microBatches += times;
      costs.transfer =
          std::max(costs.transfer, model.sendSeconds(sentBytes(program)));
    }
    cost.forward /= std::max(microBatches, 1.0);
    cost.backwardInput /= std::max(microBatches, 1.0);
    cost.backwardWeight /= std::max(microBatches, 1.0);
  }
  auto simulated = pipeline::simulate(problem, schedule, costs);
  if (!simulated)
    return std::nullopt;
  simulation = std::move(*simulated);
  for (int stage = 0; stage < plan.numStages(); ++stage)
    simulation.totals[stage].peakBytes = plan.stages[stage].peakBytes;
  result.seconds =
      simulation.makespan + *std::max_element(updates.begin(), updates.end());
  return result;
}

} // namespace accel
