//===- Render.cpp - A plan for people and for programs --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/Render.h"
#include "runtime/plan/Mesh.h"
#include "tools/driver/PipelineSchedule/RenderSchedule.h"
#include "tools/driver/Report/RenderPhases.h"
#include "tools/driver/Report/RenderStages.h"
#include "tools/driver/Report/UnitBytes.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace accel {
namespace {

double totalParameters(const plan::Plan &plan) {
  double n = 0;
  for (const plan::Parameter &p : plan.parameters)
    n += static_cast<double>(p.numel());
  return n;
}

/// Bytes at the peak, by what they are held for.
std::vector<std::pair<std::string, std::string>>
memoryRows(const StepPrediction &p) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (int h = 0; h < numHoldings; ++h)
    if (p.atPeak[h])
      rows.push_back(
          {toString(static_cast<Holding>(h)), formatBytes(p.atPeak[h])});
  if (p.reservedBytes != p.peakBytes)
    rows.push_back({p.replayed && p.replayedBytes == p.reservedBytes
                        ? "idle segments"
                        : "allocator",
                    formatBytes(p.reservedBytes - p.peakBytes)});
  if (p.deviceBytes != p.reservedBytes)
    rows.push_back({"context", formatBytes(p.deviceBytes - p.reservedBytes)});
  return rows;
}

/// Seconds of a step.
std::vector<std::pair<std::string, std::string>>
timeRows(const StepPrediction &p) {
  std::vector<std::pair<std::string, std::string>> rows;
  rows.push_back({"forward and backward",
                  formatSeconds(p.computeSeconds - p.recomputeSeconds -
                                p.optimizerSeconds)});
  if (p.recomputeSeconds > 0)
    rows.push_back({"recomputation", formatSeconds(p.recomputeSeconds)});
  if (p.optimizerSeconds > 0)
    rows.push_back({"optimizer", formatSeconds(p.optimizerSeconds)});
  double told = 0;
  size_t shown = std::min<size_t>(p.exposed.size(), 4);
  for (size_t i = 0; i < shown; ++i) {
    rows.push_back({"exposed: " + p.exposed[i].cause,
                    formatSeconds(p.exposed[i].seconds)});
    told += p.exposed[i].seconds;
  }
  if (p.exposedSeconds - told > p.stepSeconds * 1e-6)
    rows.push_back({shown ? "exposed: others" : "exposed",
                    formatSeconds(p.exposedSeconds - told)});
  return rows;
}

std::string
tableOf(const std::string &title,
        const std::vector<std::pair<std::string, std::string>> &rows) {
  size_t width = 20; // names of units can be long
  for (const auto &[name, value] : rows)
    width = std::max(width, name.size());
  std::string out = "\n  " + title + "\n";
  for (const auto &[name, value] : rows)
    out += "    " + padRight(name, width) + padLeft(value, 12) + "\n";
  return out;
}

/// Ranks of a pipeline compute and wait for different times.
std::string whoseTime(const PlanReport &report) {
  if (!report.pipeline)
    return "";
  return report.executor == FrameworkKind::AccelRun
             ? ", of the stage that computes longest"
             : ", of the rank that holds most";
}

/// Where the memory is: parts that sum to what is compared with the budget;
/// then where the time of a step goes.
std::string tables(const PlanReport &report) {
  const StepPrediction &p = report.prediction;
  auto memory = memoryRows(p);
  memory.push_back({"together", formatBytes(p.deviceBytes)});
  std::string out =
      tableOf("memory at the peak (" + formatBytes(p.persistentBytes) +
                  " between steps)",
              memory);
  if (p.pagedBytes)
    out += "    " + padRight("paged states", 20) +
           padLeft(formatBytes(p.pagedBytes), 12) +
           "  beside it while there is room, else on the host\n";
  if (p.hostBytes)
    out += "    " + padRight("on the host", 20) +
           padLeft(formatBytes(p.hostBytes), 12) + "\n";
  if (p.diskBytes)
    out += "    " + padRight("on the drive", 20) +
           padLeft(formatBytes(p.diskBytes), 12) + "\n";
  if (report.hasTime)
    out += tableOf("time of a step, " + formatSeconds(p.stepSeconds) +
                       whoseTime(report),
                   timeRows(p));
  return out;
}

std::string strategyOf(const PlanReport &report) {
  return report.strategy +
         (report.executor == FrameworkKind::AccelRun ? " by accel-run" : "");
}

} // namespace

