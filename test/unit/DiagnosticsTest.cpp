//===- DiagnosticsTest.cpp - Collecting and rendering findings ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/Diagnostics/Regex.h"
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
            "\"a.yaml\", \"line\": 1, \"column\": 1, \"end_line\": 1, "
            "\"end_column\": 1, \"key\": \"a.b\", "
            "\"message\": \"tab\\u0009 \\\"q\\\" \\\\ \\u0001 \\ufffd\", "
            "\"hint\": null, \"fix\": null}\n]");
}

TEST(Diagnostics, RangesAndFixesUnderTheLine) {
  DiagnosticEngine engine;
  engine.addSource("a.yaml", "# \xc3\xa4\nkey: no  # c\nb: |\n  x\n  y\n");
  Diagnostic d = at(Severity::Error, "yaml-boolean", 2, 6, "a boolean", 8);
  d.ranges = {{2, 1, 2, 4}, {1, 1, 1, 3}};
  d.fix = {{10, 12, "'no'"}};
  engine.report(d);
  Diagnostic block = at(Severity::Warning, "w", 3, 4, "several lines", 4);
  block.endLine = 5;
  engine.report(block);
  EXPECT_EQ(renderText(engine), "a.yaml:2:6: error: a boolean [yaml-boolean]\n"
                                "key: no  # c\n"
                                "~~~  ^~\n"
                                "     'no'\n"
                                "a.yaml:3:4: warning: several lines [w]\n"
                                "b: |\n"
                                "   ^\n"
                                "1 error and 1 warning\n");
  std::string json = renderJson(engine);
  EXPECT_NE(json.find("\"line\": 2, \"column\": 6, \"end_line\": 2, "
                      "\"end_column\": 8,"),
            std::string::npos);
  EXPECT_NE(json.find("\"fix\": [{\"begin\": 10, \"end\": 12, \"line\": 2, "
                      "\"column\": 6, \"end_line\": 2, \"end_column\": 8, "
                      "\"text\": \"'no'\"}]"),
            std::string::npos);
  EXPECT_NE(json.find("\"line\": 3, \"column\": 4, \"end_line\": 5, "
                      "\"end_column\": 4,"),
            std::string::npos);
}

TEST(Diagnostics, PlacesOfBytes) {
  DiagnosticEngine engine;
  std::string text = "\xef\xbb\xbf"
                     "a\r\n\xc3\xa4"
                     "b\rc\n";
  for (int i = 0; i < 300; ++i)
    text += "line\n";
  engine.addSource("a", text);
  auto place = [&](size_t byte) {
    SourceRange r = engine.rangeOf("a", byte, byte);
    return std::to_string(r.line) + ":" + std::to_string(r.column);
  };
  EXPECT_EQ(place(3), "1:1");
  EXPECT_EQ(place(6), "2:1");
  EXPECT_EQ(place(8), "2:2"); // after a character of two bytes
  EXPECT_EQ(place(10), "3:1");
  EXPECT_EQ(place(12 + 5 * 250 + 2), "254:3");
  EXPECT_EQ(place(12 + 5 * 10), "14:1"); // back again
  EXPECT_EQ(place(text.size()), "304:1");
  EXPECT_EQ(place(text.size() + 1), "0:0");
  EXPECT_EQ(engine.sourceLine("a", 1), "a");
  EXPECT_EQ(engine.sourceLine("a", 2), "\xc3\xa4"
                                       "b");
  EXPECT_EQ(engine.sourceLine("a", 254), "line");
}

TEST(Policy, PromotesAndSilences) {
  DiagnosticEngine engine;
  DiagnosticPolicy policy;
  policy.warningsAreErrors = true;
  policy.staysWarning = {"stays"};
  policy.silent = {"silent", "error"};
  engine.setPolicy(policy);
  engine.report(at(Severity::Warning, "silent", 1, 1, "no"));
  engine.report(at(Severity::Warning, "stays", 2, 1, "yes"));
  engine.report(at(Severity::Warning, "other", 3, 1, "up"));
  engine.report(at(Severity::Note, "note", 4, 1, "as it is"));
  engine.report(at(Severity::Error, "error", 5, 1, "cannot be silenced"));
  EXPECT_EQ(engine.errors(), 2u);
  EXPECT_EQ(engine.warnings(), 1u);
  EXPECT_EQ(engine.silenced(), 1u);
  EXPECT_NE(renderText(engine).find("error: up [other,-Werror]"),
            std::string::npos);
  EXPECT_EQ(engine.outcome(), Outcome::Invalid);
}

