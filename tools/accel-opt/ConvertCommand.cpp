//===- ConvertCommand.cpp - accel-opt to-fsdp2 ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Convert/Convert.h"
#include "frontends/Yaml/Yaml.h"
#include "runtime/plan/PlanJson.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Options/Arguments.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace accel;
using namespace accel::convert;
using Json = nlohmann::ordered_json;

namespace {

std::string dump(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void printJson(const std::optional<Conversion> &conversion,
               const std::string &output, const DiagnosticEngine &engine) {
  auto orNull = [](const std::string &text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  Json changes = Json::array(), differences = Json::array();
  if (conversion) {
    for (const Change &c : conversion->changes)
      changes.push_back({{"line", c.line ? Json(c.line) : Json(nullptr)},
                         {"key", c.key},
                         {"from", orNull(c.from)},
                         {"to", orNull(c.to)},
                         {"why", c.why}});
    for (const Difference &d : conversion->differences)
      differences.push_back({{"topic", d.topic},
                             {"area", d.area},
                             {"before", d.before},
                             {"after", d.after}});
  }
  bool known = conversion && conversion->from;
  std::printf("{\"from\": %s,\n\"to\": %s,\n\"text\": %s,\n\"output\": %s,\n"
              "\"changes\": %s,\n\"differences\": %s,\n\"diagnostics\": %s}\n",
              known ? dump(toString(*conversion->from)).c_str() : "null",
              conversion ? dump(toString(conversion->to)).c_str() : "null",
              conversion ? dump(conversion->text).c_str() : "null",
              dump(orNull(output)).c_str(), dump(changes).c_str(),
              dump(differences).c_str(), renderJson(engine).c_str());
}

void printReport(const Conversion &conversion, const std::string &file,
                 std::FILE *out) {
  if (conversion.changes.empty())
    return;
  std::fprintf(out, "%s: %s to %s\n\n", file.c_str(),
               conversion.from ? title(*conversion.from) : "nothing",
               title(conversion.to));
  for (const Change &c : conversion.changes) {
    std::string place = c.line ? "line " + std::to_string(c.line) : "new";
    std::string text = c.from.empty() ? c.to
                       : c.to.empty() ? c.from + "  ->  (removed)"
                                      : c.from + "  ->  " + c.to;
    std::fprintf(out, "  %-8s %s\n           %s\n", place.c_str(), text.c_str(),
                 c.why.c_str());
  }
  if (conversion.differences.empty())
    return;
  std::fprintf(out, "\nwhat the new job does otherwise:\n");
  for (const Difference &d : conversion.differences)
    std::fprintf(out, "  %-8s %s\n    before: %s\n    now:    %s\n",
                 d.area.c_str(), d.topic.c_str(), d.before.c_str(),
                 d.after.c_str());
}

} // namespace

int accel::convertCommand(int argc, char **argv) {
  ConvertOptions options;
  std::string to = "fsdp2", output, format = "text";
  bool overwrite = false;
  Arguments arguments(
      "to-fsdp2", "CONFIG.yaml",
      "Rewrites an accelerate file for FSDP2 (or another executor) so that "
      "the\n"
      "job does what it did; comments and order stay. Prints the new file,\n"
      "unless -o or --overwrite names one.");
  arguments.addChoice("--to", {"fsdp2", "fsdp1", "deepspeed", "ddp"}, to,
                      "what the new file is for");
  arguments.addText("-o", "FILE", output,
                    "write here; an existing file needs --overwrite");
  arguments.addFlag("--overwrite", overwrite,
                    "write over CONFIG.yaml, or over the FILE of -o");
  arguments.addText("--accelerate-version", "V", options.version,
                    "judge as this version of accelerate (default 1.15.0)");
  arguments.addChoice("--format", {"text", "json"}, format,
                      "text for people, json for programs");
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (arguments.positional.size() != 1) {
    std::fprintf(stderr,
                 "accel-opt to-fsdp2: error: expected one CONFIG.yaml, got "
                 "%zu\n",
                 arguments.positional.size());
    return exitUsage;
  }
  const std::string &file = arguments.positional[0];
  options.to = *parseExecutor(to);
  if (output.empty() && overwrite)
    output = file;

  if (output == "-") // standard output, as without -o
    output.clear();
  DiagnosticEngine engine;
  std::optional<Conversion> conversion;
  std::string text, error, internal;
  std::error_code failed;
  if (!yaml::readWholeFile(file, yaml::Limits().bytes, text, error))
    yaml::parseFile(file, engine); // reports it
  else if (!output.empty() && !overwrite &&
           std::filesystem::exists(output, failed))
    engine.error("output-exists", output, "the file exists already",
                 "pass --overwrite to replace it");
  else
    conversion = convertConfig(file, text, options, engine, internal);
  if (!internal.empty()) {
    std::fprintf(stderr,
                 "accel-opt to-fsdp2: internal error: %s; nothing was written\n"
                 "reproduce with: accel-opt to-fsdp2 %s --to %s\n",
                 internal.c_str(), file.c_str(), to.c_str());
    return exitInternal;
  }
  if (conversion && !output.empty() &&
      !plan::writeFileAtomically(output, conversion->text, error)) {
    engine.error("write-failed", output, error);
    conversion.reset();
  }
  if (format == "json") {
    printJson(conversion, conversion ? output : "", engine);
    return static_cast<int>(engine.outcome());
  }
  // What was asked for on stdout, everything else beside it.
  if (conversion && output.empty()) {
    std::fputs(conversion->text.c_str(), stdout);
    std::fflush(stdout);
  }
  if (conversion)
    printReport(*conversion, file, output.empty() ? stderr : stdout);
  RenderOptions render;
  render.colour = wantsColour(STDERR_FILENO);
  std::fputs(renderText(engine, render).c_str(), stderr);
  return static_cast<int>(engine.outcome());
}
