//===- Render.cpp - A plan for people and for programs --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-opt/Render.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace accel {
namespace {

using Json = nlohmann::ordered_json;

std::string format(const char *pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

/// Three significant digits, at most two decimals.
std::string digits(double value) {
  return format(value >= 99.95   ? "%.0f"
                : value >= 9.995 ? "%.1f"
                                 : "%.2f",
                value);
}

std::string grouped(double value) {
  std::string text = format("%.0f", value);
  for (int i = static_cast<int>(text.size()) - 3; i > 0; i -= 3)
    text.insert(i, ",");
  return text;
}

std::string count(double n) {
  for (auto [scale, unit] :
       {std::pair<double, const char *>{1e9, " B"}, {1e6, " M"}, {1e3, " K"}})
    if (n >= scale)
      return digits(n / scale) + unit;
  return format("%.0f", n);
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width)
    text.resize(width, ' ');
  return text;
}
std::string right(std::string text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text
                             : text;
}

double totalParameters(const plan::Plan &plan) {
  double n = 0;
  for (const plan::Parameter &p : plan.parameters)
    n += static_cast<double>(p.numel());
  return n;
}

std::vector<std::pair<const char *, int64_t>> rows(const plan::Breakdown &b) {
  return {{"parameters", b.parameters}, {"gradients", b.gradients},
          {"optimizer", b.optimizer},   {"activations", b.activations},
          {"logits", b.logits},         {"gathered", b.gathered},
          {"buffers", b.buffers}};
}

std::string peakPlace(const plan::Plan &plan) {
  const plan::Predicted &p = plan.predicted;
  return (p.peakWhere.empty() ? "the root" : p.peakWhere) + " (" +
         p.peakProgram + " step " + std::to_string(p.peakStep) + ")";
}

} // namespace

std::string formatBytes(int64_t bytes) {
  double value = static_cast<double>(bytes);
  for (auto [scale, unit] :
       {std::pair<double, const char *>{1024.0 * 1024 * 1024 * 1024, " TiB"},
        {1024.0 * 1024 * 1024, " GiB"},
        {1024.0 * 1024, " MiB"},
        {1024.0, " KiB"}})
    if (value >= scale)
      return digits(value / scale) + unit;
  return format("%.0f B", value);
}

std::string formatSeconds(double seconds) {
  if (seconds >= 1)
    return digits(seconds) + " s";
  if (seconds >= 1e-3)
    return digits(seconds * 1e3) + " ms";
  return digits(seconds * 1e6) + " us";
}

std::string renderPlanText(const plan::Plan &plan, const PlanReport &report) {
  const plan::Predicted &p = plan.predicted;
  std::string out = report.title + ", " + count(totalParameters(plan)) +
                    " parameters | " + report.strategy + " by accel-run on " +
                    std::to_string(plan.ranks()) + " x " +
                    (plan.target.empty() ? plan.device : plan.target) + " | " +
                    (plan.units.empty() ? "" : toString(plan.units[0].gather));
  if (!plan.units.empty() && plan.units[0].reduce != plan.units[0].gather)
    out += std::string(", reduced in ") + toString(plan.units[0].reduce);
  out += " | " + std::to_string(plan.job.microBatch) + " x " +
         std::to_string(plan.job.sequenceLength) + " tokens per rank";
  if (plan.job.accumulation > 1)
    out += ", accumulated " + std::to_string(plan.job.accumulation) + " times";
  out += "\n\n";

  if (report.fits)
    out += *report.fits ? "  fits     " : "  DOES NOT FIT  ";
  else
    out += "  memory   ";
  out += formatBytes(p.deviceBytes);
  if (report.budgetBytes)
    out += " of " + formatBytes(*report.budgetBytes);
  out += " per rank; peak in " + peakPlace(plan) + "\n";
  if (p.hasTime) {
    out += "  speed    " + formatSeconds(p.stepSeconds) + " a step, " +
           grouped(p.tokensPerSecond / plan.ranks()) + " tokens/s per rank" +
           (report.mfu ? ", MFU " + digits(*report.mfu * 100) + " %" : "") +
           "; " + formatSeconds(p.exposedCommSeconds) +
           " wait for communication (roofline)\n";
  } else {
    out += "  speed    no target given, so no time is predicted (--target)\n";
  }

  out += "\n  at the peak of " + formatBytes(p.peakBytes) + " in tensors\n";
  for (auto [name, bytes] : rows(p.breakdown))
    out += "    " + padded(name, 14) + right(formatBytes(bytes), 12) + "\n";
  out += "    " + padded("between steps", 14) +
         right(formatBytes(p.persistentBytes), 12) + "\n";

  size_t width = 14;
  for (const plan::Unit &unit : plan.units)
    width = std::max(width, unit.name.size());
  out += "\n  " + padded("units", width + 2) +
         "    elements   a rank keeps   gathered   after the forward\n";
  std::string last;
  size_t alike = 0;
  auto flush = [&] {
    if (alike > 1)
      out += "      ... and " + std::to_string(alike - 1) + " alike\n";
    alike = 0;
  };
  for (const plan::Unit &unit : plan.units) {
    bool gatheredAtAll = !plan::readsShard(plan, unit);
    std::string row =
        right(count(static_cast<double>(unit.numel)), 12) +
        right(formatBytes(plan::shardNumel(plan, unit) *
                          plan::itemSize(unit.storage)),
              15) +
        right(gatheredAtAll ? formatBytes(plan::roleBytes(plan, unit,
                                                          plan::Role::Gathered))
                            : "-",
              11);
    for (const plan::Decision &d : plan.decisions)
      if (d.what == "reshard" && d.where == unit.name)
        row += "   " + d.choice;
    if (row != last) {
      flush();
      out += "    " + padded(unit.name.empty() ? "(root)" : unit.name, width) +
             row + "\n";
    }
    last = row;
    ++alike;
  }
  flush();
  for (auto [index, repeat] : plan.step) {
    const plan::Program &program = plan.programs[index];
    out += "\n  schedule of '" + program.name + "'" +
           (repeat > 1 ? ", " + std::to_string(repeat) + " times a step" : "") +
           "\n" + renderSchedule(plan, program);
  }
  return out;
}

