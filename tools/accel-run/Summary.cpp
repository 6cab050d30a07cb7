//===- Summary.cpp - Measured figures at the end --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Summary.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sys/resource.h>

namespace accel::run {

int64_t maxRssBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:"))
      return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024; // "N kB"
  return 0;
}

Usage Usage::now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval &t) { return t.tv_sec + t.tv_usec * 1e-6; };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
          usage.ru_minflt + usage.ru_majflt};
}

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

namespace {
std::string format(const char *pattern, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  return text;
}

/// The part of a step in which a stage's ranks do not compute.
double idleShare(const plan::Predicted &predicted, const plan::Stage &stage) {
  return 1 - stage.busySeconds / predicted.stepSeconds;
}

std::string bytesRow(const char *name, int64_t predicted, int64_t measured) {
  const double error =
      measured ? 100.0 * (double(predicted) - double(measured)) / measured : 0;
  return format("  %-28s %14lld %14lld   %+.3f %%\n", name,
                static_cast<long long>(predicted),
                static_cast<long long>(measured), error);
}
} // namespace

std::string summaryText(const plan::Plan &plan, const Measured &m) {
  const plan::Predicted &p = plan.predicted;
  std::string text =
      format("%lld steps, loss %.4f to %.4f\n", static_cast<long long>(m.steps),
             m.firstLoss, m.lastLoss);
  if (m.skippedSteps > 0)
    text += format("%lld of them skipped: their gradients were not finite, and "
                   "they have changed no weight\n",
                   static_cast<long long>(m.skippedSteps));
  text +=
      format("  %-28s %14s %14s\n", "bytes on a rank", "predicted", "measured");
  text += bytesRow("own buffers at the peak", p.ownPeakBytes, m.ownPeakBytes);
  for (size_t stage = 0; stage < m.stageOwnPeakBytes.size(); ++stage)
    text +=
        bytesRow(("  of stage " + std::to_string(stage)).c_str(),
                 plan.stages[stage].ownPeakBytes, m.stageOwnPeakBytes[stage]);
  // A plan knows what operators of GPUs need inside by the allocator's replay.
  if (p.allocatedBytes > 0 && m.allocatedPeakBytes > 0)
    text += bytesRow("max_memory_allocated", p.allocatedBytes,
                     m.allocatedPeakBytes);
  else
    text += bytesRow("with operators' workspaces", p.peakBytes, m.peakBytes);
  if (m.reservedPeakBytes > 0)
    text += bytesRow("the allocator's segments", p.reservedBytes,
                     m.reservedPeakBytes);
  if (p.hostBytes > 0)
    text += bytesRow("pinned on the host", p.hostBytes, m.hostBytes);
  if (p.diskBytes > 0) {
    text += bytesRow("on the drive", p.diskBytes, m.diskBytes);
    text += "    by " + m.diskIo +
            (m.diskDirect ? ", past the system's cache\n"
                          : ", through the system's cache\n");
  }
  text += format("  %-28s %14s %14lld\n", "resident set", "",
                 static_cast<long long>(m.maxRssBytes));
  text += format("  %-28s %14s %14s\n", "a step", "predicted", "measured");
  if (p.hasTime)
    text += format("  %-28s %14.4f %14.4f   for target %s\n", "seconds",
                   p.stepSeconds, m.stepSeconds, plan.target.c_str());
  else
    text += format("  %-28s %14s %14.4f\n", "seconds", "", m.stepSeconds);
  for (size_t stage = 0; stage < m.stageUse.size(); ++stage) {
    const StageUse &use = m.stageUse[stage];
    const std::string name = "  stage " + std::to_string(stage);
    text += p.hasTime ? format("  %-28s %14.4f %14.4f\n",
                               (name + " computes").c_str(),
                               plan.stages[stage].busySeconds, use.computes)
                      : format("  %-28s %14s %14.4f\n",
                               (name + " computes").c_str(), "", use.computes);
    const std::string idle = name + " does not, %";
    text += p.hasTime
                ? format("  %-28s %14.1f %14.1f   of the profiled step\n",
                         idle.c_str(), 100 * idleShare(p, plan.stages[stage]),
                         100 * use.idleShare())
                : format("  %-28s %14s %14.1f   of the profiled step\n",
                         idle.c_str(), "", 100 * use.idleShare());
  }
  text += format("  %-28s %14s %14.0f\n",
                 plan.job.sequenceLength > 0 ? "tokens/s" : "samples/s", "",
                 m.tokensPerSecond);
  text += format("  %-28s %14s %14.4f\n", "CPU seconds of a rank", "",
                 m.cpuSecondsPerStep);
  text += format("  %-28s %14s %14.0f\n", "page faults of a rank", "",
                 m.pageFaultsPerStep);
  return text;
}