/// A row for each unit; rows that repeat, alone or in pairs (an adapted
/// layer's trained and frozen units), stand once.
static std::string unitsTable(const plan::Plan &plan,
                              const PlanReport &report) {
  size_t width = 14;
  for (const plan::Unit &unit : plan.units)
    width = std::max(width, unit.name.size());
  std::string out = "\n  " + padRight("units", width + 2) +
                    "    elements   a rank keeps   gathered   after the "
                    "forward\n";
  std::vector<std::string> rows;
  const std::vector<UnitBytes> bytes = unitBytes(plan, report);
  for (size_t u = 0; u < plan.units.size(); ++u) {
    const plan::Unit &unit = plan.units[u];
    rows.push_back(
        padLeft(formatCount(static_cast<double>(unit.numel)), 12) +
        padLeft(formatBytes(bytes[u].kept), 15) +
        padLeft(bytes[u].gathered ? formatBytes(bytes[u].gathered) : "-", 11));
    for (const plan::Decision &d : plan.decisions)
      if (d.what == "reshard" && d.where == unit.name)
        rows.back() += "   " + d.choice;
  }
  // How often the `period` rows from `at` stand one after another.
  auto times = [&](size_t at, size_t period) {
    size_t n = 1;
    while (at + (n + 1) * period <= rows.size() &&
           std::equal(rows.begin() + at, rows.begin() + at + period,
                      rows.begin() + at + n * period))
      ++n;
    return n;
  };
  for (size_t at = 0; at < rows.size();) {
    const size_t alone = times(at, 1), paired = times(at, 2);
    const size_t period = alone == 1 && paired > 1 ? 2 : 1;
    const size_t repeats = period == 2 ? paired : alone;
    for (size_t i = at; i < at + period; ++i) {
      const std::string &name = plan.units[i].name;
      out += "    " + padRight(name.empty() ? "(root)" : name, width) +
             rows[i] + "\n";
    }
    if (repeats > 1)
      out += "      ... and " + std::to_string(repeats - 1) +
             (period == 2 ? " pairs" : "") + " alike\n";
    at += repeats * period;
  }
  return out;
}

std::string describeBatch(const plan::Plan &plan) {
  const plan::Job &job = plan.job;
  std::string out = std::to_string(job.microBatch);
  out += job.sequenceLength > 0
             ? " x " + std::to_string(job.sequenceLength) + " tokens"
             : " samples";
  const int64_t sharing = plan::Mesh{plan.axes}.ranksPerSample();
  out += sharing > 1 ? " per group of " + std::to_string(sharing) + " ranks"
                     : " per rank";
  if (job.accumulation > 1)
    out += ", accumulated " + std::to_string(job.accumulation) + " times";
  return out;
}

std::string renderJobLine(const plan::Plan &plan, const PlanReport &report) {
  std::string out = report.title + ", " + formatCount(totalParameters(plan)) +
                    " parameters | " + strategyOf(report) + " on " +
                    std::to_string(plan.ranks()) + " x " +
                    (plan.target.empty() ? plan.device : plan.target) + " | " +
                    toString(report.compute);
  if (report.advice && report.advice->model &&
      !report.advice->model->fp8.empty())
    out += " with linear layers in fp8";
  if (report.reduce != report.compute)
    out += std::string(", reduced in ") + toString(report.reduce);
  return out + " | " + describeBatch(plan) + "\n";
}

std::string renderPlanText(const plan::Plan &plan, const PlanReport &report,
                           const PlanTextOptions &options) {
  std::string out = renderJobLine(plan, report) + "\n";
  out += renderVerdict(plan, report, options.colour);
  if (report.pipeline)
    out += renderStages(*report.pipeline);
  out += tables(report);
  out += renderPhases(report.phases);
  out += renderAdvice(report);

  if (options.units)
    out += unitsTable(plan, report);
  if (!options.schedule)
    return out;
  if (report.pipeline) {
    DrawOptions draw;
    draw.colour = options.colour;
    draw.wider = "--report FILE.html draws them";
    out += "\n" + renderSchedule(*report.pipeline, draw);
  }
  if (report.executor != FrameworkKind::AccelRun)
    return out + "\n  schedule: " + toString(report.executor) +
           " issues its instructions while it runs; --executor accel-run plans "
           "a program\n";
  for (int stage = 0; stage < plan.numStages(); ++stage)
    for (auto [index, repeat] : plan.stepsOf(stage)) {
      const plan::Program &program = plan.programs[index];
      out +=
          "\n  schedule of '" + program.name + "'" +
          (repeat > 1 ? ", " + std::to_string(repeat) + " times a step" : "") +
          "\n" + renderSchedule(plan, program);
    }
  return out;
}

} // namespace accel
