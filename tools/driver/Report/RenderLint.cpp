//===- RenderLint.cpp - What lint prints ----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/RenderLint.h"

#include "frontends/Diagnostics/Diff.h"
#include "tools/driver/Report/LintTables.h"

#include <unistd.h>

namespace accel {

static std::string diffOf(const LintResult &result, bool colour) {
  std::string text;
  for (const Repair &repair : result.repairs)
    text += unifiedDiff(repair.before, repair.after, repair.path, colour);
  return text;
}

static std::string json(const LintJob &job, const LintResult &result,
                        const LintReport &report,
                        const DiagnosticEngine &engine) {
  std::string text = "{\"diagnostics\": " + renderJson(engine);
  if (job.fix)
    text += ",\n\"fixed\": " + std::to_string(result.fixed) +
            ",\n\"diff\": " + jsonString(diffOf(result, /*colour=*/false));
  if (report.effective)
    text +=
        ",\n\"effective\": " +
        (result.loaded.job ? renderEffectiveJson(result.loaded.job->accelerate)
                           : "[]");
  if (report.environment)
    text += ",\n\"environment\": " + renderEnvironmentJson(*report.environment);
  return text + "}\n";
}

/// "2 fixed", and why others were not.
static std::string summaryOfFixes(const LintJob &job,
                                  const LintResult &result) {
  std::string text = std::to_string(result.fixed) + " fixed";
  if (job.fix == LintJob::Fix::Diff && !diffOf(result, false).empty())
    text += " in the diff, nothing written";
  if (result.refused)
    text += "; others would have changed more than their own line";
  return text + "\n";
}

static LintText text(const LintJob &job, const LintResult &result,
                     const LintReport &report, const DiagnosticEngine &engine) {
  LintText text;
  std::string &findings = report.environment ? text.err : text.out;
  if (!report.environment)
    text.out += diffOf(result, wantsColour(STDOUT_FILENO));
  if (report.effective && result.loaded.job)
    text.out += renderEffective(result.loaded.job->accelerate) + "\n";
  RenderOptions render;
  render.colour =
      wantsColour(report.environment ? STDERR_FILENO : STDOUT_FILENO);
  findings += renderText(engine, render);
  if (report.environment)
    text.out += renderEnvironment(*report.environment);
  else if (engine.all().empty())
    text.out +=
        (job.paths.size() == 1 ? job.paths[0]
                               : std::to_string(job.paths.size()) + " files") +
        ": nothing to report\n";
  if (job.fix && result.written)
    findings += summaryOfFixes(job, result);
  return text;
}

LintText renderLint(const LintJob &job, const LintResult &result,
                    const LintReport &report, const DiagnosticEngine &engine) {
  switch (report.format) {
  case LintFormat::Text:
    return text(job, result, report, engine);
  case LintFormat::Json:
    return {json(job, result, report, engine), ""};
  case LintFormat::Sarif:
    return {renderSarif(engine), ""};
  case LintFormat::Github:
    return {renderGithub(engine), ""};
  case LintFormat::Gitlab:
    return {renderGitlab(engine), ""};
  case LintFormat::Junit:
    return {renderJunit(engine, job.paths), ""};
  }
  return {};
}

} // namespace accel
