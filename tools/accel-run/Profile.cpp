//===- Profile.cpp - Measured beside predicted ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Profile.h"

#include "runtime/plan/Timeline.h"

#include <nlohmann/json.hpp>

#include <map>

namespace accel::run {

using nlohmann::ordered_json;

namespace {

std::string labelOf(const plan::Plan &plan, const plan::Step &step) {
  std::string label = plan::toString(step.kind);
  if (step.kind == plan::StepKind::Call)
    label = plan.functions[step.function].name;
  else if (step.unit >= 0 && (step.kind == plan::StepKind::Alloc ||
                              step.kind == plan::StepKind::Free))
    label += std::string(" ") + plan::toString(step.role);
  const std::string &place = step.where.empty() && step.unit >= 0
                                 ? plan.units[step.unit].name
                                 : step.where;
  return place.empty() ? label : label + " " + place;
}

class Trace {
public:
  void name(int track, const std::string &text) {
    events.push_back({{"ph", "M"},
                      {"pid", 0},
                      {"tid", track},
                      {"name", "thread_name"},
                      {"args", {{"name", text}}}});
  }
  void slice(int track, const std::string &text, double begin, double end,
             ordered_json arguments) {
    events.push_back({{"ph", "X"},
                      {"pid", 0},
                      {"tid", track},
                      {"name", text},
                      {"ts", begin * 1e6},
                      {"dur", (end - begin) * 1e6},
                      {"args", std::move(arguments)}});
  }
  void counter(const char *text, double at, int64_t value) {
    events.push_back({{"ph", "C"},
                      {"pid", 0},
                      {"name", text},
                      {"ts", at * 1e6},
                      {"args", {{"bytes", value}}}});
  }
  std::string text() {
    return ordered_json{{"traceEvents", std::move(events)},
                        {"displayTimeUnit", "ms"}}
               .dump() +
           "\n";
  }

private:
  ordered_json events = ordered_json::array();
};

} // namespace

std::string toTrace(const plan::Plan &plan, const StepTimes &times) {
  Trace trace;
  trace.name(0, "predicted step");
  const bool streams = plan.device != "cpu"; // timed on their own
  trace.name(1, streams ? "measured: compute stream" : "measured: main thread");
  const char *span = streams ? "" : ", start to await";
  trace.name(2, std::string("measured: gather") + span);
  trace.name(3, std::string("measured: reduce") + span);
  double origin = -1, last = 0;
  for (const auto &run : times)
    for (const StepTime &time : run) {
      if (origin < 0)
        origin = time.begin;
      last = time.end - origin;
    }
  const plan::Predicted &predicted = plan.predicted;
  if (predicted.hasTime)
    trace.slice(0, "step", 0, predicted.stepSeconds,
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
      for (const StepTime &time : times[run]) {
        const plan::Step &step = program.steps[time.step];
        const plan::StepMemory &memory = timeline.steps[time.step];
        const double begin = time.begin - origin, end = time.end - origin;
        ordered_json arguments = {
            {"step", time.step},
            {"measured_own_bytes", time.bytes},
            {"predicted_own_bytes", memory.liveBytes},
            {"predicted_peak_bytes", memory.peakTotalBytes}};
        if (step.kind == plan::StepKind::Call) {
          double flops = 0, moved = 0;
          for (const auto &op : plan.functions[step.function].instructions) {
            flops += op.flops;
            moved += op.movedBytes;
          }
          arguments["predicted_flops"] = flops;
          arguments["predicted_moved_bytes"] = moved;
          arguments["measured_flops_per_s"] = flops / (end - begin);
        }
        trace.slice(1, labelOf(plan, step), begin, end, std::move(arguments));
        trace.counter("own bytes, measured", end, time.bytes);
        trace.counter("own bytes, predicted", end, memory.liveBytes);
        auto track = [](const plan::Step &of) {
          return of.stream == plan::Stream::Gather ? 2 : 3;
        };
        if (streams) {
          if (step.timepoint >= 0 && step.kind != plan::StepKind::Await)
            trace.slice(track(step), labelOf(plan, step),
                        time.streamBegin - origin, time.streamEnd - origin,
                        {{"step", time.step}});
        } else if (step.kind == plan::StepKind::Await) {
          auto [start, at] = started[step.timepoint];
          const plan::Step &first = program.steps[start];
          trace.slice(track(first), labelOf(plan, first), at, end,
                      {{"step", start}});
        } else if (step.timepoint >= 0) {
          started[step.timepoint] = {time.step, begin};
        }
      }
    }
  return trace.text();
}

} // namespace accel::run
