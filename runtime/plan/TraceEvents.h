//===- TraceEvents.h - Traces for ui.perfetto.dev ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The writer of predicted and of measured steps: JSON of the Trace Event Format
// (Google, "Trace Event Format", 2016), which ui.perfetto.dev and
// chrome://tracing open, one event a line.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_TRACEEVENTS_H
#define ACCEL_RUNTIME_PLAN_TRACEEVENTS_H

#include <nlohmann/json.hpp>

#include <string>

namespace accel::plan {

/// Tracks with slices, and counters, of one process or of several. Times are in
/// seconds.
class TraceEvents {
public:
  using Arguments = nlohmann::ordered_json;

  /// What follows is of this process; the first one is 1.
  void enterProcess(int number) { process = number; }
  void nameProcess(const std::string &name) { meta("process_name", 0, name); }
  void nameTrack(int track, const std::string &name) {
    meta("thread_name", track, name);
  }
  /// `category` may be empty.
  void slice(int track, const std::string &name, const std::string &category,
             double begin, double end, Arguments arguments);
  /// Values by name, which are drawn on top of each other.
  void counter(const std::string &name, double at, Arguments values);

  std::string text() const;

private:
  void meta(const char *what, int track, const std::string &name);
  int process = 1;
  Arguments events = Arguments::array();
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_TRACEEVENTS_H
