//===- RenderPhases.cpp - Phases of a job, for people and programs --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/RenderPhases.h"
#include "tools/driver/Text/Format.h"

namespace accel {
namespace {

constexpr double near = 0.95;

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
  return phase.serialBytes > 0 ? phaseSeconds(phase, report.rates) : 0;
}
bool mayTimeOut(const JobPhase &phase, const PhaseReport &report) {
  return serialSeconds(phase, report) > collectiveTimeoutSeconds;
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
            formatSeconds(collectiveTimeoutSeconds) +
            " (InitProcessGroupKwargs(timeout=...))\n";
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

nlohmann::ordered_json phasesJson(const PhaseReport &report) {
  auto phases = nlohmann::ordered_json::array();
  auto fits = [](int64_t bytes, const std::optional<int64_t> &limit) {
    return limit ? nlohmann::ordered_json(bytes <= *limit)
                 : nlohmann::ordered_json();
  };
  for (const JobPhase &phase : report.phases)
    phases.push_back(
        {{"phase", toString(phase.kind)},
         {"device_bytes", phase.deviceBytes},
         {"host_bytes", phase.hostBytes},
         {"node_host_bytes", phase.nodeHostBytes},
         {"serial_bytes", phase.serialBytes},
         {"storage_bytes", phase.storageBytes},
         {"copied_bytes", phase.copiedBytes},
         {"seconds", phaseSeconds(phase, report.rates)},
         {"device_fits", fits(phase.deviceBytes, report.deviceBytes)},
         {"node_fits", fits(phase.nodeHostBytes, report.nodeBytes)},
         {"why", phase.why}});
  return phases;
}

} // namespace accel
