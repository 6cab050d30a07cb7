//===- DiagnosticsTest.cpp - Collecting and rendering findings ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/Diagnostics/Utf8.h"

#include <gtest/gtest.h>

using namespace accel;

namespace {

Diagnostic at(Severity severity, const char *code, int line, int column,
              const char *message, int endColumn = 0) {
  Diagnostic d;
  d.severity = severity;
  d.code = code;
  d.file = "a.yaml";
  d.line = line;
  d.column = column;
  d.endColumn = endColumn;
  d.message = message;
  return d;
}

TEST(Diagnostics, RendersLikeClang) {
  DiagnosticEngine engine;
  engine.addSource("a.yaml", "one: 1\n\tk\xc3\xa9y: value\n");
  Diagnostic d = at(Severity::Warning, "ignored-key", 2, 7, "no effect", 12);
  d.hint = "remove it";
  engine.report(d);
  EXPECT_EQ(renderText(engine), "a.yaml:2:7: warning: no effect [ignored-key]\n"
                                "\tk\xc3\xa9y: value\n"
                                "\t     ^~~~~\n"
                                "a.yaml:2:7: note: remove it\n"
                                "1 warning\n");
}

TEST(Diagnostics, ColoursOnlyOnRequest) {
  DiagnosticEngine engine;
  engine.report(at(Severity::Error, "x", 0, 0, "bad"));
  EXPECT_EQ(renderText(engine).find('\033'), std::string::npos);
  RenderOptions options;
  options.colour = true;
  EXPECT_NE(renderText(engine, options).find("\033[1;31merror:"),
            std::string::npos);
}

TEST(Diagnostics, OrderIsByPlaceThenReport) {
  DiagnosticEngine engine;
  engine.report(at(Severity::Error, "b", 3, 1, "third"));
  engine.report(at(Severity::Note, "a", 1, 5, "first"));
  engine.report(at(Severity::Warning, "c", 3, 1, "fourth"));
  engine.report(at(Severity::Warning, "c", 2, 9, "second"));
  engine.report(at(Severity::Warning, "c", 2, 9, "second")); // again
  std::string order;
  for (const Diagnostic &d : engine.sorted())
    order += d.message + " ";
  EXPECT_EQ(order, "first second third fourth ");
  EXPECT_EQ(engine.warnings(), 2u);
}

TEST(Diagnostics, OutcomeIsNotSupportedOnlyIfNothingIsWrong) {
  DiagnosticEngine engine;
  engine.warning("ignored-key", "a.yaml", "w");
  EXPECT_EQ(engine.outcome(), Outcome::Ok);
  engine.error(notSupportedCode, "a.yaml", "later");
  EXPECT_EQ(engine.outcome(), Outcome::NotSupported);
  engine.error("invalid-value", "a.yaml", "wrong");
  EXPECT_EQ(engine.outcome(), Outcome::Invalid);
}

TEST(Diagnostics, MaxErrorsStillCounts) {
  DiagnosticEngine engine;
  engine.setMaxErrors(2);
  for (int line = 1; line <= 5; ++line)
    engine.report(at(Severity::Error, "x", line, 1, "bad"));
  EXPECT_EQ(engine.all().size(), 2u);
  EXPECT_EQ(engine.errors(), 5u);
  EXPECT_NE(renderText(engine).find("(3 more errors not shown)\n5 errors\n"),
            std::string::npos);
}

TEST(Diagnostics, ManyFindingsStayCheap) {
  DiagnosticEngine engine;
  for (int line = 1; line <= 200000; ++line)
    engine.report(at(Severity::Error, "x", line, 1, "bad"));
  EXPECT_EQ(engine.errors(), 200000u);
  EXPECT_LE(engine.all().size(), 5000u);
}

TEST(Diagnostics, JsonHasExactlyTheMembersAndEscapes) {
  DiagnosticEngine engine;
  EXPECT_EQ(renderJson(engine), "[]");
  Diagnostic d = at(Severity::Error, "x", 0, 0, "tab\t \"q\" \\ \x01 \xff");
  d.key = "a.b";
  engine.report(d);
  EXPECT_EQ(renderJson(engine, 0),
            "[\n{\"severity\": \"error\", \"code\": \"x\", \"file\": "
            "\"a.yaml\", \"line\": 1, \"column\": 1, \"key\": \"a.b\", "
            "\"message\": \"tab\\u0009 \\\"q\\\" \\\\ \\u0001 \\ufffd\", "
            "\"hint\": null}\n]");
}

TEST(Diagnostics, SourceLinesOfOddFiles) {
  DiagnosticEngine engine;
  engine.addSource("crlf", "a\r\nb\r\nlast");
  EXPECT_EQ(engine.sourceLine("crlf", 2), "b");
  EXPECT_EQ(engine.sourceLine("crlf", 3), "last");
  EXPECT_EQ(engine.sourceLine("crlf", 4), "");
  EXPECT_EQ(engine.sourceLine("/no/such/file", 1), "");
  EXPECT_EQ(engine.sourceLine("/dev/zero", 1), "");
}

TEST(Diagnostics, LongLinesAreCutAroundTheColumn) {
  DiagnosticEngine engine;
  engine.addSource("a.yaml", std::string(5000, 'x') + "Y" +
                                 std::string(5000, 'z') + "\n");
  engine.report(at(Severity::Error, "x", 1, 5001, "here"));
  std::string text = renderText(engine);
  EXPECT_LT(text.size(), 600u);
  size_t lineAt = text.find("...x"), caret = text.find('^');
  size_t caretLine = text.rfind('\n', caret) + 1;
  EXPECT_EQ(text[lineAt + (caret - caretLine)], 'Y');
}

TEST(Suggestions, NearestNames) {
  std::vector<std::string> keys = {"num_processes", "num_machines",
                                   "mixed_precision", "FULL_SHARD"};
  EXPECT_EQ(didYouMean("num_proceses", keys), "did you mean 'num_processes'?");
  EXPECT_EQ(nearest("mixed_precisoin", keys), "mixed_precision");
  EXPECT_EQ(nearest("full_shard", keys), "FULL_SHARD"); // case counts little
  EXPECT_EQ(nearest("learning_rate", keys), "");
  EXPECT_EQ(nearest("", keys), "");
  EXPECT_EQ(nearest(std::string(1000000, 'a'), keys), "");
}

TEST(Printable, HidesWhatDoesNotPrint) {
  EXPECT_EQ(printable("a\nb\x1b[31m"), "a\\nb\xef\xbf\xbd[31m");
  EXPECT_EQ(printable("\xe2\x80\xae"), "\xef\xbf\xbd"); // direction override
  EXPECT_EQ(printable("\xc3\xa9\xff"), "\xc3\xa9\xef\xbf\xbd");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(Utf8, FindsIllFormedText) {
  EXPECT_EQ(findInvalidUtf8("ok \xf0\x9f\x98\x80"), std::string_view::npos);
  EXPECT_EQ(findInvalidUtf8("a\xc0\x80"), 1u);        // overlong
  EXPECT_EQ(findInvalidUtf8("\xed\xa0\x80"), 0u);     // surrogate
  EXPECT_EQ(findInvalidUtf8("ab\xe2\x82"), 2u);       // cut off
  EXPECT_EQ(findInvalidUtf8("\xf4\x90\x80\x80"), 0u); // beyond U+10FFFF
}

} // namespace
