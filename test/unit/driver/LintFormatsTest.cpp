//===- LintFormatsTest.cpp - Findings for CI and editors ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What no file of a test brings about: characters that a form has to escape,
// findings without a place, and the same finding twice.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/LintFormats.h"

#include "frontends/Schema/Published.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace accel;
using Json = nlohmann::json;

namespace {

/// A text in memory with one finding of `severity` on its second line.
void fill(DiagnosticEngine &engine, Severity severity,
          const std::string &message) {
  engine.addSource("a,b/c d.yaml", "x: 1\nké: 2\nz: 3\n");
  Diagnostic d;
  d.severity = severity;
  d.code = "unknown-key";
  d.file = "a,b/c d.yaml";
  d.setRange({2, 1, 2, 3});
  d.key = "ké";
  d.message = message;
  d.hint = "write key";
  d.fix = {{5, 8, "key"}};
  engine.report(d);
}

TEST(LintFormats, SarifCountsCharacters) {
  DiagnosticEngine engine;
  fill(engine, Severity::Warning, "wrong");
  Json run = Json::parse(renderSarif(engine))["runs"][0];
  EXPECT_EQ(run["columnKind"], "unicodeCodePoints");
  Json result = run["results"][0];
  Json place = result["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "a,b/c%20d.yaml");
  EXPECT_EQ(place["region"],
            (Json{{"startLine", 2}, {"startColumn", 1}, {"endColumn", 3}}));
  Json replaced = result["fixes"][0]["artifactChanges"][0]["replacements"][0];
  EXPECT_EQ(replaced["insertedContent"]["text"], "key");
  EXPECT_EQ(replaced["deletedRegion"],
            (Json{{"startLine", 2}, {"startColumn", 1}, {"endColumn", 3}}));
}

TEST(LintFormats, SarifInsertsWithoutDeleting) {
  DiagnosticEngine engine;
  engine.addSource("a.yaml", "x: 1\ny: 2\n");
  Diagnostic d;
  d.code = "missing-key";
  d.file = "a.yaml";
  d.line = 1;
  d.message = "missing";
  d.fix = {{5, 5, "new: 1\n"}};
  engine.report(d);
  Json fix = Json::parse(renderSarif(engine))["runs"][0]["results"][0]["fixes"];
  EXPECT_EQ(fix[0]["artifactChanges"][0]["replacements"][0]["deletedRegion"],
            (Json{{"startLine", 2}, {"startColumn", 1}, {"endColumn", 1}}));
}

TEST(LintFormats, WithoutAPlace) {
  DiagnosticEngine engine;
  engine.error("invalid-version", "", "'x' is not a version");
  Json result = Json::parse(renderSarif(engine))["runs"][0]["results"][0];
  EXPECT_FALSE(result.contains("locations"));
  EXPECT_EQ(renderGithub(engine),
            "::error title=invalid-version::'x' is not a version\n");
  EXPECT_EQ(Json::parse(renderGitlab(engine))[0]["location"]["lines"]["begin"],
            1);
  EXPECT_NE(renderJunit(engine, {"a.yaml"})
                .find("<testsuite name=\"command line\" tests=\"1\" "
                      "failures=\"1\""),
            std::string::npos);
}

TEST(LintFormats, GithubEscapes) {
  DiagnosticEngine engine;
  fill(engine, Severity::Note, "50%: a\nb");
  EXPECT_EQ(renderGithub(engine),
            "::notice file=a%2Cb/c d.yaml,line=2,col=1,endColumn=3,"
            "title=unknown-key::50%25: a%0Ab; write key\n");
}

TEST(LintFormats, GitlabTellsRepeatedFindingsApart) {
  DiagnosticEngine engine;
  for (int line : {2, 7}) {
    Diagnostic d;
    d.code = "duplicate-key";
    d.file = "./a.yaml";
    d.line = line;
    d.message = "twice";
    engine.report(d);
  }
  Json report = Json::parse(renderGitlab(engine));
  EXPECT_EQ(report[0]["location"]["path"], "a.yaml");
  EXPECT_NE(report[0]["fingerprint"], report[1]["fingerprint"]);
  // The line is no part of it.
  DiagnosticEngine moved;
  Diagnostic d;
  d.code = "duplicate-key";
  d.file = "a.yaml";
  d.line = 3;
  d.message = "twice";
  moved.report(d);
  EXPECT_EQ(Json::parse(renderGitlab(moved))[0]["fingerprint"],
            report[0]["fingerprint"]);
}

TEST(LintFormats, JunitHasNoControlCharacters) {
  DiagnosticEngine engine;
  fill(engine, Severity::Error, "<\x01> \"&\xff");
  const std::string text = renderJunit(engine, {});
  EXPECT_NE(text.find("message=\"&lt;\xef\xbf\xbd&gt; &quot;&amp;\xef\xbf\xbd; "
                      "write key\""),
            std::string::npos)
      << text;
}

TEST(Modeline, StandsOnceAndFirst) {
  using namespace schema;
  const std::string with =
      withModeline("a: 1\n", SchemaKind::Accelerate, newestAccelerate);
  EXPECT_EQ(with, "# yaml-language-server: $schema=" +
                      addressOf(SchemaKind::Accelerate, newestAccelerate) +
                      "\na: 1\n");
  EXPECT_EQ(withModeline(with, SchemaKind::Accelerate, newestAccelerate), with);
  EXPECT_EQ(withModeline("a: 1\n", SchemaKind::Job, {0, 20}), "a: 1\n");
  EXPECT_TRUE(withModeline("\xef\xbb\xbf"
                           "a: 1\n",
                           SchemaKind::Job, newestAccelerate)
                  .starts_with("\xef\xbb\xbf# yaml-language-server"));
}

TEST(Modeline, EndsAsTheLinesOfTheFile) {
  using namespace schema;
  EXPECT_EQ(withModeline("a: 1\r\nb: 2\r\n", SchemaKind::Job, newestAccelerate),
            "# yaml-language-server: $schema=" +
                addressOf(SchemaKind::Job, newestAccelerate) +
                "\r\na: 1\r\nb: 2\r\n");
}

} // namespace
