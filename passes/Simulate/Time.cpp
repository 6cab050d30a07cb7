//===- Time.cpp - How long a step takes -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulate/Time.h"

#include "passes/Cost/CollectiveCost.h"
#include "passes/Cost/FunctionTime.h"
#include "passes/Cost/OpCost.h"
#include "passes/Simulate/DriveQueue.h"
#include "runtime/plan/Chunks.h"
#include "runtime/plan/DiskLayout.h"
#include "runtime/plan/InstructionKey.h"
#include "runtime/plan/MovedBytes.h"
#include "runtime/plan/UpdateLayout.h"

#include <algorithm>
#include <array>
#include <numeric>
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
  struct Flight {
    double end = 0;
    double finish = 0; // what the await itself computes
  };
  int timepoints = 0;
  for (const ProgramInstruction &instruction : program.instructions)
    timepoints = std::max(timepoints, instruction.timepoint + 1);
  std::vector<Flight> flights(timepoints);
  ProgramTime result;
  if (withEvents)
    result.events.reserve(program.instructions.size());
  std::array<double, numStreams> clock{};        // by stream: when it is free
  std::vector<double> onHost(plan.units.size()); // a unit's gradients are there
  double &compute = clock[static_cast<int>(Stream::Compute)];
  double wire = 0;
  double freed = 0;                               // as in StepEnd
  std::vector<double> updated(plan.units.size()); // the same
  if (before) {
    clock[static_cast<int>(Stream::Gather)] = -before->gathers;
    wire = -before->wire;
    freed = -before->freed;
    for (size_t u = 0; u < updated.size(); ++u)
      updated[u] = -before->updated[u];
  }
  auto work = [&](double seconds) {
    compute += seconds;
    result.computeSeconds += seconds;
  };
  std::optional<DriveQueue> drive;
  if (plan.offload.onDisk()) {
    std::vector<DriveQueue::Record> records;
    for (const ProgramInstruction &instruction : program.instructions)
      if (instruction.kind == ProgramInstructionKind::Optimizer)
        records.push_back({units[instruction.unit].diskRead,
                           units[instruction.unit].diskWrite});
    drive.emplace(std::move(records), plan.offload.disk,
                  diskBuffers(plan, program.stage));
  }
  double update = -1, updating = 0;
  bool besideBackward = false;
  auto updates = [&](double since) {
    if (update < 0)
      update = since;
  };
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const ProgramInstruction &instruction = program.instructions[i];
    double &own = clock[static_cast<int>(instruction.stream)];
    TimelineEvent event{static_cast<int>(i), instruction.stream, own, own, 0};
    switch (instruction.kind) {
    case ProgramInstructionKind::Free:
      if (instruction.unit >= 0 && instruction.role == Role::Gathered)
        freed = compute;
      break;
    case ProgramInstructionKind::Alloc:
      break;
    case ProgramInstructionKind::Call:
      besideBackward |= update >= 0;
      work(functions[instruction.function]);
      // What the function's operators wait for.
      compute += exchanges[instruction.function];
      result.exposedSeconds += exchanges[instruction.function];
      result.exchangeSeconds += exchanges[instruction.function];
      break;
    case ProgramInstructionKind::Offload:
    case ProgramInstructionKind::Fetch:
      event.begin = std::max(own, compute);
      own = event.end =
          event.begin + (instruction.unit >= 0
                             ? units[instruction.unit].hostOut
                             : copySeconds(program, instruction.inputs));
      if (instruction.unit >= 0)
        onHost[instruction.unit] = own;
      flights[instruction.timepoint] = {own, 0};
      break;
    case ProgramInstructionKind::Optimizer:
      if (plan.offload.states) {
        // The host works while the device does what it was given before; what
        // follows on the device reads the updated shard.
        event.begin = std::max(own, onHost[instruction.unit]);
        updates(event.begin);
        if (drive)
          event.begin = drive->begin(event.begin);
        own = event.begin + units[instruction.unit].update;
        double &in = clock[static_cast<int>(Stream::HostIn)];
        in = std::max(in, own) + units[instruction.unit].hostIn;
        if (drive)
          own = drive->end(own, in);
        event.waited = std::max(0.0, in - compute);
        compute += event.waited;
        event.exposed = event.waited;
        updated[instruction.unit] = compute;
        break;
      }
      updates(compute);
      work(units[instruction.unit].update);
      updating +=
          units[instruction.unit].update + units[instruction.unit].updateWire;
      // Sums that the update itself waits for.
      compute += units[instruction.unit].updateWire;
      event.exposed = units[instruction.unit].updateWire;
      updated[instruction.unit] = compute;
      break;
    case ProgramInstructionKind::GradNorm:
      if (plan.offload.states) {
        // As gradients arrive; those of other programs are there before.
        std::vector<size_t> order(units.size());
        std::iota(order.begin(), order.end(), size_t(0));
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
          return onHost[a] < onHost[b];
        });
        for (size_t u : order)
          own = std::max(own, onHost[u]) + units[u].hostNorm;
        own += gradNorms[program.stage];
        // The norm is known: gradients are read and written.
        if (plan.job.optimizer.maxGradNorm > 0 || plan.job.lossScaling)
          for (const UnitTimes &unit : units)
            own += 2 * unit.hostNorm;
        break;
      }
      updates(compute);
      work(gradNorms[program.stage]);
      break;
    // How long they wait depends on other ranks: simulatePipeline.
    case ProgramInstructionKind::Send:
    case ProgramInstructionKind::Receive:
      if (instruction.timepoint >= 0)
        flights[instruction.timepoint] = {};
      else if (instruction.kind == ProgramInstructionKind::Send) // a copy
        work(memorySeconds(2.0 * static_cast<double>(denseBytes(
                                     program.values[instruction.inputs[0]]))));
      break;
    case ProgramInstructionKind::Pause:
      if (const double now = *std::max_element(clock.begin(), clock.end());
          result.forwardSeconds == 0)
        result.forwardSeconds = now;
      else if (result.inputSeconds == 0)
        result.inputSeconds = now;
      break;
    case ProgramInstructionKind::AllGather:
    case ProgramInstructionKind::ReduceScatter:
    case ProgramInstructionKind::AllReduce: {
      const UnitTimes &times = units[instruction.unit];
      Flight flight;
      double transfer = 0, before = 0;
      if (instruction.kind == ProgramInstructionKind::AllGather) {
        transfer = times.gather;
        before = times.fill;
      } else if (instruction.kind == ProgramInstructionKind::ReduceScatter) {
        transfer = times.scatter;
        flight.finish = finishSeconds(instruction);
      } else {
        transfer = times.allReduce;
        before = times.castForWire;
        flight.finish = times.castForWire;
      }
      // On CPUs the thread that computes also copies.
      if (target.kind == TargetKind::Cpu) {
        work(before);
        before = 0;
      }
      // A start waits for what was computed before it, and for its turn; what
      // every rank keeps may have been read until now.
      const bool gathers =
          instruction.kind == ProgramInstructionKind::AllGather &&
          gathersOnStream() && !plan.units[instruction.unit].whole;
      event.begin = std::max(
          own, gathers ? std::max(freed, updated[instruction.unit]) : compute);
      const double ready = event.begin + before;
      flight.end = ready;
      if (transfer > 0) {
        // The part that cannot be hidden is taken from the computation.
        const double taken = transfer * (1 - target.overlap);
        compute += taken;
        event.exposed = taken;
        flight.end = std::max(ready, wire) + transfer;
        wire = flight.end;
      }
      own = std::max(own, flight.end);
      event.end = flight.end;
      flights[instruction.timepoint] = flight;
      break;
    }
    case ProgramInstructionKind::Await: {
      const Flight &flight = flights[instruction.timepoint];
      event.waited = std::max(0.0, flight.end - own);
      own += event.waited;
      event.begin = own;
      if (instruction.stream == Stream::Compute) {
        event.exposed = event.waited;
        work(flight.finish);
      } else {
        own += flight.finish;
      }
      break;
    }
    }
    event.end = std::max(event.end, own);
    result.exposedSeconds += event.exposed;
    if (withEvents)
      result.events.push_back(event);
  }
  result.seconds = *std::max_element(clock.begin(), clock.end());
  if (update >= 0)
    result.updateSeconds = besideBackward ? updating : result.seconds - update;
  result.exposedSeconds += result.seconds - compute;
  // What was before the program is of no importance behind it.
  auto since = [&](double at) { return result.seconds - std::max(0.0, at); };
  result.end.gathers = since(clock[static_cast<int>(Stream::Gather)]);
  result.end.wire = since(wire);
  result.end.freed = since(freed);
  for (double at : updated)
    result.end.updated.push_back(since(at));
  return result;
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
