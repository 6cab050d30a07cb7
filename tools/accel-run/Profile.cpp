//===- Profile.cpp - Measured beside predicted ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Profile.h"

#include "runtime/plan/Timeline.h"
#include "runtime/plan/TraceEvents.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace accel::run {

std::vector<ProgramRun> runsOf(const plan::Plan &plan, int stage) {
  std::vector<ProgramRun> runs;
  for (const auto &[index, repeat] : plan.step)
    for (int64_t i = 0; i < repeat; ++i) {
      const plan::Program &program = plan.programs[index];
      runs.push_back({program, 0, program.instructions.size(),
                      static_cast<int64_t>(runs.size())});
    }
  if (plan.stages.empty())
    return runs;
  for (const plan::StageAction &action : plan.stages[stage].order) {
    const plan::Program &program =
        plan.programs[plan.programOf(stage, action.chunk, action.microBatch)];
    const std::vector<size_t> parts = plan::partsOf(program);
    const size_t part = plan.positionOf(action.part);
    runs.push_back({program, parts[part], parts[part + 1], action.microBatch});
  }
  return runs;
}

namespace {

std::string labelOf(const plan::Plan &plan,
                    const plan::ProgramInstruction &instruction) {
  std::string label = plan::toString(instruction.kind);
  if (instruction.kind == plan::ProgramInstructionKind::Call)
    label = plan.functions[instruction.function].name;
  else if (instruction.unit >= 0 &&
           (instruction.kind == plan::ProgramInstructionKind::Alloc ||
            instruction.kind == plan::ProgramInstructionKind::Free))
    label += std::string(" ") + plan::toString(instruction.role);
  const std::string &place = instruction.where.empty() && instruction.unit >= 0
                                 ? plan.units[instruction.unit].name
                                 : instruction.where;
  return place.empty() ? label : label + " " + place;
}

/// What the plan says of the memory of each run.
std::vector<plan::ProgramTimeline> timelinesOf(const plan::Plan &plan,
                                               int stage) {
  if (!plan.stages.empty())
    return plan::simulateStage(plan, stage);
  std::vector<plan::ProgramTimeline> timelines;
  int64_t startBytes = plan::persistentBytes(plan);
  for (const auto &[index, repeat] : plan.step)
    for (int64_t i = 0; i < repeat; ++i) {
      timelines.push_back(
          plan::simulate(plan, plan.programs[index], startBytes));
      startBytes = timelines.back().endBytes;
    }
  return timelines;
}

/// The first seconds and the last of what is timed.
std::pair<double, double> spanOf(const InstructionTimes &times) {
  double begin = -1, end = 0;
  for (const auto &run : times)
    for (const InstructionTime &time : run) {
      if (begin < 0)
        begin = time.begin;
      end = std::max(end, time.end);
    }
  return {begin, end};
}

/// When the first stream has something to do: a GPU's gathers may begin beside
/// the end of the step before `begin`.
double firstWork(const InstructionTimes &times, double begin) {
  for (const auto &run : times)
    for (const InstructionTime &time : run)
      if (time.streamBegin < time.streamEnd)
        begin = std::min(begin, time.streamBegin);
  return begin;
}

/// Tracks of one stage in the trace's process at hand, of a step that begins at
/// `stepBegin`; the trace's times are those after `origin`.
void traceStage(plan::TraceEvents &trace, const plan::Plan &plan, int stage,
                const InstructionTimes &times, double stepBegin,
                double origin) {
  const bool streams = plan.device != "cpu"; // timed on their own
  trace.nameTrack(0, "predicted step");
  trace.nameTrack(1, streams ? "measured: compute stream"
                             : "measured: main thread");
  const char *span = streams ? "" : ", start to await";
  std::map<plan::Stream, int> tracks;
  auto track = [&](plan::Stream stream) {
    auto [at, isNew] =
        tracks.emplace(stream, 2 + static_cast<int>(tracks.size()));
    if (isNew)
      trace.nameTrack(at->second, std::string("measured: ") +
                                      plan::toString(stream) + span);
    return at->second;
  };
  track(plan::Stream::Gather);
  track(plan::Stream::Reduce);
  const plan::Predicted &predicted = plan.predicted;
  if (predicted.hasTime)
    trace.slice(
        0, "step", "", stepBegin - origin,
        stepBegin - origin + predicted.stepSeconds,
        {{"compute_s", plan.stages.empty() ? predicted.computeSeconds
                                           : plan.stages[stage].busySeconds},
         {"exposed_comm_s", predicted.exposedCommSeconds},
         {"measured_s", spanOf(times).second - stepBegin}});
  const std::vector<ProgramRun> runs = runsOf(plan, stage);
  const auto timelines = timelinesOf(plan, stage);
  // Instructions that are under way, by program, micro-batch and timepoint, and
  // when they began.
  std::map<std::tuple<const plan::Program *, int64_t, int>,
           std::pair<int, double>>
      started;
  for (size_t run = 0; run < times.size(); ++run) {
    const plan::Program &program = runs[run].program;
    for (const InstructionTime &time : times[run]) {
      const plan::ProgramInstruction &instruction =
          program.instructions[time.instruction];
      const plan::InstructionMemory &memory =
          timelines[run].instructions[time.instruction - runs[run].begin];
      const double begin = time.begin - origin, end = time.end - origin;
      plan::TraceEvents::Arguments arguments = {
          {"instruction", time.instruction},
          {"measured_own_bytes", time.bytes},
          {"predicted_own_bytes", memory.liveBytes},
          {"predicted_peak_bytes", memory.peakTotalBytes}};
      if (!plan.stages.empty())
        arguments["micro_batch"] = runs[run].microBatch;
      if (instruction.kind == plan::ProgramInstructionKind::Call) {
        double flops = 0, moved = 0;
        for (const auto &op :
             plan.functions[instruction.function].instructions) {
          flops += op.flops;
          moved += op.movedBytes;
        }
        arguments["predicted_flops"] = flops;
        arguments["predicted_moved_bytes"] = moved;
        arguments["measured_flops_per_s"] = flops / (end - begin);
      }
      const bool onHost = streams && instruction.stream == plan::Stream::Host;
      trace.slice(onHost ? track(plan::Stream::Host) : 1,
                  labelOf(plan, instruction), "", begin, end,
                  std::move(arguments));
      trace.counter("own bytes, measured", end, {{"bytes", time.bytes}});
      trace.counter("own bytes, predicted", end, {{"bytes", memory.liveBytes}});
      const std::tuple key(&program, runs[run].microBatch,
                           instruction.timepoint);
      if (streams) {
        const bool copiesBack =
            onHost && !plan.offload.parameters &&
            instruction.kind == plan::ProgramInstructionKind::Optimizer;
        if (copiesBack ||
            (instruction.timepoint >= 0 &&
             instruction.kind != plan::ProgramInstructionKind::Await))
          trace.slice(
              track(copiesBack ? plan::Stream::HostIn : instruction.stream),
              labelOf(plan, instruction), "", time.streamBegin - origin,
              time.streamEnd - origin, {{"instruction", time.instruction}});
      } else if (instruction.kind == plan::ProgramInstructionKind::Await) {
        auto [start, at] = started[key];
        const plan::ProgramInstruction &first = program.instructions[start];
        trace.slice(track(first.stream), labelOf(plan, first), "", at, end,
                    {{"instruction", start}});
      } else if (instruction.timepoint >= 0) {
        started[key] = {time.instruction, begin};
      }
    }
  }
}

/// What of an instruction's time goes to a stage's share.
enum class Share { Computes, WaitsForStages, Waits };

Share shareOf(const plan::Program &program,
              const plan::ProgramInstruction &instruction) {
  using Kind = plan::ProgramInstructionKind;
  if (instruction.stream == plan::Stream::Host)
    return Share::Waits; // of the device
  switch (instruction.kind) {
  case Kind::Receive:
    return Share::WaitsForStages;
  case Kind::Await:
    for (const plan::ProgramInstruction &start : program.instructions)
      if (start.timepoint == instruction.timepoint && start.kind == Kind::Send)
        return Share::WaitsForStages;
    return Share::Waits;
  case Kind::AllGather:
  case Kind::ReduceScatter:
  case Kind::AllReduce:
  case Kind::GradNorm:
    return Share::Waits;
  default:
    return Share::Computes;
  }
}

constexpr size_t numbersOfTime = 6;

} // namespace

