//===- Buffer.cpp - A configuration as it is typed ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Editor/Buffer.h"

#include "tools/driver/Emit/LintFiles.h"
#include "tools/driver/Emit/LintFix.h"
#include "tools/driver/Session/Compile.h"
#include "tools/driver/Text/Format.h"

namespace accel {

static LintJob jobOf(const std::string &path, const std::string &text,
                     const FirstLine &chosen) {
  LintJob job;
  job.paths = {path};
  job.options.accelerate.forPlanning = false;
  job.options.accelerate.texts[path] = text;
  job.policy.silenceErrors = true;
  job.checks.model = chosen.model;
  return job;
}

Buffer::Buffer(std::string path, std::string text, FirstLine settings)
    : path(std::move(path)), content(std::move(text)),
      chosen(std::move(settings)),
      engine(std::make_unique<DiagnosticEngine>()) {
  DiagnosticEngine lintSaysIt;
  const FirstLine own = readFirstLine(this->path, content, lintSaysIt);
  if (!own.model.empty())
    chosen.model = own.model;
  if (!own.target.empty())
    chosen.target = own.target;
  const LintJob job = jobOf(this->path, content, chosen);
  engine->setPolicy(job.policy);
  engine->addSource(this->path, content);
  const LintResult result = lintFiles(job, *engine);
  if (result.loaded.job)
    values = result.loaded.job->accelerate.effective;
}

const EffectiveValue *Buffer::effective(const std::string &key) const {
  for (const EffectiveValue &value : values)
    if (value.key == key)
      return &value;
  return nullptr;
}

std::optional<std::string> Buffer::repaired() const {
  const LintJob job = jobOf(path, content, chosen);
  const yaml::FixResult result =
      fixText(path, content, job.options, job.checks, job.policy);
  return result.fixed ? std::optional(result.text) : std::nullopt;
}

const std::string &Buffer::figures() {
  if (planned)
    return *planned;
  planned.emplace();
  PlanOptions options;
  options.config = path;
  options.texts[path] = content;
  options.model = chosen.model;
  options.target = chosen.target;
  DiagnosticEngine said;
  const CompileResult result = compile(options, said);
  const PlanReport &report = result.report;
  if (!result.valid || report.prediction.peakBytes == 0)
    return *planned;
  *planned =
      formatBytes(report.prediction.deviceBytes ? report.prediction.deviceBytes
                                                : report.prediction.peakBytes);
  if (report.hasTime)
    *planned += ", " + formatSeconds(report.prediction.stepSeconds);
  if (report.fits == false && report.budgetBytes)
    *planned += "; does not fit in " + formatBytes(*report.budgetBytes);
  return *planned;
}

} // namespace accel
