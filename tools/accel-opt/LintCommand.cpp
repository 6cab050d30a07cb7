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
#include "tools/driver/Options/ScriptOptions.h"
#include "tools/driver/Report/LintFormats.h"
#include "tools/driver/Report/LintTables.h"
#include "tools/options/Arguments.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

using namespace accel;

int accel::lintCommand(int argc, char **argv) {
  LoadOptions options;
  options.accelerate.forPlanning = false;
  LintOptions checks;
  LintFormat output = LintFormat::Text;
  std::optional<int64_t> maxErrors;
  Arguments arguments("accel-opt lint", "[CONFIG.yaml...]",
                      "Prints what accelerate would reject, ignore or take "
                      "otherwise than meant.");
  arguments.option("--accelerate-version", options.accelerate.version,
                   textValue("V"),
                   "judge as this version of accelerate (default 1.15.0)");
  arguments.option("--model", checks.model, textValue("DIR"),
                   "transformers model (config.json) that the file is for");
  arguments.option("--torch-version", checks.torchVersion, textValue("V"),
                   "judge with this version of torch (default 2.15.0)");
  arguments.option("--format", output, lintFormatValue(),
                   "text for people; json for programs; sarif, github, gitlab "
                   "and junit for code hosts and CI");
  arguments.option("--max-errors", maxErrors, countValue(),
                   "stop listing after N");
  DiagnosticPolicy policy;
  policy.silenceErrors = true;
  arguments.joined(
      "-W", "error[=CODE]",
      [&](const std::string &flag) { return addWarningFlag(policy, flag); },
      "warnings (or those of CODE) are errors; -Wno-CODE silences a finding, "
      "-Wno-error=CODE excepts it from -Werror");
  enum class Fix { Diff, Write };
  std::optional<Fix> fix;
  bool fixFailed = false;
  arguments.optionalValue(
      "--fix", fix, Fix::Write,
      choiceValue<Fix>({{"diff", Fix::Diff}, {"write", Fix::Write}}),
      "print a diff of what can be repaired, and write the "
      "file (=diff: print only)");
  bool emitsEnvironment = false;
  bool effective = false;
  arguments.flag("--effective", effective,
                 "also print what each key really does, and why");
  arguments.option("--emit", emitsEnvironment,
                   choiceValue<bool>({{"env", true}}),
                   "print the environment that accelerate launch would set "
                   "(findings go to stderr)");
  ScriptOptions script;
  addScriptArguments(arguments, script);
  LaunchEnvironment launch;
  options.accelerate.launch = &launch;
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  // Without a file, the one that `accelerate launch` takes without
  // --config_file.
  std::string standard = defaultConfigPath();
  if (arguments.positional.empty() && !script.describeJob() &&
      access(standard.c_str(), F_OK) == 0)
    arguments.positional.push_back(standard);
  if (arguments.positional.empty() && !script.describeJob())
    return arguments.usageError("expected one CONFIG.yaml, got 0, and there is "
                                "no default_config.yaml either");
  std::vector<std::string> paths = arguments.positional;
  bool hasConfig = true;
  if (paths.size() < 2) {
    paths.assign(1, "");
    if (!takeConfig(arguments, script, paths[0], hasConfig, exitCode))
      return exitCode;
  } else if (script.given() || effective || emitsEnvironment) {
    return arguments.usageError("several files are linted alone: --effective, "
                                "--emit and a script's arguments take one");
  }
  const bool tables = output == LintFormat::Text || output == LintFormat::Json;
  if (!tables && (effective || emitsEnvironment))
    return arguments.usageError("--effective and --emit print as text or json");
  auto ofScript = [&](const std::string &path) {
    return script.given() || (hasConfig && scripts::isRecipeFile(path));
  };
  if (fix && std::any_of(paths.begin(), paths.end(), ofScript))
    return arguments.usageError("--fix repairs an accelerate file, which is "
                                "linted without a script's arguments");
  options.accelerate.torchVersion = checks.torchVersion;
  checks.transformersVersion = script.versions.transformers;
  checks.deepspeedVersion = script.versions.deepspeed;
  options.accelerate.deepspeedVersion = script.versions.deepspeed;
  DiagnosticEngine engine;
  engine.setMaxErrors(static_cast<size_t>(maxErrors.value_or(0)));
  engine.setPolicy(policy);
  checks.accelerateVersion = options.accelerate.version;
  std::string diff;
  yaml::FixResult fixes;
  const bool forPeople = output == LintFormat::Text;
  LoadedConfig loaded;
  for (const std::string &path : paths) {
    DiagnosticEngine reading;
    std::string before;
    if (fix) {
      yaml::FixResult made =
          fixConfig(path, options, checks, policy, before, reading);
      if (!reading.hasErrors()) {
        const bool colour = forPeople && wantsColour(STDOUT_FILENO);
        const std::string changes =
            unifiedDiff(before, made.text, path, colour);
        if (forPeople && !emitsEnvironment)
          std::fputs(changes.c_str(), stdout);
        fixFailed |= fix == Fix::Write && !changes.empty() &&
                     !writeFixed(path, before, made.text, engine);
        diff += changes;
      }
      fixes.fixed += made.fixed;
      fixes.refused += made.refused;
    }
    loaded = loadJob(path, hasConfig, checks.model, script, options, engine);
    if (!ofScript(path)) {
      lintDefaultConfig(path, engine);
      lintConfig(path, loaded, checks, engine);
      checkIgnoreComments(path, engine);
    }
  }
  if (!tables) {
    std::fputs((output == LintFormat::Sarif    ? renderSarif(engine)
                : output == LintFormat::Github ? renderGithub(engine)
                : output == LintFormat::Gitlab ? renderGitlab(engine)
                                               : renderJunit(engine, paths))
                   .c_str(),
               stdout);
    return static_cast<int>(engine.outcome());
  }
  if (output == LintFormat::Json) {
    std::string text = "{\"diagnostics\": " + renderJson(engine);
    if (fix)
      text += ",\n\"fixed\": " + std::to_string(fixes.fixed) +
              ",\n\"diff\": " + jsonString(diff);
    if (effective)
      text += ",\n\"effective\": " +
              (loaded.job ? renderEffectiveJson(loaded.job->accelerate) : "[]");
    if (emitsEnvironment)
      text += ",\n\"environment\": " + renderEnvironmentJson(launch);
    std::printf("%s}\n", text.c_str());
    return static_cast<int>(engine.outcome());
  }
  FILE *findings = emitsEnvironment ? stderr : stdout;
  if (effective && loaded.job)
    std::printf("%s\n", renderEffective(loaded.job->accelerate).c_str());
  RenderOptions render;
  render.colour = wantsColour(emitsEnvironment ? STDERR_FILENO : STDOUT_FILENO);
  std::fputs(renderText(engine, render).c_str(), findings);
  if (emitsEnvironment)
    std::fputs(renderEnvironment(launch).c_str(), stdout);
  else if (engine.all().empty())
    std::printf("%s: nothing to report\n",
                paths.size() == 1
                    ? paths[0].c_str()
                    : (std::to_string(paths.size()) + " files").c_str());
  if (fix && !fixFailed)
    std::fprintf(findings, "%zu fixed%s%s\n", fixes.fixed,
                 fix == Fix::Write || diff.empty() ? ""
                                                   : " in the diff, nothing "
                                                     "written",
                 fixes.refused ? "; others would have changed more than their "
                                 "own line"
                               : "");
  return static_cast<int>(engine.outcome());
}
