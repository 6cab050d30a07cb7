//===- ValidateCommand.cpp - accel-opt validate ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/Validate.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Report/Render.h"
#include "tools/options/Arguments.h"

#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace accel;
using namespace accel::validate;
using Json = nlohmann::ordered_json;

namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

/// Targets by name: files of `folder` first, then the shipped ones; each is
/// read once.
class Targets {
public:
  Targets(std::string folder, DiagnosticEngine &engine)
      : folder(std::move(folder)), engine(engine) {}
  const Target *operator()(const std::string &name) {
    auto [at, fresh] = known.try_emplace(name);
    if (fresh) {
      const std::string path = folder + "/" + name + ".yaml";
      std::error_code error;
      const bool own = !folder.empty() && std::filesystem::exists(path, error);
      at->second = loadTarget(own ? path : name, engine);
    }
    return at->second ? &*at->second : nullptr;
  }

private:
  std::string folder;
  DiagnosticEngine &engine;
  std::map<std::string, std::optional<Target>> known;
};

/// config.json by the model's name: DIR/NAME/config.json, or DIR/NAME.json.
class Models {
public:
  explicit Models(const std::string &folder) {
    std::error_code error;
    if (folder.empty())
      return;
    for (const auto &entry :
         std::filesystem::directory_iterator(folder, error)) {
      const std::filesystem::path &path = entry.path();
      const bool isFolder = entry.is_directory(error);
      if (isFolder || path.extension() == ".json")
        files[modelKey(isFolder ? path.filename().string()
                                : path.stem().string())] =
            isFolder ? path / "config.json" : path;
    }
  }
  std::optional<std::string> operator()(const std::string &name) const {
    const auto found = files.find(modelKey(name));
    if (found == files.end())
      return std::nullopt;
    std::ifstream in(found->second, std::ios::binary);
    if (!in)
      return std::nullopt;
    return std::string((std::istreambuf_iterator<char>(in)),
                       std::istreambuf_iterator<char>());
  }

private:
  std::map<std::string, std::filesystem::path> files;
};

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
  char text[160];
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

void printFamily(const FamilyResult &f) {
  std::printf("  %-8s %5d %5d   %s   %s", f.name.c_str(), f.rows, f.modelled,
              summaryText(f.memory).c_str(), summaryText(f.speed).c_str());
  if (f.rankCorrelation != 0)
    std::printf("   %.3f", f.rankCorrelation);
  std::printf("\n");
}

void printText(const ValidationResult &result) {
  std::printf("predicted against measured, errors in %%\n\n"
              "  %-8s %5s %5s   %-29s   %-29s\n",
              "family", "rows", "mod.", "memory", "tokens/s");
  std::printf("  %-8s %5s %5s   %4s %7s %7s %8s   %4s %7s %7s %8s   %s\n", "",
              "", "", "rows", "mean", "median", "max", "rows", "mean", "median",
              "max", "rank");
  for (const FamilyResult &family : result.families)
    printFamily(family);
  if (result.families.size() > 1)
    printFamily(result.all);
  if (const ErrorSummary &s = result.all.replayed; s.count > 0)
    std::printf(
        "\n  segments of the allocator, tensor by tensor: %d rows, mean "
        "%.1f, bias %+.1f, max %.1f\n",
        s.count, s.mean * 100, s.bias * 100, s.most * 100);
  std::printf("\n  runs that were measured and are predicted not to fit: %d\n",
              result.all.doNotFit);
  std::printf("\n  %-8s %-16s %-15s %10s %10s %9s %10s %9s\n", "row", "model",
              "target", "GiB", "measured", "", "tokens/s", "");
  std::map<std::string, std::vector<std::string>> skipped;
  for (const RowResult &row : result.rows) {
    if (!row.skipped.empty()) {
      skipped[row.skipped].push_back(row.row.id);
      continue;
    }
    std::printf(
        "  %-8s %-16s %-15s %10.2f %10s %9s %10.0f %9s%s\n",
        printable(row.row.id, 8).c_str(), printable(row.row.model, 16).c_str(),
        row.run.target.c_str(), static_cast<double>(row.predictedBytes) / gib,
        row.measuredBytes ? formatted("%.2f", *row.measuredBytes / gib).c_str()
                          : "",
        percent(row.memoryError).c_str(), row.tokensPerSecondPerDevice,
        percent(row.speedError).c_str(), row.fits ? "" : "  does not fit");
  }
  if (skipped.empty())
    return;
  std::printf("\nnot modelled:\n");
  for (const auto &[reason, ids] : skipped) {
    std::printf("  %s (%zu)\n   ", reason.c_str(), ids.size());
    size_t width = 4;
    for (const std::string &id : ids) {
      if (width + id.size() > 100) {
        std::printf("\n   ");
        width = 4;
      }
      std::printf(" %s", printable(id).c_str());
      width += id.size() + 1;
    }
    std::printf("\n");
  }
}

} // namespace

int accel::validateCommand(int argc, char **argv) {
  ReportFormat format = ReportFormat::Text;
  std::string family, folder, modelFolder, file;
  Arguments arguments("accel-opt validate", "RUNS.csv",
                      "Predicts each run of a table of measured ones, and "
                      "prints the errors by family.");
  arguments.option("--format", format, formatValue(),
                   "text for people, json for programs");
  arguments.option("--family", family, textValue("NAME"),
                   "only the rows of this family (the letters of their ids)");
  arguments.option("--targets", folder, textValue("DIR"),
                   "files NAME.yaml there come before the shipped targets");
  arguments.option("--models", modelFolder, textValue("DIR"),
                   "config.json of models by name: DIR/NAME/config.json or "
                   "DIR/NAME.json come before the sizes of well-known models");
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (!arguments.one("RUNS.csv", file, exitCode))
    return exitCode;
  DiagnosticEngine engine;
  ValidationResult result;
  Targets targets(folder, engine);
  const Models models(modelFolder);
  if (std::optional<std::vector<RunRow>> rows = readRuns(file, engine)) {
    result = validateRuns(
        *rows, [&](const std::string &name) { return targets(name); }, family,
        [&](const std::string &name) { return models(name); });
    if (!family.empty() && result.rows.empty())
      engine.warning("no-rows", file,
                     "no row is of the family '" + printable(family) + "'");
  }
  if (format == ReportFormat::Json) {
    Json families = Json::array(), list = Json::array();
    for (const FamilyResult &f : result.families)
      families.push_back(familyJson(f));
    for (const RowResult &row : result.rows)
      list.push_back(rowJson(row));
    std::printf("{\"families\": %s,\n\"all\": %s,\n\"rows\": %s,\n"
                "\"diagnostics\": %s}\n",
                families.dump(1).c_str(),
                familyJson(result.all).dump(1).c_str(), list.dump(1).c_str(),
                renderJson(engine).c_str());
  } else {
    if (!result.rows.empty())
      printText(result);
    RenderOptions render;
    render.colour = wantsColour(STDERR_FILENO);
    std::fputs(renderText(engine, render).c_str(), stderr);
  }
  return engine.hasErrors() ? static_cast<int>(exitInvalid) : exitOk;
}
