//===- RenderPhases.cpp - Phases of a job, for people and programs --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/RenderPhases.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>

namespace accel {
namespace {

using Json = nlohmann::ordered_json;

constexpr double near = 0.95;

Json orNull(const std::optional<int64_t> &bytes) {
  return bytes ? Json(*bytes) : Json();
}

const Json *at(const Json &object, const char *key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? nullptr : &*found;
}
/// False where the key is not there or is no such value.
bool read(const Json &object, const char *key, int64_t &value) {
  const Json *found = at(object, key);
  const bool known = found && found->is_number_integer();
  value = known ? found->get<int64_t>() : value;
  return known;
}
bool read(const Json &object, const char *key, double &value) {
  const Json *found = at(object, key);
  const bool known = found && found->is_number();
  value = known ? found->get<double>() : value;
  return known;
}
bool read(const Json &object, const char *key, std::string &value) {
  const Json *found = at(object, key);
  const bool known = found && found->is_string();
  value = known ? found->get<std::string>() : value;
  return known;
}

std::optional<PhaseKind> phaseNamed(const std::string &name) {
  for (PhaseKind kind : {PhaseKind::Start, PhaseKind::Load,
                         PhaseKind::FirstStep, PhaseKind::Step, PhaseKind::Eval,
                         PhaseKind::Save, PhaseKind::Resume, PhaseKind::Merge})
    if (name == toString(kind))
      return kind;
  return std::nullopt;
}

enum class Bound { None, Fits, Near, Over };

Bound boundOf(int64_t bytes, const std::optional<int64_t> &limit) {
  if (!limit)
    return Bound::None;
  if (bytes > *limit)
    return Bound::Over;
  return static_cast<double>(bytes) > near * static_cast<double>(*limit)
             ? Bound::Near
             : Bound::Fits;
}

/// Seconds for which the other ranks wait for one that writes.
double serialSeconds(const JobPhase &phase, const PhaseReport &report) {
  JobPhase written = phase;
  written.storageBytes = std::min(phase.storageBytes, phase.serialBytes);
  written.copiedBytes = std::min(phase.copiedBytes, phase.serialBytes);
  return phase.serialBytes > 0 ? phaseSeconds(written, report.rates) : 0;
}
bool mayTimeOut(const JobPhase &phase, const PhaseReport &report) {
  return serialSeconds(phase, report) > report.rates.collectiveTimeoutSeconds;
}

/// A step is judged by the verdict of the whole plan.
bool isStep(const JobPhase &phase) {
  return phase.kind == PhaseKind::Step || phase.kind == PhaseKind::FirstStep;
}

std::string verdict(Bound bound) {
  return bound == Bound::Over   ? "  does not fit"
         : bound == Bound::Near ? "  within 5 %"
                                : "";
}

std::string lineOf(const JobPhase &phase, const PhaseReport &report) {
  if (phase.stops())
    return std::string("    ") + toString(phase.kind) + "\n                " +
           phase.why + "\n";
  std::string line =
      "    " + padRight(toString(phase.kind), 12) +
      padLeft(formatBytes(phase.deviceBytes), 10) + " device" +
      verdict(boundOf(phase.deviceBytes, report.deviceBytes)) + "," +
      padLeft(formatBytes(phase.hostBytes), 10) + " host of a rank," +
      padLeft(formatBytes(phase.nodeHostBytes), 10) + " of a node" +
      verdict(boundOf(phase.nodeHostBytes, report.nodeBytes)) + "\n";
  line += "                " + phase.why + "\n";
  const double seconds = phaseSeconds(phase, report.rates);
  if (seconds > 0)
    line += "                " + formatSeconds(seconds) + " at " +
            formatGrouped(report.rates.storageBytesPerSecond / 1e9) +
            " GB/s of storage, which is an assumption\n";
  if (mayTimeOut(phase, report))
    line += "                the other ranks wait for " +
            formatSeconds(serialSeconds(phase, report)) +
            "; their collectives time out after " +
            formatSeconds(report.rates.collectiveTimeoutSeconds) + " (" +
            report.timeoutArgument + ")\n";
  return line;
}

bool isShown(const JobPhase &phase, const PhaseReport &report) {
  if (report.all)
    return true;
  const bool device =
      !isStep(phase) &&
      boundOf(phase.deviceBytes, report.deviceBytes) > Bound::Fits;
  return device || mayTimeOut(phase, report) ||
         boundOf(phase.nodeHostBytes, report.nodeBytes) > Bound::Fits;
}

} // namespace

std::string renderPhases(const PhaseReport &report) {
  std::string lines;
  for (const JobPhase &phase : report.phases)
    if (isShown(phase, report))
      lines += lineOf(phase, report);
  if (lines.empty())
    return "";
  return std::string(report.all
                         ? "\n  phases of the job\n"
                         : "\n  phases outside the step that need care\n") +
         lines;
}

Json phasesJson(const PhaseReport &report) {
  auto phases = Json::array();
  auto fits = [](int64_t bytes, const std::optional<int64_t> &limit) {
    return limit ? Json(bytes <= *limit) : Json();
  };
  double starts = 0;
  for (const JobPhase &phase : report.phases) {
    // Of one that stops there is nothing to count or to judge.
    auto figure = [&](Json value) { return phase.stops() ? Json() : value; };
    const double seconds = phaseSeconds(phase, report.rates);
    phases.push_back(
        {{"phase", toString(phase.kind)},
         {"device_bytes", figure(phase.deviceBytes)},
         {"host_bytes", figure(phase.hostBytes)},
         {"node_host_bytes", figure(phase.nodeHostBytes)},
         {"serial_bytes", figure(phase.serialBytes)},
         {"storage_bytes", figure(phase.storageBytes)},
         {"copied_bytes", figure(phase.copiedBytes)},
         {"starts_s", starts},
         {"seconds", figure(seconds)},
         {"device_fits", figure(fits(phase.deviceBytes, report.deviceBytes))},
         {"node_fits", figure(fits(phase.nodeHostBytes, report.nodeBytes))},
         {"why", phase.why}});
    starts += seconds;
  }
  return phases;
}

Json phaseBoundsJson(const PhaseReport &report) {
  const PhaseRates &rates = report.rates;
  return {{"device_bytes", orNull(report.deviceBytes)},
          {"node_host_bytes", orNull(report.nodeBytes)},
          {"storage_bytes_per_s", rates.storageBytesPerSecond},
          {"host_bytes_per_s", rates.hostBytesPerSecond},
          {"collective_timeout_s", rates.collectiveTimeoutSeconds},
          {"timeout_argument", report.timeoutArgument}};
}

std::optional<PhaseReport> readPhases(const Json &root) {
  const Json *bounds = at(root, "phase_bounds"), *phases = at(root, "phases");
  if (!bounds || !phases || !phases->is_array())
    return std::nullopt;
  PhaseReport report;
  report.all = true;
  PhaseRates &rates = report.rates;
  const bool known =
      read(*bounds, "timeout_argument", report.timeoutArgument) &&
      read(*bounds, "storage_bytes_per_s", rates.storageBytesPerSecond) &&
      read(*bounds, "host_bytes_per_s", rates.hostBytesPerSecond) &&
      read(*bounds, "collective_timeout_s", rates.collectiveTimeoutSeconds);
  if (!known || rates.storageBytesPerSecond <= 0)
    return std::nullopt;
  int64_t bytes = 0;
  if (read(*bounds, "device_bytes", bytes))
    report.deviceBytes = bytes;
  if (read(*bounds, "node_host_bytes", bytes))
    report.nodeBytes = bytes;
  for (const Json &from : *phases) {
    JobPhase phase;
    std::string name;
    const Json *device = at(from, "device_bytes");
    const bool stops = device && device->is_null();
    const bool whole =
        read(from, "phase", name) && read(from, "why", phase.why) &&
        (stops || (read(from, "device_bytes", phase.deviceBytes) &&
                   read(from, "host_bytes", phase.hostBytes) &&
                   read(from, "node_host_bytes", phase.nodeHostBytes) &&
                   read(from, "serial_bytes", phase.serialBytes) &&
                   read(from, "storage_bytes", phase.storageBytes) &&
                   read(from, "copied_bytes", phase.copiedBytes)));
    const std::optional<PhaseKind> kind = phaseNamed(name);
    if (!whole || !kind)
      return std::nullopt;
    phase.kind = *kind;
    report.phases.push_back(std::move(phase));
  }
  return report;
}

} // namespace accel