std::vector<InstructionTimes> ofStages(Groups &groups, const plan::Plan &plan,
                                       const InstructionTimes &own) {
  std::vector<std::vector<ProgramRun>> runs;
  size_t most = 0; // instructions of a stage
  for (int stage = 0; stage < plan.numStages(); ++stage) {
    runs.push_back(runsOf(plan, stage));
    size_t count = 0;
    for (const ProgramRun &run : runs.back())
      count += run.end - run.begin;
    most = std::max(most, count);
  }
  // One rank of each stage has numbers, all others have zeros: their sums are
  // its numbers.
  std::vector<double> sums(most * numbersOfTime * runs.size());
  if (groups.mesh().speaksForStage()) {
    auto at = sums.begin() + static_cast<int64_t>(most * numbersOfTime) *
                                 groups.mesh().position({plan::pipelineAxis});
    for (const auto &run : own)
      for (const InstructionTime &time : run)
        for (double number : {static_cast<double>(time.instruction), time.begin,
                              time.end, time.streamBegin, time.streamEnd,
                              static_cast<double>(time.bytes)})
          *at++ = number;
  }
  std::vector<double> maxima;
  groups.combine(sums, maxima);
  std::vector<InstructionTimes> result(runs.size());
  for (size_t stage = 0; stage < runs.size(); ++stage) {
    const double *at = sums.data() + stage * most * numbersOfTime;
    for (const ProgramRun &run : runs[stage]) {
      std::vector<InstructionTime> &times = result[stage].emplace_back();
      for (size_t i = run.begin; i < run.end; ++i, at += numbersOfTime) {
        InstructionTime &time = times.emplace_back();
        time.instruction = static_cast<int>(at[0]);
        time.begin = at[1];
        time.end = at[2];
        time.streamBegin = at[3];
        time.streamEnd = at[4];
        time.bytes = static_cast<int64_t>(at[5]);
      }
    }
  }
  return result;
}

