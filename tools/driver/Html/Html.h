//===- Html.h - A plan as a page to look at ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_HTML_HTML_H
#define ACCEL_TOOLS_DRIVER_HTML_HTML_H

#include "passes/Validate/Validate.h"
#include "tools/driver/Compare/Effect.h"
#include "tools/driver/Emit/LintFiles.h"
#include "tools/driver/Options/PlanOptions.h"
#include "tools/driver/Output/OutputFile.h"
#include "tools/driver/PipelineSchedule/RenderSchedule.h"
#include "tools/driver/Report/RunLog.h"
#include "tools/driver/Session/Compile.h"

namespace accel {

/// Writes `options.htmlReport`: one file that needs nothing else. It shows the
/// object of `--format json` and, where a target is given, the step that was
/// played for it. False where that cannot be, which is reported.
bool writeReport(const PlanOptions &options, const CompileResult &result,
                 DiagnosticEngine &engine);

/// Writes to `file` the same kind of page of two jobs by effect: the object of
/// `diff --format json`.
bool writeDiffReport(const OutputFile &file, const Effect &a, const Effect &b,
                     const Comparison &comparison, DiagnosticEngine &engine);

/// The same of the runs of the file `runs`, predicted beside measured: the
/// object of `validate --format json`.
bool writeValidationReport(const OutputFile &file, const std::string &runs,
                           const validate::ValidationResult &result,
                           DiagnosticEngine &engine);

/// The same of a plan: why it is as it is, memory by instruction and who holds
/// it at the peak, and, where a run's log is given, predicted beside measured:
/// the objects of `explain PLAN --format json`, `timeline`, `peak` and `--log`.
bool writeExplainReport(const OutputFile &file, const plan::Plan &plan,
                        const RunLog *log, DiagnosticEngine &engine);

/// The same of what lint found, beside the lines that it is about, and of what
/// each key of a single file does: the object of `lint --effective --format
/// json`.
bool writeLintReport(const OutputFile &file, const LintJob &job,
                     const LintResult &result, DiagnosticEngine &engine);

/// The same of a pipeline schedule: the object of `pipeline --format json`,
/// drawn.
bool writePipelineReport(const OutputFile &file,
                         const pipeline::SimulatedStep &what,
                         DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_HTML_HTML_H
