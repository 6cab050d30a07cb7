//===- LintFiles.cpp - Files linted, and repaired -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Emit/LintFiles.h"

#include "tools/driver/Emit/LintFix.h"
#include "tools/driver/Options/FirstLine.h"

namespace accel {

bool isOfScript(const LintJob &job, const std::string &path) {
  return job.script.given() || (job.hasConfig && scripts::isRecipeFile(path));
}

/// A file that cannot be read has no repairs; linting it says why.
static void repair(const LintJob &job, const std::string &path,
                   LintResult &result, DiagnosticEngine &engine) {
  DiagnosticEngine reading;
  Repair made = {path, {}, {}};
  yaml::FixResult fixes = fixConfig(path, job.options, job.checks, job.policy,
                                    made.before, reading);
  result.fixed += fixes.fixed;
  result.refused += fixes.refused;
  if (reading.hasErrors())
    return;
  made.after = std::move(fixes.text);
  if (job.fix == LintJob::Fix::Write && made.after != made.before)
    result.written &= writeFixed(path, made.before, made.after, engine);
  result.repairs.push_back(std::move(made));
}

LintResult lintFiles(const LintJob &job, DiagnosticEngine &engine) {
  LintResult result;
  for (const std::string &path : job.paths) {
    if (job.fix)
      repair(job, path, result, engine);
    LintOptions checks = job.checks;
    if (job.hasConfig) {
      const auto text = job.options.accelerate.texts.find(path);
      const FirstLine first = text == job.options.accelerate.texts.end()
                                  ? readFirstLine(path, engine)
                                  : readFirstLine(path, text->second, engine);
      if (checks.model.empty())
        checks.model = first.model;
    }
    result.loaded = loadJob(path, job.hasConfig, checks.model, job.script,
                            job.options, engine);
    lintQuantizedBase(path, result.loaded, checks, engine);
    if (result.loaded.job) {
      lintContextAttention(*result.loaded.job, engine);
      lintGraphGradients(path, *result.loaded.job, engine);
    }
    lintHalfGradients(path, result.loaded, checks, engine);
    if (isOfScript(job, path))
      continue;
    lintDefaultConfig(path, engine);
    lintConfig(path, result.loaded, checks, engine);
    checkIgnoreComments(path, engine);
  }
  return result;
}

} // namespace accel
