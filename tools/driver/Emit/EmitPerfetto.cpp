//===- EmitPerfetto.cpp - A step for ui.perfetto.dev ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Emit/EmitPerfetto.h"

#include "tools/driver/Emit/MemoryLevels.h"

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

  void memory(const StepTrace &trace, std::optional<int64_t> budget) {
    for (const MemoryLevel &level : memoryLevels(trace)) {
      Json args = Json::object();
      for (int h = 0; h < numHoldings; ++h)
        args[toString(static_cast<Holding>(h))] = level.bytes[h];
      counter(level.at, args, "memory");
      counter(level.at, {{"bytes", level.sum()}}, "memory, all");
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
