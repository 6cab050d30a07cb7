//===- LintFormats.h - Findings for CI and editors --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// `lint --format`: the same findings in the forms that code hosts and test
// viewers read.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_LINTFORMATS_H
#define ACCEL_TOOLS_DRIVER_REPORT_LINTFORMATS_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "tools/options/Values.h"

namespace accel {

enum class LintFormat { Text, Json, Sarif, Github, Gitlab, Junit };
ValueKind<LintFormat> lintFormatValue();

/// A log of SARIF 2.1.0 (OASIS) with one run: a rule for each code that was
/// found, and what `--fix` would write as a fix of each result.
std::string renderSarif(const DiagnosticEngine &engine);

/// Workflow commands, one a line, which GitHub shows at the lines of a diff.
std::string renderGithub(const DiagnosticEngine &engine);

/// A Code Quality report of GitLab (a JSON array in Code Climate's form). A
/// finding keeps its fingerprint when lines above it come or go.
std::string renderGitlab(const DiagnosticEngine &engine);

/// JUnit XML with a suite for each of `files` and a case for each finding, of
/// which errors failed; a file without findings is one case that passed.
std::string renderJunit(const DiagnosticEngine &engine,
                        const std::vector<std::string> &files);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_LINTFORMATS_H
