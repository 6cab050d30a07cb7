//===- Time.cpp - How long a step takes -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulate/Time.h"

#include "passes/Cost/CollectiveCost.h"
#include "passes/Cost/FunctionTime.h"
#include "passes/Cost/OpCost.h"
#include "passes/Simulate/RankTimeline.h"
#include "runtime/plan/Chunks.h"
#include "runtime/plan/DiskLayout.h"
#include "runtime/plan/InstructionKey.h"
#include "runtime/plan/MovedBytes.h"
#include "runtime/plan/UpdateLayout.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace accel {

using namespace plan;

TimeModel::TimeModel(const Plan &plan, const Target &target,
                     int64_t ranksPerNode)
    : plan(plan), target(target), ranksPerNode(ranksPerNode),
      optimizer(plan.job.optimizer) {
  const Mesh mesh{plan.axes};
  std::optional<double> overhead;
  if (!target.measuredOverheads.empty())
    if (const auto key = overheadKey(plan))
      if (const auto at = target.measuredOverheads.find(*key);
          at != target.measuredOverheads.end())
        overhead = at->second;
  for (const Function &function : plan.functions) {
    const FunctionTime time = functionTime(
        function, mesh, ranksPerNode > 0 ? ranksPerNode : target.ranksPerNode,
        target);
    functions.push_back(time.computeSeconds * (1 + overhead.value_or(0)));
    exchanges.push_back(time.exchangeSeconds);
  }
  for (const Unit &unit : plan.units) {
    UnitTimes &times = units.emplace_back(unitTimes(unit));
    // What is left of a reduction is in the overhead that was measured.
    if (overhead)
      times.addSlices = times.addPiece = times.addBefore = times.castForWire =
          0;
  }
  for (int stage = 0; stage < plan.numStages(); ++stage)
    gradNorms.push_back(gradNormSeconds(stage));
}

double TimeModel::sendSeconds(int64_t bytes) const {
  const Mesh mesh{plan.axes};
  const AxisGroup stages =
      mesh.group(mesh.set({pipelineAxis}),
                 ranksPerNode > 0 ? ranksPerNode : target.ranksPerNode);
  const AxisGroup pair = {2, stages.inNode == stages.ranks ? 2 : 1};
  if (pair.inNode == 2)
    if (const auto at = target.measuredCollectives.find(
            collectiveKey(ProgramInstructionKind::Send, 2, bytes));
        at != target.measuredCollectives.end())
      return at->second;
  // One of two ranks sends what both would gather half of each.
  return accel::collectiveSeconds(target, Collective::AllGather, pair,
                                  2 * static_cast<double>(bytes));
}

double TimeModel::copySeconds(const Program &program,
                              const std::vector<int> &values) const {
  std::set<int> storages;
  double seconds = 0;
  for (int value : values)
    if (const int root = rootOf(program, value); storages.insert(root).second)
      seconds += hostCopySeconds(
          target, static_cast<double>(program.values[root].bytes));
  return seconds;
}

double TimeModel::memorySeconds(double bytes) const {
  return accel::memorySeconds(target, bytes);
}

double TimeModel::wireSeconds(ProgramInstructionKind kind,
                              const std::vector<std::string> &axes,
                              double bytes) const {
  return collectiveSeconds(plan, target, ranksPerNode, kind, axes, bytes);
}

std::optional<double>
TimeModel::measuredSeconds(const std::optional<MovedBytes> &moved) const {
  // As many ranks of several machines do not share one's memory.
  if (!moved ||
      plan.ranks() > (ranksPerNode > 0 ? ranksPerNode : target.ranksPerNode))
    return std::nullopt;
  const auto at = target.measuredMoves.find(moved->key);
  if (at == target.measuredMoves.end())
    return std::nullopt;
  return at->second * moved->bytes;
}

