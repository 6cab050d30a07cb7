//===- EmitPerfetto.cpp - A step for ui.perfetto.dev ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Emit/EmitPerfetto.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace accel {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(double seconds) { return seconds * 1e6; }

const char *categoryOf(TraceSlice::Kind kind) {
  switch (kind) {
  case TraceSlice::Kind::Compute:
    return "compute";
  case TraceSlice::Kind::Copy:
    return "copy";
  case TraceSlice::Kind::Collective:
    return "collective";
  case TraceSlice::Kind::Wait:
    break;
  }
  return "wait";
}

class Writer {
public:
  void run(const StepTrace &trace, const std::string &title,
           std::optional<int64_t> budget) {
    meta("process_name", 0, title);
    for (const TraceSlice &slice : trace.slices)
      add(slice);
    memory(trace, budget);
  }
  Json events = Json::array();

private:
  void meta(const char *what, int thread, const std::string &name) {
    events.push_back({{"ph", "M"},
                      {"pid", 1},
                      {"tid", thread},
                      {"name", what},
                      {"args", {{"name", name}}}});
  }

  /// Streams in the order in which they first work.
  int threadOf(const std::string &stream) {
    const auto at = std::find(streams.begin(), streams.end(), stream);
    if (at != streams.end())
      return static_cast<int>(at - streams.begin()) + 1;
    streams.push_back(stream);
    const int thread = static_cast<int>(streams.size());
    meta("thread_name", thread, stream);
    return thread;
  }

  void add(const TraceSlice &slice) {
    const int thread = threadOf(slice.stream);
    Json args = {{"where", slice.where}};
    if (slice.kind == TraceSlice::Kind::Collective)
      args["bytes"] = slice.bytes;
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", thread},
                      {"ts", microseconds(slice.begin)},
                      {"dur", microseconds(slice.end - slice.begin)},
                      {"name", slice.name},
                      {"cat", categoryOf(slice.kind)},
                      {"args", args}});
  }

  void counter(double at, const Json &args, const char *name) {
    events.push_back({{"ph", "C"},
                      {"pid", 1},
                      {"tid", 0},
                      {"ts", microseconds(at)},
                      {"name", name},
                      {"args", args}});
  }

  /// The level of each purpose. Of changes at the same time the one with the
  /// highest sum stands first, so that no peak is lost, and then the last.
  void memory(const StepTrace &trace, std::optional<int64_t> budget) {
    std::array<int64_t, numHoldings> now{};
    auto levels = [](const std::array<int64_t, numHoldings> &of) {
      Json args = Json::object();
      for (int h = 0; h < numHoldings; ++h)
        args[toString(static_cast<Holding>(h))] = of[h];
      return args;
    };
    auto sum = [](const std::array<int64_t, numHoldings> &of) {
      int64_t total = 0;
      for (int64_t bytes : of)
        total += bytes;
      return total;
    };
    for (size_t i = 0; i < trace.changes.size();) {
      const double at = trace.changes[i].at;
      std::array<int64_t, numHoldings> highest = now;
      bool first = true;
      for (; i < trace.changes.size() && trace.changes[i].at == at; ++i) {
        now[static_cast<int>(trace.changes[i].holding)] +=
            trace.changes[i].bytes;
        if (first || sum(now) > sum(highest))
          highest = now;
        first = false;
      }
      counter(at, levels(highest), "memory");
      counter(at, {{"bytes", sum(highest)}}, "memory, all");
      if (highest != now) {
        counter(at, levels(now), "memory");
        counter(at, {{"bytes", sum(now)}}, "memory, all");
      }
    }
    if (budget)
      counter(0, {{"bytes", *budget}}, "budget");
  }

  std::vector<std::string> streams;
};

} // namespace

std::string perfettoText(const StepTrace &trace, const std::string &title,
                         std::optional<int64_t> budgetBytes) {
  Writer writer;
  writer.run(trace, title, budgetBytes);
  // One event a line.
  std::string out = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  for (const Json &event : writer.events)
    out += (&event == &writer.events.front() ? "\n" : ",\n") +
           event.dump(-1, ' ', false, Json::error_handler_t::replace);
  return out + "\n]}\n";
}

} // namespace accel