std::vector<StageUse> useOfStages(const plan::Plan &plan,
                                  const std::vector<InstructionTimes> &stages) {
  double begin = -1, end = 0;
  for (const InstructionTimes &times : stages) {
    const auto [first, last] = spanOf(times);
    begin = begin < 0 ? first : std::min(begin, first);
    end = std::max(end, last);
  }
  std::vector<StageUse> result;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    StageUse &use = result.emplace_back();
    use.step = end - begin;
    const std::vector<ProgramRun> runs = runsOf(plan, static_cast<int>(stage));
    for (size_t run = 0; run < runs.size(); ++run)
      for (const InstructionTime &time : stages[stage][run]) {
        const plan::Program &program = runs[run].program;
        double &seconds = [&]() -> double & {
          switch (shareOf(program, program.instructions[time.instruction])) {
          case Share::Computes:
            return use.computes;
          case Share::WaitsForStages:
            return use.waitsForStages;
          case Share::Waits:
            return use.waits;
          }
          return use.computes;
        }();
        seconds += time.end - time.begin;
      }
  }
  return result;
}

std::string toTrace(const plan::Plan &plan,
                    const std::vector<InstructionTimes> &stages) {
  plan::TraceEvents trace;
  double begin = -1;
  for (const InstructionTimes &times : stages) {
    const double first = spanOf(times).first;
    begin = begin < 0 ? first : std::min(begin, first);
  }
  double origin = begin;
  for (const InstructionTimes &times : stages)
    origin = firstWork(times, origin);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    trace.enterProcess(1 + static_cast<int>(stage));
    if (!plan.stages.empty())
      trace.nameProcess("stage " + std::to_string(stage));
    traceStage(trace, plan, static_cast<int>(stage), stages[stage], begin,
               origin);
  }
  return trace.text();
}

} // namespace accel::run
