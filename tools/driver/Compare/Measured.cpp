//===- Measured.cpp - A plan beside what torch recorded -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Compare/Measured.h"

#include "tools/driver/Text/Format.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace accel {
namespace {

using Json = nlohmann::ordered_json;
using profile::Profile;

/// A figure of both.
struct Row {
  const char *what, *key;
  std::optional<double> predicted;
  double measured = 0;
  bool seconds = false;
};

std::vector<Row> rowsOf(const PlanReport &report, const Profile &measured) {
  const StepPrediction &p = report.prediction;
  std::vector<Row> rows;
  auto bytes = [&](const char *what, const char *key, int64_t predicted,
                   const std::optional<int64_t> &seen) {
    if (seen)
      rows.push_back({what, key, static_cast<double>(predicted),
                      static_cast<double>(*seen)});
  };
  bytes("peak of tensors", "peak_bytes", p.peakBytes, measured.peakBytes);
  bytes("the allocator's segments", "reserved_bytes", p.reservedBytes,
        measured.reservedBytes);
  // A record that begins with the job has nothing before it.
  if (measured.beforeBytes && *measured.beforeBytes > 0)
    bytes("tensors between steps", "persistent_bytes", p.persistentBytes,
          measured.beforeBytes);
  if (measured.stepSeconds)
    rows.push_back(
        {"a step", "step_s",
         report.hasTime ? std::optional(p.stepSeconds) : std::nullopt,
         *measured.stepSeconds, true});
  return rows;
}

std::string shown(const Row &row, double value) {
  return row.seconds ? formatSeconds(value)
                     : formatBytes(static_cast<int64_t>(value));
}

} // namespace

std::optional<LikelyChange> likelyChange(const PlanReport &report,
                                         const Profile &measured) {
  if (!report.advice || !measured.reservedBytes)
    return std::nullopt;
  const auto seen = static_cast<double>(*measured.reservedBytes);
  const auto own = static_cast<double>(report.prediction.reservedBytes);
  const double difference = std::abs(own - seen);
  const auto near = [](double a, double b) {
    return std::abs(a - b) <= 0.02 * b;
  };
  // Where tensors agree, only the allocator differs.
  if (near(own, seen) || (measured.peakBytes &&
                          near(static_cast<double>(report.prediction.peakBytes),
                               static_cast<double>(*measured.peakBytes))))
    return std::nullopt;
  std::optional<LikelyChange> best;
  double left = difference / 2;
  for (const tune::Change &change : report.advice->changes) {
    const double with = own + static_cast<double>(change.bytes);
    if (std::abs(with - seen) > left)
      continue;
    left = std::abs(with - seen);
    best = {change.text, static_cast<int64_t>(with)};
  }
  return best;
}

std::string renderMeasured(const PlanReport &report, const Profile &measured) {
  std::string out = report.title + ", " + report.strategy + "\n\n" +
                    padRight("", 28) + padLeft("predicted", 14) +
                    padLeft("measured", 14) + "\n";
  for (const Row &row : rowsOf(report, measured)) {
    out += padRight(row.what, 28) +
           padLeft(row.predicted ? shown(row, *row.predicted) : "-", 14) +
           padLeft(shown(row, row.measured), 14);
    if (row.predicted && row.measured > 0) {
      const double share = *row.predicted / row.measured - 1;
      out += padLeft((share > 0 ? "+" : "") + formatPercent(share), 10);
    }
    out += "\n";
  }
  if (!measured.atPeak.empty()) {
    out += "\nmeasured at the peak, by the innermost frame that says what "
           "for\n";
    for (const profile::Held &held : measured.atPeak)
      out += "  " + padRight(held.what, 26) +
             padLeft(formatBytes(held.bytes), 14) +
             (held.tensors
                  ? padLeft(std::to_string(held.tensors) +
                                (held.tensors == 1 ? " tensor" : " tensors"),
                            16)
                  : "") +
             "\n";
    out += "\npredicted at the peak, in " + report.prediction.peakWhere + "\n";
    for (int h = 0; h < numHoldings; ++h)
      if (const int64_t bytes = report.prediction.atPeak[h])
        out += "  " + padRight(toString(static_cast<Holding>(h)), 26) +
               padLeft(formatBytes(bytes), 14) + "\n";
  }
  if (const auto likely = likelyChange(report, measured))
    out += "\nperhaps the run had another setting: " + likely->text + " is " +
           formatBytes(likely->reservedBytes) + " of segments\n";
  return out;
}

std::string renderMeasuredJson(const PlanReport *report,
                               const Profile *measured,
                               const DiagnosticEngine &engine) {
  Json figures = Json::object(), held = Json::array(), likely;
  if (report && measured) {
    for (const Row &row : rowsOf(*report, *measured))
      figures[row.key] = {
          {"predicted", row.predicted ? Json(*row.predicted) : Json()},
          {"measured", row.measured}};
    for (const profile::Held &h : measured->atPeak)
      held.push_back(
          {{"what", h.what}, {"bytes", h.bytes}, {"tensors", h.tensors}});
    if (const auto change = likelyChange(*report, *measured))
      likely = {{"change", change->text},
                {"reserved_bytes", change->reservedBytes}};
  }
  const Json json = {{"figures", figures},
                     {"at_peak", held},
                     {"likely_change", likely},
                     {"diagnostics", Json::parse(renderJson(engine))}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace accel
