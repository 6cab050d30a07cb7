//===- PipelineTime.cpp - How long a pipeline's step takes ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulate/RankTimeline.h"
#include "passes/Simulate/Time.h"

#include "runtime/plan/Chunks.h"

#include <algorithm>
#include <deque>
#include <map>

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

/// When the messages of each channel are there, in their order.
struct Channel {
  std::vector<double> arrivals;
  size_t received = 0;
};
using Channels = std::map<std::string, Channel>;

/// The ranks of one stage, which are alike, through a number of steps.
class StageRun {
public:
  StageRun(const Plan &plan, const TimeModel &model, int stage, int steps,
           Channels &channels)
      : plan(plan), model(model), stage(stage), channels(channels), rank(model),
        actions(plan.stages[stage].order.size() * steps) {}

  bool isDone() const { return action == actions; }
  /// To the end, or to a message that is not sent yet. Whether there was
  /// something to do.
  bool advance();
  /// By action that the schedule knows, of the first step: without what it
  /// waits for messages before and behind, and without updates behind it.
  const std::vector<pipeline::Span> &spans() const { return ownSpans; }
  /// When the ranks are done with each step.
  const std::vector<double> &ends() const { return ownEnds; }

private:
  const StageAction &current() const {
    return plan.stages[stage].order[action % plan.stages[stage].order.size()];
  }
  void begin();
  /// False: what it receives is not sent yet.
  bool take(const ProgramInstruction &instruction);
  void end();
  /// A message goes up or down the stages, each way by a group of its own
  /// (ProgramRunner).
  std::string channelOf(const ProgramInstruction &instruction) const;

  const Plan &plan;
  const TimeModel &model;
  const int stage;
  Channels &channels;
  RankTimeline rank;
  const size_t actions;
  size_t action = 0;
  // Of the action that is under way.
  RankTimeline::Frame *frame = nullptr;
  size_t next = 0, last = 0;
  pipeline::Span span;
  bool computes = false; // has done so
  std::map<std::pair<int, int64_t>, RankTimeline::Frame> frames;
  std::vector<pipeline::Span> ownSpans;
  std::vector<double> ownEnds;
};

void StageRun::begin() {
  const StageAction &now = current();
  const std::pair key(now.chunk, now.microBatch);
  const Program &program =
      plan.programs[plan.programOf(stage, now.chunk, now.microBatch)];
  frame = &frames.try_emplace(key, model, program).first->second;
  const std::vector<size_t> parts = partsOf(program);
  const size_t part = plan.positionOf(now.part);
  next = parts[part];
  last = parts[part + 1];
  span.start = span.end = rank.computeEnd();
  computes = false;
}

std::string StageRun::channelOf(const ProgramInstruction &instruction) const {
  const bool sends = instruction.kind == ProgramInstructionKind::Send;
  const ChunkPlace other = placeBeside(
      plan, *frame->program, sends ? instruction.shift : -instruction.shift);
  const int from = sends ? stage : other.stage;
  const int to = sends ? other.stage : stage;
  return std::to_string(from) + (instruction.shift > 0 ? " up " : " down ") +
         std::to_string(to) + (other.wraps ? " around" : "");
}

bool StageRun::take(const ProgramInstruction &instruction) {
  const bool isOther = !staysInStage(plan, *frame->program, instruction);
  const bool sends = instruction.kind == ProgramInstructionKind::Send;
  const bool receives = instruction.kind == ProgramInstructionKind::Receive;
  const bool awaits = RankTimeline::awaitsMessage(*frame, instruction);
  if (receives && isOther) {
    Channel &channel = channels[channelOf(instruction)];
    if (channel.received == channel.arrivals.size())
      return false;
    rank.receive(channelOf(instruction), channel.arrivals[channel.received++]);
  } else if (sends && isOther) {
    channels[channelOf(instruction)].arrivals.push_back(
        rank.send(*frame, instruction, channelOf(instruction)));
  } else {
    rank.take(*frame, next);
  }
  if (receives || awaits) {
    if (!computes) // until now it has waited
      span.start = span.end = rank.computeEnd();
  } else if (sends || instruction.kind == ProgramInstructionKind::Call ||
             instruction.kind == ProgramInstructionKind::Await) {
    computes |= instruction.kind == ProgramInstructionKind::Call;
    span.end = rank.computeEnd();
  }
  return true;
}

void StageRun::end() {
  const size_t perStep = plan.stages[stage].order.size();
  if (action < perStep && passOf(plan, current().part))
    ownSpans.push_back(span);
  if (last == frame->program->instructions.size())
    frames.erase({current().chunk, current().microBatch});
  frame = nullptr;
  if (++action % perStep == 0)
    ownEnds.push_back(rank.end());
}

bool StageRun::advance() {
  bool any = false;
  while (!isDone()) {
    if (!frame)
      begin();
    for (; next < last; ++next, any = true)
      if (!take(frame->program->instructions[next]))
        return any;
    end();
    any = true;
  }
  return any;
}

/// What the schedule's actions took on each rank.
pipeline::Simulation simulationOf(const std::deque<StageRun> &runs) {
  pipeline::Simulation result;
  for (const StageRun &run : runs) {
    result.ranks.push_back(run.spans());
    for (const pipeline::Span &span : run.spans())
      result.makespan = std::max(result.makespan, span.end);
  }
  for (const std::vector<pipeline::Span> &spans : result.ranks) {
    pipeline::RankTotals &totals = result.totals.emplace_back();
    for (const pipeline::Span &span : spans)
      totals.busy += span.end - span.start;
    totals.bubble = result.makespan - totals.busy;
    if (!spans.empty())
      totals.gaps = spans.back().end - spans.front().start - totals.busy;
  }
  return result;
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
  for (int place = 0; place < problem.stages; ++place)
    holds.push_back(partOfModel(
        plan, chunkName(layout.stageOf(place), layout.chunkOf(place))));
  // A step of many: what a rank does beside the end of the step before is
  // gained.
  Channels channels;
  std::deque<StageRun> runs;
  for (int stage = 0; stage < plan.numStages(); ++stage)
    runs.emplace_back(plan, model, stage, /*steps=*/2, channels);
  for (bool any = true; any;) {
    any = false;
    for (StageRun &run : runs)
      any |= run.advance();
  }
  double first = 0, second = 0;
  for (const StageRun &run : runs) {
    if (!run.isDone())
      return std::nullopt;
    first = std::max(first, run.ends()[0]);
    second = std::max(second, run.ends()[1]);
  }
  result.seconds = second - first;
  simulation = simulationOf(runs);
  for (int stage = 0; stage < plan.numStages(); ++stage)
    simulation.totals[stage].peakBytes = plan.stages[stage].peakBytes;
  return result;
}

} // namespace accel
