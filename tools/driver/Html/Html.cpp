//===- Html.cpp - A plan as a page to look at -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Html/Html.h"

#include "passes/Targets/Target.h"
#include "tools/driver/Emit/MemoryLevels.h"
#include "tools/driver/Report/ExplainMemory.h"
#include "tools/driver/Report/Render.h"
#include "tools/driver/Report/RenderLint.h"
#include "tools/driver/Report/RenderValidation.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

// The files as they are, between two symbols.
#define ACCEL_EMBED(NAME, PATH)                                                \
  asm(".pushsection .rodata\n" #NAME "Begin:\n.incbin \"" PATH "\"\n" #NAME    \
      "End:\n.popsection\n");                                                  \
  extern "C" const char NAME##Begin[], NAME##End[];

ACCEL_EMBED(accelHtmlStyle, ACCEL_HTML "/report.css")
ACCEL_EMBED(accelHtmlPage, ACCEL_HTML "/page.js")
ACCEL_EMBED(accelHtmlLint, ACCEL_HTML "/lint.js")
#ifdef ACCEL_CHART
ACCEL_EMBED(accelHtmlReport, ACCEL_HTML "/report.js")
ACCEL_EMBED(accelHtmlMesh, ACCEL_HTML "/mesh.js")
ACCEL_EMBED(accelHtmlCharts, ACCEL_HTML "/charts.js")
ACCEL_EMBED(accelHtmlDiff, ACCEL_HTML "/diff.js")
ACCEL_EMBED(accelHtmlValidate, ACCEL_HTML "/validate.js")
ACCEL_EMBED(accelHtmlExplain, ACCEL_HTML "/explain.js")
ACCEL_EMBED(accelHtmlPipeline, ACCEL_HTML "/pipeline.js")
ACCEL_EMBED(accelHtmlStages, ACCEL_HTML "/stages.js")
ACCEL_EMBED(accelHtmlLibrary, ACCEL_CHART)
ACCEL_EMBED(accelHtmlLicense, ACCEL_CHART_LICENSE)
#endif
#define ACCEL_TEXT(NAME)                                                       \
  std::string(NAME##Begin, static_cast<size_t>(NAME##End - NAME##Begin))

namespace accel {
namespace {

using Json = nlohmann::ordered_json;

#ifdef ACCEL_CHART
Json stepJson(const StepTrace &trace) {
  Json owners = Json::array();
  for (int h = 0; h < numHoldings; ++h)
    owners.push_back(toString(static_cast<Holding>(h)));
  // Streams in the order in which they first work.
  std::vector<std::string> names;
  Json slices = Json::array();
  double end = 0;
  for (const TraceSlice &slice : trace.slices) {
    auto at = std::find(names.begin(), names.end(), slice.stream);
    if (at == names.end())
      at = names.insert(at, slice.stream);
    slices.push_back({at - names.begin(), static_cast<int>(slice.kind),
                      slice.begin, slice.end, slice.name, slice.where,
                      slice.bytes});
    end = std::max(end, slice.end);
  }
  Json levels = Json::array();
  for (const MemoryLevel &level : memoryLevels(trace)) {
    Json row = {level.at};
    for (int64_t bytes : level.bytes)
      row.push_back(bytes);
    levels.push_back(row);
  }
  return {{"seconds", end},
          {"owners", owners},
          {"streams", names},
          {"slices", slices},
          {"levels", levels}};
}

std::string escaped(const std::string &text) {
  std::string out;
  for (char c : text)
    out += c == '<'   ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '&' ? "&amp;"
                      : std::string(1, c);
  return out;
}
#endif

/// JSON in which nothing ends a script.
std::string scriptText(const Json &json) {
  std::string text;
  for (char c : json.dump(-1, ' ', false, Json::error_handler_t::replace))
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  return text;
}

/// The library of charts with its license, where a page has any.
enum class Charts { None, Some };

/// The page of `data`, which `scripts` fill with the parts of page.js.
std::string page(const Json &data, const std::string &scripts,
                 [[maybe_unused]] Charts charts = Charts::Some) {
  std::string made = "Made by accel-opt", library;
#ifdef ACCEL_CHART
  if (charts == Charts::Some) {
    made = "<details><summary>Made by accel-opt with Chart.js</summary><pre>" +
           escaped(ACCEL_TEXT(accelHtmlLicense)) + "</pre></details>";
    library = "<script>\n" + ACCEL_TEXT(accelHtmlLibrary) + "\n</script>\n";
  }
#endif
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
         "<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, "
         "initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n"
         // The browser itself holds the page to needing no network.
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
         "'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
         "<title>accel-opt</title>\n<style>\n" +
         ACCEL_TEXT(accelHtmlStyle) +
         "</style>\n</head>\n<body>\n<header><h1></h1></header>\n"
         "<main></main>\n<footer>" +
         made + "</footer>\n<script type=\"application/json\" id=\"data\">" +
         scriptText(data) + "</script>\n" + library + "<script>\n" +
         ACCEL_TEXT(accelHtmlPage) + "</script>\n<script>\n" + scripts +
         "</script>\n</body>\n</html>\n";
}

/// Of a file to quote lines of; empty where it cannot be read or is no text for
/// people.
std::string textOf(const std::string &path) {
  constexpr std::streamoff most = 1 << 20;
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem) ||
      std::filesystem::file_size(path, problem) > most || problem)
    return "";
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool writePage(const OutputFile &file, const std::string &text,
               DiagnosticEngine &engine) {
  return writeOutputFile(file, FileForm::Page, text, engine);
}

} // namespace

bool writeLintReport(const OutputFile &file, const LintJob &job,
                     const LintResult &result, DiagnosticEngine &engine) {
  LintReport report;
  report.format = LintFormat::Json;
  report.effective = job.paths.size() == 1;
  Json data;
  data["title"] =
      job.paths.size() == 1
          ? job.paths[0].empty() ? "A script's arguments" : job.paths[0]
          : std::to_string(job.paths.size()) + " files";
  data["lint"] = Json::parse(renderLint(job, result, report, engine).out);
  Json sources = Json::object();
  for (const auto &diagnostic : data["lint"]["diagnostics"])
    if (const std::string file = diagnostic["file"]; !sources.contains(file))
      sources[file] = textOf(file);
  // Lines are those that were read, not the repaired ones.
  for (const Repair &repair : result.repairs)
    if (sources.contains(repair.path))
      sources[repair.path] = repair.before;
  data["sources"] = sources;
  return writePage(file, page(data, ACCEL_TEXT(accelHtmlLint), Charts::None),
                   engine);
}

#ifdef ACCEL_CHART
bool writeReport(const PlanOptions &options, const CompileResult &result,
                 DiagnosticEngine &engine) {
  const PlanReport &report = result.report;
  const plan::Plan &shown = *result.shown;
  const std::string target =
      options.target.empty() ? shown.target : options.target;
  Json data;
  data["title"] = report.title + ", " + report.strategy + " on " +
                  std::to_string(shown.ranks()) + " x " +
                  (target.empty() ? "any device" : target);
  data["plan"] = Json::parse(renderPlanJson(&shown, report, engine));
  data["step"] = nullptr;
  if (report.hasTime && report.advice && report.advice->model &&
      !target.empty()) {
    const std::optional<Target> machine = loadTarget(target, engine);
    if (!machine)
      return false;
    data["step"] = stepJson(
        traceStep(*report.advice->model, *machine, report.advice->candidate));
  }
  return writePage(
      {options.htmlReport, options.overwrite},
      page(data, ACCEL_TEXT(accelHtmlReport) + ACCEL_TEXT(accelHtmlMesh) +
                     ACCEL_TEXT(accelHtmlStages) + ACCEL_TEXT(accelHtmlCharts)),
      engine);
}

bool writeDiffReport(const OutputFile &file, const Effect &a, const Effect &b,
                     const Comparison &comparison, DiagnosticEngine &engine) {
  Json data;
  data["title"] = a.name + " beside " + b.name;
  data["diff"] = Json::parse(renderComparisonJson(&a, &b, comparison, engine));
  return writePage(file, page(data, ACCEL_TEXT(accelHtmlDiff)), engine);
}

bool writeValidationReport(const OutputFile &file, const std::string &runs,
                           const validate::ValidationResult &result,
                           DiagnosticEngine &engine) {
  Json data;
  data["title"] = runs + ": predicted beside measured";
  data["validation"] = Json::parse(renderValidationJson(result, engine));
  return writePage(file, page(data, ACCEL_TEXT(accelHtmlValidate)), engine);
}

bool writeExplainReport(const OutputFile &file, const plan::Plan &plan,
                        const RunLog *log, DiagnosticEngine &engine) {
  Json data;
  data["title"] = plan.job.modelName + " on " + std::to_string(plan.ranks()) +
                  " x " + (plan.target.empty() ? plan.device : plan.target);
  std::string problem; // none of the words is a place of the plan
  auto memory = [&](const char *what) {
    const auto explained = explainMemory(plan, what, problem);
    return explained ? explained->json : Json();
  };
  data["timeline"] = memory("timeline");
  data["peak"] = memory("peak");
  data["device_bytes"] = plan.predicted.deviceBytes;
  Json decisions = Json::array();
  for (const plan::Decision &d : plan.decisions)
    decisions.push_back({{"what", d.what},
                         {"where", d.where},
                         {"choice", d.choice},
                         {"why", d.why},
                         {"file", d.file},
                         {"line", d.line}});
  data["decisions"] = decisions;
  data["run"] = log ? runJson(plan, *log) : Json();
  return writePage(file, page(data, ACCEL_TEXT(accelHtmlExplain)), engine);
}

bool writePipelineReport(const OutputFile &file,
                         const pipeline::SimulatedStep &what,
                         DiagnosticEngine &engine) {
  Json data;
  data["pipeline"] = scheduleJson(what);
  data["title"] = data["pipeline"]["schedule"].get<std::string>() + " on " +
                  std::to_string(what.schedule.ranks.size()) + " ranks";
  return writePage(
      file,
      page(data, ACCEL_TEXT(accelHtmlStages) + ACCEL_TEXT(accelHtmlPipeline)),
      engine);
}

#else

/// Reports at `path` that there is nothing to draw with.
static bool withoutCharts(const std::string &path, DiagnosticEngine &engine) {
  engine.error("no-charts", path,
               "this accel-opt was built without the charts of --report",
               "install libjs-chart.js (tools/setup does), run cmake again and "
               "build");
  return false;
}

bool writeReport(const PlanOptions &options, const CompileResult &,
                 DiagnosticEngine &engine) {
  return withoutCharts(options.config, engine);
}

bool writeDiffReport(const OutputFile &file, const Effect &, const Effect &,
                     const Comparison &, DiagnosticEngine &engine) {
  return withoutCharts(file.path, engine);
}

bool writeValidationReport(const OutputFile &file, const std::string &,
                           const validate::ValidationResult &,
                           DiagnosticEngine &engine) {
  return withoutCharts(file.path, engine);
}

bool writeExplainReport(const OutputFile &file, const plan::Plan &,
                        const RunLog *, DiagnosticEngine &engine) {
  return withoutCharts(file.path, engine);
}

bool writePipelineReport(const OutputFile &file,
                         const pipeline::SimulatedStep &,
                         DiagnosticEngine &engine) {
  return withoutCharts(file.path, engine);
}

#endif
} // namespace accel