std::string renderPlanJson(const plan::Plan *plan, const PlanReport &report,
                           const DiagnosticEngine &engine) {
  Json root;
  if (plan) {
    const plan::Predicted &p = plan->predicted;
    Json breakdown;
    for (auto [name, bytes] : rows(p.breakdown))
      breakdown[name] = bytes;
    root["memory"] = {{"peak_bytes", p.peakBytes},
                      {"own_peak_bytes", p.ownPeakBytes},
                      {"persistent_bytes", p.persistentBytes},
                      {"reserved_bytes", p.reservedBytes},
                      {"device_bytes", p.deviceBytes},
                      {"breakdown", breakdown},
                      {"budget_bytes",
                       report.budgetBytes ? Json(*report.budgetBytes) : Json()},
                      {"fits", report.fits ? Json(*report.fits) : Json()},
                      {"peak_program", p.peakProgram},
                      {"peak_step", p.peakStep},
                      {"peak_where", p.peakWhere}};
    if (p.hasTime)
      root["time"] = {
          {"step_s", p.stepSeconds},
          {"compute_s", p.computeSeconds},
          {"exposed_comm_s", p.exposedCommSeconds},
          {"tokens_per_s", p.tokensPerSecond},
          {"tokens_per_s_per_device", p.tokensPerSecond / plan->ranks()},
          {"mfu", report.mfu ? Json(*report.mfu) : Json()}};
    else
      root["time"] = nullptr;
    Json units = Json::array();
    for (const plan::Unit &unit : plan->units) {
      Json names = Json::array();
      for (int i : unit.parameters)
        names.push_back(plan->parameters[i].fqn);
      units.push_back(
          {{"name", unit.name},
           {"parameters", names},
           {"numel", unit.numel},
           {"padded", unit.padded},
           {"shard_axes", unit.shardAxes},
           {"replicate_axes", unit.replicateAxes},
           {"storage", toString(unit.storage)},
           {"gather", toString(unit.gather)},
           {"reduce", toString(unit.reduce)},
           {"shard_bytes",
            plan::shardNumel(*plan, unit) * plan::itemSize(unit.storage)},
           {"gathered_bytes",
            plan::readsShard(*plan, unit)
                ? int64_t(0)
                : plan::roleBytes(*plan, unit, plan::Role::Gathered)}});
    }
    root["units"] = units;
    Json decisions = Json::array();
    for (const plan::Decision &d : plan->decisions)
      decisions.push_back({{"what", d.what},
                           {"where", d.where},
                           {"choice", d.choice},
                           {"why", d.why},
                           {"file", d.file.empty() ? Json() : Json(d.file)},
                           {"line", d.line ? Json(d.line) : Json()},
                           {"column", d.column ? Json(d.column) : Json()},
                           {"alternatives", d.alternatives}});
    root["decisions"] = decisions;
  } else {
    root["memory"] = nullptr;
    root["time"] = nullptr;
    root["units"] = Json::array();
    root["decisions"] = Json::array();
  }
  root["recommendations"] = Json::array();
  root["executor"] = "accel-run";
  root["diagnostics"] = Json::parse(renderJson(engine));
  root["planning_s"] = report.planningSeconds;
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace accel
