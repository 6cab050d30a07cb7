//===- TraceEvents.cpp - Traces for ui.perfetto.dev -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/TraceEvents.h"

#include "runtime/plan/EarlierOutput.h"

namespace accel::plan {

static double microseconds(double seconds) { return seconds * 1e6; }

void TraceEvents::meta(const char *what, int track, const std::string &name) {
  events.push_back({{"ph", "M"},
                    {"pid", process},
                    {"tid", track},
                    {"name", what},
                    {"args", {{"name", name}}}});
}

void TraceEvents::slice(int track, const std::string &name,
                        const std::string &category, double begin, double end,
                        Arguments arguments) {
  Arguments event = {{"ph", "X"},
                     {"pid", process},
                     {"tid", track},
                     {"ts", microseconds(begin)},
                     {"dur", microseconds(end - begin)},
                     {"name", name}};
  if (!category.empty())
    event["cat"] = category;
  event["args"] = std::move(arguments);
  events.push_back(std::move(event));
}

void TraceEvents::counter(const std::string &name, double at,
                          Arguments values) {
  events.push_back({{"ph", "C"},
                    {"pid", process},
                    {"tid", 0},
                    {"ts", microseconds(at)},
                    {"name", name},
                    {"args", std::move(values)}});
}

std::string TraceEvents::text() const {
  std::string out(traceStart);
  for (const Arguments &event : events)
    out += (&event == &events.front() ? "\n" : ",\n") +
           event.dump(-1, ' ', false, Arguments::error_handler_t::replace);
  return out + "\n]}\n";
}

} // namespace accel::plan
