//===- Profile.cpp - Measured beside predicted ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Profile.h"

#include "runtime/plan/Timeline.h"
#include "runtime/plan/TraceEvents.h"

#include <map>

namespace accel::run {

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

} // namespace

std::string toTrace(const plan::Plan &plan, const InstructionTimes &times) {
  plan::TraceEvents trace;
  trace.nameTrack(0, "predicted step");
  const bool streams = plan.device != "cpu"; // timed on their own
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
  double origin = -1, last = 0;
  for (const auto &run : times)
    for (const InstructionTime &time : run) {
      if (origin < 0)
        origin = time.begin;
      last = time.end - origin;
    }
  const plan::Predicted &predicted = plan.predicted;
  if (predicted.hasTime)
    trace.slice(0, "step", "", 0, predicted.stepSeconds,
                {{"compute_s", predicted.computeSeconds},
                 {"exposed_comm_s", predicted.exposedCommSeconds},
                 {"measured_s", last}});
  size_t run = 0;
  int64_t startBytes = plan::persistentBytes(plan);
  for (const auto &[index, repeat] : plan.step)
    for (int64_t i = 0; i < repeat && run < times.size(); ++i, ++run) {
      const plan::Program &program = plan.programs[index];
      const plan::ProgramTimeline timeline =
          plan::simulate(plan, program, startBytes);
      startBytes = timeline.endBytes;
      std::map<int, std::pair<int, double>> started;
      for (const InstructionTime &time : times[run]) {
        const plan::ProgramInstruction &instruction =
            program.instructions[time.instruction];
        const plan::InstructionMemory &memory =
            timeline.instructions[time.instruction];
        const double begin = time.begin - origin, end = time.end - origin;
        plan::TraceEvents::Arguments arguments = {
            {"instruction", time.instruction},
            {"measured_own_bytes", time.bytes},
            {"predicted_own_bytes", memory.liveBytes},
            {"predicted_peak_bytes", memory.peakTotalBytes}};
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
        trace.slice(1, labelOf(plan, instruction), "", begin, end,
                    std::move(arguments));
        trace.counter("own bytes, measured", end, {{"bytes", time.bytes}});
        trace.counter("own bytes, predicted", end,
                      {{"bytes", memory.liveBytes}});
        if (streams) {
          if (instruction.timepoint >= 0 &&
              instruction.kind != plan::ProgramInstructionKind::Await)
            trace.slice(track(instruction.stream), labelOf(plan, instruction),
                        "", time.streamBegin - origin, time.streamEnd - origin,
                        {{"instruction", time.instruction}});
        } else if (instruction.kind == plan::ProgramInstructionKind::Await) {
          auto [start, at] = started[instruction.timepoint];
          const plan::ProgramInstruction &first = program.instructions[start];
          trace.slice(track(first.stream), labelOf(plan, first), "", at, end,
                      {{"instruction", start}});
        } else if (instruction.timepoint >= 0) {
          started[instruction.timepoint] = {time.instruction, begin};
        }
      }
    }
  return trace.text();
}

} // namespace accel::run