std::string summaryJson(const plan::Plan &plan, const Measured &m) {
  const plan::Predicted &p = plan.predicted;
  nlohmann::ordered_json json = {
      {"measured",
       {{"own_peak_bytes", m.ownPeakBytes},
        {"peak_bytes", m.peakBytes},
        {"reserved_peak_bytes",
         m.reservedPeakBytes > 0 ? nlohmann::ordered_json(m.reservedPeakBytes)
                                 : nlohmann::ordered_json(nullptr)},
        {"allocated_peak_bytes",
         m.allocatedPeakBytes > 0 ? nlohmann::ordered_json(m.allocatedPeakBytes)
                                  : nlohmann::ordered_json(nullptr)},
        {"max_rss_bytes", m.maxRssBytes},
        {"step_s", m.stepSeconds},
        {"tokens_per_s", m.tokensPerSecond},
        {"cpu_s_per_step", m.cpuSecondsPerStep},
        {"page_faults_per_step", m.pageFaultsPerStep},
        {"steps", m.steps},
        {"skipped_steps", m.skippedSteps},
        {"first_loss", m.firstLoss},
        {"last_loss", m.lastLoss}}},
      {"predicted",
       {{"own_peak_bytes", p.ownPeakBytes},
        {"peak_bytes", p.peakBytes},
        {"persistent_bytes", p.persistentBytes},
        {"reserved_bytes", nullptr},
        {"allocated_bytes", nullptr},
        {"step_s", nullptr}}}};
  if (p.reservedBytes > 0)
    json["predicted"]["reserved_bytes"] = p.reservedBytes;
  if (p.allocatedBytes > 0)
    json["predicted"]["allocated_bytes"] = p.allocatedBytes;
  if (p.hostBytes > 0) {
    json["measured"]["host_bytes"] = m.hostBytes;
    json["predicted"]["host_bytes"] = p.hostBytes;
  }
  if (p.diskBytes > 0) {
    json["measured"]["disk_bytes"] = m.diskBytes;
    json["measured"]["disk_io"] = m.diskIo;
    json["measured"]["disk_direct"] = m.diskDirect;
    json["predicted"]["disk_bytes"] = p.diskBytes;
  }
  if (p.hasTime)
    json["predicted"]["step_s"] = p.stepSeconds;
  if (!plan.stages.empty()) {
    std::vector<int64_t> peaks;
    for (const plan::Stage &stage : plan.stages)
      peaks.push_back(stage.ownPeakBytes);
    json["measured"]["stage_own_peak_bytes"] = m.stageOwnPeakBytes;
    json["predicted"]["stage_own_peak_bytes"] = peaks;
  }
  for (size_t stage = 0; stage < m.stageUse.size(); ++stage) {
    const StageUse &use = m.stageUse[stage];
    json["measured"]["stages"].push_back(
        {{"step_s", use.step},
         {"computes_s", use.computes},
         {"waits_for_stages_s", use.waitsForStages},
         {"waits_otherwise_s", use.waits},
         {"idle_share", use.idleShare()}});
    if (p.hasTime)
      json["predicted"]["stages"].push_back(
          {{"step_s", p.stepSeconds},
           {"computes_s", plan.stages[stage].busySeconds},
           {"idle_share", idleShare(p, plan.stages[stage])}});
  }
  return json.dump(2) + "\n";
}

} // namespace accel::run