TEST(Policy, CommentsSilenceTheirLineOrTheNext) {
  DiagnosticEngine engine;
  DiagnosticPolicy policy;
  policy.silenceErrors = true;
  engine.setPolicy(policy);
  engine.addSource("a.yaml", "# accel-opt: ignore=first\n"
                             "\n"
                             "# another comment\n"
                             "a: 1\n"
                             "b: 2 # why. accel-opt: ignore=no\n"
                             "c: 3  # accel-opt: ignore=x, y\n"
                             "d: 'accel-opt: ignore=x'\n"
                             "e: 5#accel-opt: ignore=x\n");
  auto silent = [&](const char *code, int line) {
    size_t before = engine.silenced();
    engine.report(at(Severity::Error, code, line, 1, "m"));
    return engine.silenced() > before;
  };
  EXPECT_TRUE(silent("first", 1));
  EXPECT_TRUE(silent("first", 0)); // the file as a whole
  EXPECT_TRUE(silent("first", 4));
  EXPECT_FALSE(silent("first", 5));
  EXPECT_FALSE(silent("other", 4));
  EXPECT_FALSE(silent("no", 5)); // the comment says something else
  EXPECT_TRUE(silent("x", 6));
  EXPECT_TRUE(silent("y", 6));
  EXPECT_FALSE(silent("x", 7)); // text, no comment
  EXPECT_FALSE(silent("x", 8));
  // What makes the file unreadable is never silent.
  engine.addSource("a.yaml", "x # accel-opt: ignore=yaml-syntax\n");
  EXPECT_FALSE(silent("yaml-syntax", 1));
}

TEST(Policy, OnlyLintSilencesErrors) {
  DiagnosticEngine engine;
  engine.addSource("a.yaml", "a: 1 # accel-opt: ignore=x\n");
  engine.report(at(Severity::Error, "x", 1, 1, "m"));
  engine.report(at(Severity::Warning, "x", 1, 1, "m"));
  EXPECT_EQ(engine.errors(), 1u);
  EXPECT_EQ(engine.warnings(), 0u);
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

TEST(Regex, MatchesWholeTextsAndParts) {
  std::optional<Regex> regex = Regex::compile("(up|down)_proj");
  ASSERT_TRUE(regex);
  EXPECT_TRUE(regex->matches("up_proj"));
  EXPECT_FALSE(regex->matches("mlp.up_proj"));
  EXPECT_TRUE(regex->isIn("mlp.up_proj.weight"));
  EXPECT_EQ(regex->lastGroupIn("mlp.down_proj"), "down");
  EXPECT_EQ(regex->lastGroupIn("mlp.gate_proj"), std::nullopt);
  EXPECT_FALSE(Regex().matches(""));
  std::string error;
  EXPECT_FALSE(Regex::compile("a)(b", &error));
  EXPECT_FALSE(error.empty());
}

TEST(Regex, ReadsWhatPythonReads) {
  const auto regex =
      Regex::compile("^(?!.*(?:lm_head|vision)).*(?P<leaf>_proj)$");
  ASSERT_TRUE(regex);
  EXPECT_TRUE(regex->matches("model.layers.0.mlp.up_proj"));
  EXPECT_FALSE(regex->matches("vision.layers.0.mlp.up_proj"));
  EXPECT_EQ(regex->lastGroupIn("model.up_proj"), "_proj");
}

TEST(Regex, GivesUpWhatWouldTakeForever) {
  const std::string name = "model.layers.10.self_attn.rotary_emb.inv_freq";
  for (const char *slow : {"^(.*)*[!?]$", "^(.+)+[!?]$",
                           "^(.|[a-z._0-9])*[!?]$", "^(.*.*)*[!?]$"}) {
    const auto regex = Regex::compile(slow);
    ASSERT_TRUE(regex) << slow;
    EXPECT_FALSE(regex->gaveUp());
    EXPECT_FALSE(regex->isIn(name));
    EXPECT_TRUE(regex->gaveUp()) << slow;
    EXPECT_FALSE(regex->matches("!")) << "nothing is matched from then on";
  }
  const auto quick = Regex::compile("(.*\\.)?(q_proj|v_proj)");
  ASSERT_TRUE(quick);
  for (int i = 0; i < 10000; ++i)
    EXPECT_FALSE(quick->matches(name));
  EXPECT_FALSE(quick->gaveUp());
}

} // namespace
