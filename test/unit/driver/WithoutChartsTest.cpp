//===- WithoutChartsTest.cpp - Reports of a build without charts ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Links Html.cpp as a machine without libjs-chart.js compiles it.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Html/Html.h"

#include <filesystem>
#include <gtest/gtest.h>

using namespace accel;

namespace {

/// One error that names the package, and no page.
void expectRefused(bool written, const std::string &path,
                   const DiagnosticEngine &engine) {
  EXPECT_FALSE(written);
  ASSERT_EQ(engine.all().size(), 1u);
  EXPECT_EQ(engine.all()[0].code, "no-charts");
  EXPECT_NE(engine.all()[0].hint.find("libjs-chart.js"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(WithoutCharts, FindingsAreAPageAllTheSame) {
  const std::string path = testing::TempDir() + "findings.html";
  std::filesystem::remove(path);
  DiagnosticEngine engine;
  EXPECT_TRUE(writeLintReport(path, LintJob(), LintResult(), engine));
  EXPECT_TRUE(engine.all().empty());
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(WithoutCharts, EachReportSaysWhatIsMissing) {
  const std::string path = testing::TempDir() + "without-charts.html";
  std::filesystem::remove(path);
  {
    DiagnosticEngine engine;
    PlanOptions options;
    options.htmlReport = path;
    expectRefused(writeReport(options, CompileResult(), engine), path, engine);
  }
  {
    DiagnosticEngine engine;
    expectRefused(
        writeDiffReport(path, Effect(), Effect(), Comparison(), engine), path,
        engine);
  }
  {
    DiagnosticEngine engine;
    expectRefused(writeValidationReport(path, "runs.csv",
                                        validate::ValidationResult(), engine),
                  path, engine);
  }
  {
    DiagnosticEngine engine;
    expectRefused(writeExplainReport(path, plan::Plan(), nullptr, engine), path,
                  engine);
  }
}

} // namespace
