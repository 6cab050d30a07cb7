//===- LintCommand.cpp - accel-opt lint -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Diagnostics/Diff.h"
#include "frontends/Job/JobConfig.h"
#include "frontends/Lint/Lint.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Emit/LintFix.h"
#include "tools/driver/Options/Arguments.h"
#include "tools/driver/Report/LintTables.h"

#include <cstdio>
#include <unistd.h>

using namespace accel;

int accel::lintCommand(int argc, char **argv) {
  LoadOptions options;
  options.accelerate.forPlanning = false;
  LintOptions checks;
  std::string output = "text";
  int64_t maxErrors = 0;
  Arguments arguments("lint", "[CONFIG.yaml]",
                      "Prints what accelerate would reject, ignore or take "
                      "otherwise than meant.");
  arguments.addText("--accelerate-version", "V", options.accelerate.version,
                    "judge as this version of accelerate (default 1.15.0)");
  arguments.addText("--model", "DIR", checks.model,
                    "transformers model (config.json) that the file is for");
  arguments.addText("--torch-version", "V", checks.torchVersion,
                    "judge with this version of torch (default 2.15.0)");
  arguments.addText("--transformers-version", "V", checks.transformersVersion,
                    "judge with this version of transformers (default 5.23.0)");
  arguments.addChoice("--format", {"text", "json"}, output,
                      "text for people, json for programs");
  arguments.addCount("--max-errors", "N", maxErrors, "stop listing after N");
  DiagnosticPolicy policy;
  policy.silenceErrors = true;
  arguments.addPrefixed(
      "-W", "error[=CODE]",
      [&](const std::string &flag) { return addWarningFlag(policy, flag); },
      "warnings (or those of CODE) are errors; -Wno-CODE silences a finding, "
      "-Wno-error=CODE excepts it from -Werror");
  std::string fix;
  arguments.addOptional("--fix", {"diff", "write"}, fix, "write",
                        "print a diff of what can be repaired, and write the "
                        "file (=diff: print only)");
  std::string emit;
  bool effective = false;
  arguments.addFlag("--effective", effective,
                    "also print what each key really does, and why");
  arguments.addChoice("--emit", {"env"}, emit,
                      "print the environment that accelerate launch would set "
                      "(findings go to stderr)");
  LaunchEnvironment launch;
  options.accelerate.launch = &launch;
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  // Without a file, the one that `accelerate launch` takes without
  // --config_file.
  std::string standard = defaultConfigPath();
  if (arguments.positional.empty() && access(standard.c_str(), F_OK) == 0)
    arguments.positional.push_back(standard);
  if (arguments.positional.size() != 1) {
    std::fprintf(stderr,
                 "accel-opt lint: error: expected one CONFIG.yaml, got "
                 "%zu%s\n",
                 arguments.positional.size(),
                 arguments.positional.empty()
                     ? ", and there is no default_config.yaml either"
                     : "");
    return exitUsage;
  }
  options.accelerate.torchVersion = checks.torchVersion;
  const std::string &path = arguments.positional[0];
  DiagnosticEngine engine;
  engine.setMaxErrors(static_cast<size_t>(maxErrors));
  engine.setPolicy(policy);
  checks.accelerateVersion = options.accelerate.version;
  std::string diff;
  yaml::FixResult fixes;
  if (!fix.empty()) {
    DiagnosticEngine reading;
    std::string before;
    fixes = fixConfig(path, options, checks, policy, before, reading);
    if (!reading.hasErrors()) {
      bool colour = output == "text" && wantsColour(STDOUT_FILENO);
      diff = unifiedDiff(before, fixes.text, path, colour);
      if (output == "text" && emit.empty())
        std::fputs(diff.c_str(), stdout);
      if (fix == "write" && !diff.empty() &&
          !writeFixed(path, before, fixes.text, engine))
        fix = "failed";
    }
  }
  LoadedConfig loaded = loadConfig(path, options, engine);
  lintDefaultConfig(path, engine);
  lintConfig(path, loaded, checks, engine);
  checkIgnoreComments(path, engine);
  if (output == "json") {
    std::string text = "{\"diagnostics\": " + renderJson(engine);
    if (!fix.empty())
      text += ",\n\"fixed\": " + std::to_string(fixes.fixed) +
              ",\n\"diff\": " + jsonString(diff);
    if (effective)
      text += ",\n\"effective\": " +
              (loaded.job ? renderEffectiveJson(loaded.job->accelerate) : "[]");
    if (!emit.empty())
      text += ",\n\"environment\": " + renderEnvironmentJson(launch);
    std::printf("%s}\n", text.c_str());
    return static_cast<int>(engine.outcome());
  }
  FILE *findings = emit.empty() ? stdout : stderr;
  if (effective && loaded.job)
    std::printf("%s\n", renderEffective(loaded.job->accelerate).c_str());
  RenderOptions render;
  render.colour = wantsColour(emit.empty() ? STDOUT_FILENO : STDERR_FILENO);
  std::fputs(renderText(engine, render).c_str(), findings);
  if (!emit.empty())
    std::fputs(renderEnvironment(launch).c_str(), stdout);
  else if (engine.all().empty())
    std::printf("%s: nothing to report\n", path.c_str());
  if (!fix.empty() && fix != "failed")
    std::fprintf(findings, "%zu fixed%s%s\n", fixes.fixed,
                 fix == "write" || diff.empty() ? ""
                                                : " in the diff, nothing "
                                                  "written",
                 fixes.refused ? "; others would have changed more than their "
                                 "own line"
                               : "");
  return static_cast<int>(engine.outcome());
}
