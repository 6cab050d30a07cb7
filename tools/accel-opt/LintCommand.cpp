//===- LintCommand.cpp - accel-opt lint -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Emit/LintFiles.h"
#include "tools/driver/Html/Html.h"
#include "tools/driver/Options/QuantizationOption.h"
#include "tools/driver/Report/RenderLint.h"
#include "tools/options/Arguments.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

using namespace accel;

/// `emitsEnvironment`: --emit env.
static void addOptions(Arguments &arguments, LintJob &job, LintReport &report,
                       std::optional<std::string> &torch,
                       std::optional<int64_t> &maxErrors,
                       bool &emitsEnvironment, OutputFile &page) {
  arguments.option("--accelerate-version", job.options.accelerate.version,
                   textValue("V"),
                   "judge as this version of accelerate (default 1.15.0)");
  arguments.option("--model", job.checks.model, textValue("DIR|NAME"),
                   "transformers model (config.json) that the file is for");
  arguments.option("--quantize", job.checks.quantization, quantizationValue(),
                   "how the script quantises the base, as of plan");
  arguments.option("--torch-version", torch, textValue("V"),
                   "judge with this version of torch (default: a job's "
                   "torch_version, else 2.15.0)");
  arguments.option("--format", report.format, lintFormatValue(),
                   "text for people; json for programs; sarif, github, gitlab "
                   "and junit for code hosts and CI");
  arguments.option("--max-errors", maxErrors, countValue(),
                   "stop listing after N");
  arguments.joined(
      "-W", "error[=CODE]",
      [&](const std::string &flag) { return addWarningFlag(job.policy, flag); },
      "warnings (or those of CODE) are errors; -Wno-CODE silences a finding, "
      "-Wno-error=CODE excepts it from -Werror");
  arguments.optionalValue(
      "--fix", job.fix, LintJob::Fix::Write,
      choiceValue<LintJob::Fix>(
          {{"diff", LintJob::Fix::Diff}, {"write", LintJob::Fix::Write}}),
      "print a diff of what can be repaired, and write the "
      "file (=diff: print only)");
  arguments.flag("--effective", report.effective,
                 "also print what each key really does, and why");
  arguments.option("--emit", emitsEnvironment,
                   choiceValue<bool>({{"env", true}}),
                   "print the environment that accelerate launch would set "
                   "(findings go to stderr)");
  arguments.option("--report", page.path, textValue("FILE.html"),
                   "write the findings beside their lines, and what each key "
                   "does, as a page that needs no network");
  addOverwrite(arguments, page.overwrite);
  addScriptArguments(arguments, job.script);
}

/// Takes the files to lint; what is wrong with them together is a usage error.
static bool takeFiles(Arguments &arguments, LintJob &job,
                      const LintReport &report, int &exitCode) {
  auto usageError = [&](const char *message) {
    exitCode = arguments.usageError(message);
    return false;
  };
  // Without a file, the one that `accelerate launch` takes without
  // --config_file.
  const std::string standard = defaultConfigPath();
  if (arguments.positional.empty() && !job.script.describeJob() &&
      access(standard.c_str(), F_OK) == 0)
    arguments.positional.push_back(standard);
  if (arguments.positional.empty() && !job.script.describeJob())
    return usageError("expected one CONFIG.yaml, got 0, and there is "
                      "no default_config.yaml either");
  job.paths = arguments.positional;
  if (job.paths.size() < 2) {
    job.paths.assign(1, "");
    if (!takeConfig(arguments, job.script, job.paths[0], job.hasConfig,
                    exitCode))
      return false;
  } else if (job.script.given() || report.effective || report.environment) {
    return usageError("several files are linted alone: --effective, "
                      "--emit and a script's arguments take one");
  }
  const bool tables =
      report.format == LintFormat::Text || report.format == LintFormat::Json;
  if (!tables && (report.effective || report.environment))
    return usageError("--effective and --emit print as text or json");
  if (job.fix && std::any_of(job.paths.begin(), job.paths.end(),
                             [&](const std::string &path) {
                               return isOfScript(job, path);
                             }))
    return usageError("--fix repairs an accelerate file, which is "
                      "linted without a script's arguments");
  return true;
}

int accel::lintCommand(int argc, char **argv) {
  LintJob job;
  job.options.accelerate.forPlanning = false;
  job.policy.silenceErrors = true;
  LaunchEnvironment launch;
  job.options.accelerate.launch = &launch;
  LintReport report;
  std::optional<std::string> torch;
  std::optional<int64_t> maxErrors;
  bool emitsEnvironment = false;
  OutputFile page("");
  Arguments arguments("accel-opt lint", "[CONFIG.yaml...]",
                      "Prints what accelerate would reject, ignore or take "
                      "otherwise than meant.");
  addOptions(arguments, job, report, torch, maxErrors, emitsEnvironment, page);
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (page.overwrite && page.path.empty())
    return arguments.usageError("--overwrite has no effect without --report");
  report.environment = emitsEnvironment ? &launch : nullptr;
  if (!takeFiles(arguments, job, report, exitCode))
    return exitCode;
  AccelerateOptions &accelerate = job.options.accelerate;
  if (torch) {
    job.checks.torchVersion = *torch;
    accelerate.torchGiven = true;
  }
  accelerate.torchVersion = job.checks.torchVersion;
  accelerate.deepspeedVersion = job.script.versions.deepspeed;
  job.checks.accelerateVersion = accelerate.version;
  job.checks.transformersVersion = job.script.versions.transformers;
  job.checks.deepspeedVersion = job.script.versions.deepspeed;
  DiagnosticEngine engine;
  engine.setMaxErrors(static_cast<size_t>(maxErrors.value_or(0)));
  engine.setPolicy(job.policy);
  const LintResult result = lintFiles(job, engine);
  if (!page.path.empty())
    writeLintReport(page, job, result, engine); // reports what fails
  const LintText text = renderLint(job, result, report, engine);
  std::fputs(text.out.c_str(), stdout);
  std::fflush(stdout);
  std::fputs(text.err.c_str(), stderr);
  return static_cast<int>(engine.outcome());
}