TimeModel::UnitTimes TimeModel::unitTimes(const Unit &unit) const {
  const double ranks = static_cast<double>(plan.shardRanks(unit));
  const double shard = static_cast<double>(shardNumel(plan, unit));
  const double storage = shard * static_cast<double>(itemSize(unit.storage));
  const double gathered = static_cast<double>(unit.padded) *
                          static_cast<double>(itemSize(unit.gather));
  const double gradient = static_cast<double>(unit.padded) *
                          static_cast<double>(itemSize(unit.reduce));
  UnitTimes times;
  // The shard is copied, or cast, into its place in the gathered buffer.
  times.fill = plan.offload.parameters
                   ? hostCopySeconds(target, gathered / ranks)
                   : memorySeconds(gatherCopyBytes(plan, unit));
  if (!target.measuredMoves.empty())
    times.fill =
        measuredSeconds(movedByGather(plan, unit)).value_or(times.fill);
  times.gather =
      wireSeconds(ProgramInstructionKind::AllGather, unit.shardAxes, gathered);
  times.scatter = wireSeconds(ProgramInstructionKind::ReduceScatter,
                              unit.shardAxes, gradient);
  const double summed =
      unit.hook.empty()
          ? storage
          : shard * static_cast<double>(itemSize(hookDType(unit)));
  times.allReduce = wireSeconds(ProgramInstructionKind::AllReduce,
                                unit.replicateAxes, summed);
  times.castForWire = unit.hook.empty() ? 0 : memorySeconds(storage + summed);
  // What is left of a reduction: slices are added, or one is cast or added.
  times.addSlices = memorySeconds(gradient + storage);
  times.addPiece = memorySeconds(gradient / ranks + storage);
  times.addBefore = storage / target.memoryBytesPerSecond;
  if (unit.trainable) {
    const UpdateWork work =
        updateWork(optimizer, updateShape(plan, unit), plan.device);
    const auto measured =
        target.measuredMoves.empty()
            ? std::nullopt
            : measuredSeconds(movedByUpdate(plan, optimizer, unit));
    times.update = measured.value_or(memorySeconds(work.movedBytes));
    if (plan.offload.states) {
      const double rate = target.host.updateBytesPerSecond;
      times.hostOut = hostCopySeconds(target, storage);
      times.hostIn =
          plan.offload.parameters ? 0 : hostCopySeconds(target, storage);
      times.update = rate > 0 ? work.movedBytes / rate : 0;
      times.hostNorm = rate > 0 ? storage / rate : 0;
    }
    if (plan.offload.onDisk()) {
      const auto bytes = static_cast<double>(recordBytes(plan, unit));
      times.diskRead = driveSeconds(bytes, target.drive.readBytesPerSecond);
      times.diskWrite = driveSeconds(bytes, target.drive.writeBytesPerSecond);
    }
    if (measured) // with what it multiplies and exchanges
      return times;
    if (work.flops > 0)
      times.update += work.flops / target.flops(DType::BF16);
    const Mesh mesh{plan.axes};
    const AxisGroup group =
        mesh.group(mesh.set(unit.shardAxes),
                   ranksPerNode > 0 ? ranksPerNode : target.ranksPerNode);
    for (const UpdateExchange &exchange : work.exchanges)
      times.updateWire += collectiveSeconds(
          target, exchange.sums ? Collective::AllReduce : Collective::AllToAll,
          group, exchange.bytes);
  }
  return times;
}

/// Each shard gradient is read for the sum of squares, and read and written by
/// the scaling; the sums are all-reduced, one for each set of axes. What was
/// measured of it has the sums in it.
double TimeModel::gradNormSeconds(int stage) const {
  if (!target.measuredMoves.empty())
    if (const auto measured = measuredSeconds(movedByNorm(plan)))
      return *measured;
  double seconds = 0;
  std::set<std::vector<std::string>> groups;
  for (const Unit &unit : plan.units) {
    if (!unit.trainable || unit.stage != stage)
      continue;
    const double bytes =
        static_cast<double>(roleBytes(plan, unit, Role::ShardGradient));
    if (!plan.offload.states)
      seconds += memorySeconds(bytes) + memorySeconds(2 * bytes);
    if (groups.insert(unit.shardAxes).second)
      seconds += wireSeconds(ProgramInstructionKind::AllReduce, unit.shardAxes,
                             alignmentBytes);
  }
  return seconds;
}

ProgramTime TimeModel::simulate(const Program &program, bool withEvents,
                                const StepEnd *before) const {
  RankTimeline rank(*this, before);
  RankTimeline::Frame frame(*this, program);
  if (withEvents)
    frame.time.events.reserve(program.instructions.size());
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const TimelineEvent event = rank.take(frame, i);
    if (withEvents)
      frame.time.events.push_back(event);
  }
  rank.finish(frame);
  return std::move(frame.time);
}

