//===- TargetsCommand.cpp - accel-opt targets -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Yaml/Yaml.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Report/TargetTables.h"
#include "tools/options/Arguments.h"

#include <cstdio>
#include <unistd.h>

using namespace accel;
using Json = nlohmann::ordered_json;

namespace {

/// The file of a target that was read before.
std::string fileText(const std::string &nameOrFile) {
  if (std::optional<std::string> text = shippedTarget(nameOrFile))
    return *text;
  std::string text, error;
  yaml::readWholeFile(nameOrFile, yaml::Limits().bytes, text, error);
  return text;
}

} // namespace

int accel::targetsCommand(int argc, char **argv) {
  enum class Format { Text, Json, Yaml };
  Format format = Format::Text;
  Arguments arguments("accel-opt targets", "[NAME|FILE]",
                      "Lists the devices that plans can be made for, or shows "
                      "one.");
  arguments.option("--format", format,
                   choiceValue<Format>({{"text", Format::Text},
                                        {"json", Format::Json},
                                        {"yaml", Format::Yaml}}),
                   "text for people, json for programs, yaml: the file "
                   "of NAME");
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  const std::vector<std::string> &names = arguments.positional;
  if (names.size() > 1 || (format == Format::Yaml && names.empty()))
    return arguments.usageError(std::string("expected one NAME") +
                                (format == Format::Yaml ? "" : " or none") +
                                ", got " + std::to_string(names.size()));
  DiagnosticEngine engine;
  std::vector<Target> targets;
  for (const std::string &name : names.empty() ? targetNames() : names)
    if (std::optional<Target> target = loadTarget(name, engine))
      targets.push_back(std::move(*target));
  if (format == Format::Json) {
    Json list = Json::array();
    for (const Target &target : targets)
      list.push_back(targetJson(target));
    std::printf("{\"targets\": %s,\n\"diagnostics\": %s}\n",
                list.dump(1).c_str(), renderJson(engine).c_str());
  } else {
    if (!targets.empty()) {
      if (format == Format::Yaml)
        std::fputs(fileText(names[0]).c_str(), stdout);
      else if (names.empty())
        std::fputs(renderTargets(targets).c_str(), stdout);
      else
        std::fputs(renderTarget(targets[0]).c_str(), stdout);
    }
    RenderOptions render;
    render.colour = wantsColour(STDERR_FILENO);
    std::fputs(renderText(engine, render).c_str(), stderr);
  }
  return static_cast<int>(engine.outcome());
}
