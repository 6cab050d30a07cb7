//===- RenderValidation.cpp - Predicted beside measured -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/RenderValidation.h"

#include "frontends/Diagnostics/Diagnostics.h"

#include <cstdarg>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

namespace accel {

using namespace validate;
using Json = nlohmann::ordered_json;

namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

Json summaryJson(const ErrorSummary &summary) {
  if (summary.count == 0)
    return nullptr;
  return {{"rows", summary.count},
          {"mean", summary.mean},
          {"median", summary.median},
          {"max", summary.most},
          {"bias", summary.bias}};
}

Json familyJson(const FamilyResult &family) {
  return {{"name", family.name},
          {"frameworks", family.frameworks},
          {"rows", family.rows},
          {"modelled", family.modelled},
          {"memory_error", summaryJson(family.memory)},
          {"replayed_error", summaryJson(family.replayed)},
          {"tokens_per_s_error", summaryJson(family.speed)},
          {"rank_correlation", family.rankCorrelation == 0
                                   ? Json(nullptr)
                                   : Json(family.rankCorrelation)},
          {"measured_but_do_not_fit", family.doNotFit}};
}

Json optional(const std::optional<double> &value) {
  return value ? Json(*value) : Json(nullptr);
}

Json rowJson(const RowResult &row) {
  Json json = {{"id", row.row.id}, {"family", row.run.family}};
  const bool predicted = row.skipped.empty();
  auto number = [&](auto value) {
    return predicted ? Json(value) : Json(nullptr);
  };
  json["target"] =
      row.run.target.empty() ? Json(nullptr) : Json(row.run.target);
  json["executor"] = toString(row.run.executor);
  json["kind"] = toString(row.kind);
  json["tokens"] = row.run.microBatch * row.run.sequenceLength;
  json["peak_bytes"] = number(row.prediction.peakBytes);
  json["reserved_bytes"] = number(row.prediction.reservedBytes);
  json["device_bytes"] = number(row.prediction.deviceBytes);
  json["tokens_per_s_per_device"] = number(row.tokensPerSecondPerDevice);
  json["step_s"] = number(row.stepSeconds);
  json["exposed_s"] = number(row.prediction.exposedSeconds);
  json["peak_where"] = number(row.prediction.peakWhere);
  json["fits"] = number(row.fits);
  json["measured"] = {
      {"memory", toString(row.run.memory)},
      {"memory_bytes", optional(row.measuredBytes)},
      {"tokens_per_s_per_device", optional(row.measuredTokensPerSecond)}};
  json["memory_error"] = optional(row.memoryError);
  json["replayed_bytes"] = row.prediction.replayed
                               ? Json(row.prediction.replayedBytes)
                               : Json(nullptr);
  json["replayed_error"] = optional(row.replayedError);
  json["tokens_per_s_error"] = optional(row.speedError);
  json["assumptions"] = row.run.assumptions;
  json["skipped"] = predicted ? Json(nullptr) : Json(row.skipped);
  return json;
}

std::string formatted(const char *format, ...) {
  char text[240];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string percent(const std::optional<double> &error) {
  return error ? formatted("%+.1f %%", *error * 100) : "";
}

std::string summaryText(const ErrorSummary &s) {
  return s.count == 0 ? formatted("%4s %25s", "-", "")
                      : formatted("%4d %7.1f %7.1f %8.1f", s.count,
                                  s.mean * 100, s.median * 100, s.most * 100);
}

std::string familyText(const FamilyResult &f) {
  std::string out =
      formatted("  %-8s %5d %5d   %s   %s", f.name.c_str(), f.rows, f.modelled,
                summaryText(f.memory).c_str(), summaryText(f.speed).c_str());
  if (f.rankCorrelation != 0)
    out += formatted("   %.3f", f.rankCorrelation);
  return out + "\n";
}

/// Identifiers, in lines of a hundred characters.
std::string idsText(const std::vector<std::string> &ids) {
  std::string out = "   ";
  size_t width = 4;
  for (const std::string &id : ids) {
    if (width + id.size() > 100) {
      out += "\n   ";
      width = 4;
    }
    out += " " + printable(id);
    width += id.size() + 1;
  }
  return out + "\n";
}

} // namespace

std::string renderValidation(const ValidationResult &result) {
  std::string out = formatted("predicted against measured, errors in %%\n\n"
                              "  %-8s %5s %5s   %-29s   %-29s\n",
                              "family", "rows", "mod.", "memory", "tokens/s");
  out += formatted("  %-8s %5s %5s   %4s %7s %7s %8s   %4s %7s %7s %8s   %s\n",
                   "", "", "", "rows", "mean", "median", "max", "rows", "mean",
                   "median", "max", "rank");
  for (const FamilyResult &family : result.families)
    out += familyText(family);
  if (result.families.size() > 1)
    out += familyText(result.all);
  if (const ErrorSummary &s = result.all.replayed; s.count > 0)
    out += formatted(
        "\n  segments of the allocator, tensor by tensor: %d rows, mean "
        "%.1f, bias %+.1f, max %.1f\n",
        s.count, s.mean * 100, s.bias * 100, s.most * 100);
  out += formatted(
      "\n  runs that were measured and are predicted not to fit: %d\n",
      result.all.doNotFit);
  out += formatted("\n  %-8s %-16s %-15s %10s %10s %9s %10s %9s\n", "row",
                   "model", "target", "GiB", "measured", "", "tokens/s", "");
  std::map<std::string, std::vector<std::string>> skipped;
  for (const RowResult &row : result.rows) {
    if (!row.skipped.empty()) {
      skipped[row.skipped].push_back(row.row.id);
      continue;
    }
    out += formatted(
        "  %-8s %-16s %-15s %10.2f %10s %9s %10.0f %9s%s\n",
        printable(row.row.id, 8).c_str(), printable(row.row.model, 16).c_str(),
        row.run.target.c_str(), static_cast<double>(row.predictedBytes) / gib,
        row.measuredBytes ? formatted("%.2f", *row.measuredBytes / gib).c_str()
                          : "",
        percent(row.memoryError).c_str(), row.tokensPerSecondPerDevice,
        percent(row.speedError).c_str(), row.fits ? "" : "  does not fit");
  }
  if (skipped.empty())
    return out;
  out += "\nnot modelled:\n";
  for (const auto &[reason, ids] : skipped)
    out += "  " + reason + " (" + std::to_string(ids.size()) + ")\n" +
           idsText(ids);
  return out;
}

std::string renderValidationJson(const ValidationResult &result,
                                 const DiagnosticEngine &engine) {
  Json families = Json::array(), list = Json::array();
  for (const FamilyResult &family : result.families)
    families.push_back(familyJson(family));
  for (const RowResult &row : result.rows)
    list.push_back(rowJson(row));
  return "{\"families\": " + families.dump(1) +
         ",\n\"all\": " + familyJson(result.all).dump(1) +
         ",\n\"rows\": " + list.dump(1) +
         ",\n\"diagnostics\": " + renderJson(engine) + "}\n";
}

} // namespace accel