/// Equal but for rounding.
static bool isNear(const StepEnd &a, const StepEnd &b) {
  auto near = [](double x, double y) { return std::abs(x - y) < 1e-12; };
  return near(a.gathers, b.gathers) && near(a.wire, b.wire) &&
         near(a.freed, b.freed) &&
         std::equal(a.updated.begin(), a.updated.end(), b.updated.begin(),
                    b.updated.end(), near);
}

std::vector<StepPart> TimeModel::simulateStep(int stage,
                                              bool withEvents) const {
  std::vector<StepPart> parts;
  const auto step = plan.stepsOf(stage);
  if (!plan.stages.empty() || !gathersOnStream()) {
    for (const auto &[index, repeat] : step)
      parts.push_back({index, static_cast<double>(repeat),
                       simulate(plan.programs[index], withEvents)});
    return parts;
  }
  // Twice, since the first step follows nothing.
  std::optional<StepEnd> end;
  for (const bool counts : {false, true}) {
    // A host that updates comes to the next step's gathers when it is done.
    if (plan.offload.states)
      end.reset();
    for (const auto &[index, repeat] : step)
      for (int64_t i = 0, times = 1; i < repeat; i += times) {
        ProgramTime time = simulate(plan.programs[index], counts && withEvents,
                                    end ? &*end : nullptr);
        // What follows a program that left the same takes the same.
        times = end && isNear(*end, time.end) ? repeat - i : 1;
        end = time.end;
        if (counts)
          parts.push_back({index, static_cast<double>(times), std::move(time)});
      }
  }
  return parts;
}

/// As accel-run finishes a reduce-scatter: an all-to-all's slices are summed;
/// NCCL's result is the sum already, and only added or cast where it is not in
/// its place.
double TimeModel::finishSeconds(const ProgramInstruction &instruction) const {
  const Unit &unit = plan.units[instruction.unit];
  const UnitTimes &times = units[instruction.unit];
  const bool communicates = plan.groupSize(instruction.axes) > 1;
  double seconds = 0;
  if (communicates && instruction.algorithm == "all_to_all")
    seconds = times.addSlices;
  else if (!communicates || instruction.accumulate ||
           unit.reduce != unit.storage)
    seconds = times.addPiece;
  return instruction.accumulate ? seconds + times.addBefore : seconds;
}

ProgramTime simulateTime(const Plan &plan, const Program &program,
                         const Target &target, int64_t ranksPerNode,
                         bool withEvents) {
  return TimeModel(plan, target, ranksPerNode).simulate(program, withEvents);
}

namespace {
/// A rank computes as long as the slowest stage's; what it waits for is
/// messages, other collectives and its bubble.
void predictPipelineTime(Plan &plan, const TimeModel &model) {
  Predicted &predicted = plan.predicted;
  for (int stage = 0; stage < plan.numStages(); ++stage) {
    double &busy = plan.stages[stage].busySeconds;
    busy = 0;
    for (const StepPart &part : model.simulateStep(stage))
      busy += part.time.computeSeconds * part.repeat;
    predicted.computeSeconds = std::max(predicted.computeSeconds, busy);
  }
  if (const auto step = simulatePipeline(plan, model))
    predicted.stepSeconds = step->seconds;
  predicted.exposedCommSeconds =
      predicted.stepSeconds - predicted.computeSeconds;
}
} // namespace

void predictTime(Plan &plan, const Target &target, int64_t ranksPerNode) {
  Predicted &predicted = plan.predicted;
  predicted.stepSeconds = predicted.computeSeconds = 0;
  predicted.exposedCommSeconds = predicted.tokensPerSecond = 0;
  const TimeModel model(plan, target, ranksPerNode);
  double microBatches = 0;
  if (!plan.stages.empty()) {
    predictPipelineTime(plan, model);
    microBatches = static_cast<double>(plan.job.accumulation);
  } else {
    for (const auto &[index, times, time] : model.simulateStep()) {
      predicted.stepSeconds += times * time.seconds;
      predicted.computeSeconds += times * time.computeSeconds;
      predicted.exposedCommSeconds += times * time.exposedSeconds;
      microBatches += times;
    }
  }
  predicted.hasTime = predicted.stepSeconds > 0;
  if (predicted.hasTime)
    predicted.tokensPerSecond =
        static_cast<double>(plan.ranks() / Mesh{plan.axes}.ranksPerSample() *
                            plan.job.itemsPerMicroBatch()) *
        microBatches / predicted.stepSeconds;
}

} // namespace accel
