//===- EmitPerfetto.cpp - A step for ui.perfetto.dev ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Emit/EmitPerfetto.h"

#include "runtime/plan/TraceEvents.h"
#include "tools/driver/Emit/MemoryLevels.h"

#include <algorithm>

namespace accel {
namespace {

const char *categoryOf(TraceSlice::Kind kind) {
  switch (kind) {
  case TraceSlice::Kind::Before:
    return "before";
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
    events.nameProcess(title);
    for (const TraceSlice &slice : trace.slices)
      add(slice);
    memory(trace, budget);
  }
  plan::TraceEvents events;

private:
  using Arguments = plan::TraceEvents::Arguments;

  /// Streams in the order in which they first work.
  int trackOf(const std::string &stream) {
    const auto at = std::find(streams.begin(), streams.end(), stream);
    if (at != streams.end())
      return static_cast<int>(at - streams.begin()) + 1;
    streams.push_back(stream);
    const int track = static_cast<int>(streams.size());
    events.nameTrack(track, stream);
    return track;
  }

  void add(const TraceSlice &slice) {
    Arguments args = {{"where", slice.where}};
    if (slice.kind == TraceSlice::Kind::Collective)
      args["bytes"] = slice.bytes;
    events.slice(trackOf(slice.stream), slice.name, categoryOf(slice.kind),
                 slice.begin, slice.end, std::move(args));
  }

  void memory(const StepTrace &trace, std::optional<int64_t> budget) {
    for (const MemoryLevel &level : memoryLevels(trace)) {
      Arguments values = Arguments::object();
      for (int h = 0; h < numHoldings; ++h)
        values[toString(static_cast<Holding>(h))] = level.bytes[h];
      events.counter("memory", level.at, std::move(values));
      events.counter("memory, all", level.at, {{"bytes", level.sum()}});
    }
    if (budget)
      events.counter("budget", 0, {{"bytes", *budget}});
  }

  std::vector<std::string> streams;
};

} // namespace

std::string perfettoText(const StepTrace &trace, const std::string &title,
                         std::optional<int64_t> budgetBytes) {
  Writer writer;
  writer.run(trace, title, budgetBytes);
  return writer.events.text();
}

} // namespace accel
