//===- YamlTest.cpp - YAML 1.1 and JSON with positions --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Yaml/Yaml.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace accel;
using namespace accel::yaml;

namespace {

/// The document as Python prints it, or the first error.
std::string read(const std::string &text, const char *file = "a.yaml") {
  DiagnosticEngine engine;
  std::unique_ptr<Document> document = parseText(file, text, engine);
  if (!document) {
    std::vector<Diagnostic> all = engine.sorted();
    return all.empty() ? "no diagnostic"
                       : all[0].code + " " + std::to_string(all[0].line) + ":" +
                             std::to_string(all[0].column);
  }
  return document->root() ? pythonText(*document->root()) : "empty";
}

// Expectations are what PyYAML 6 gives for the same text.
TEST(Yaml, ScalarsFollowYaml11) {
  EXPECT_EQ(read("[yes, No, TRUE, off, y, n, tRue]"),
            "[True, False, True, False, 'y', 'n', 'tRue']");
  EXPECT_EQ(read("[1, -0, +7, 0x1F, 017, 0b101, 1_000, 1:30, 08, 0o7]"),
            "[1, 0, 7, 31, 15, 5, 1000, 90, '08', '0o7']");
  EXPECT_EQ(read("[1e8, 1.0e8, 1.0e+8, .5, 1., 1_0.5, 1:30.5, 1.5E-3]"),
            "['1e8', '1.0e8', 100000000.0, 0.5, 1.0, 10.5, 90.5, 0.0015]");
  EXPECT_EQ(read("[.inf, -.INF, .nan, +.inf, inf, nan]"),
            "[inf, -inf, nan, inf, 'inf', 'nan']");
  EXPECT_EQ(read("[~, null, NULL, nUll, '']"),
            "[None, None, None, 'nUll', '']");
  EXPECT_EQ(read("['no', \"1\", 'null']"), "['no', '1', 'null']");
  EXPECT_EQ(read("[99999999999999999999, -9223372036854775808]"),
            "[99999999999999999999, -9223372036854775808]");
}

TEST(Yaml, TagsAndSpecialPlaces) {
  EXPECT_EQ(read("[!!str 12, !!int '0x10', !!float '1', !!bool yes, ! 12]"),
            "['12', 16, 1.0, True, 12]");
  EXPECT_EQ(read("a: =\n"), "yaml-syntax 1:4");
  EXPECT_EQ(read("=: 1\n"), "{'=': 1}");
  EXPECT_EQ(read("a: <<\n"), "yaml-syntax 1:4");
  EXPECT_EQ(read("a: !!int x\n"), "yaml-syntax 1:4");
  EXPECT_EQ(read("a: !python/name:os.system x\n"), "yaml-syntax 1:4");
  EXPECT_EQ(read("a: 2001-13-01\n"), "yaml-syntax 1:4");
  EXPECT_EQ(read("a: 2001-12-01\n"), "{'a': datetime.date(2001, 12, 1)}");
  EXPECT_EQ(read("2001-12-14t21:59:43.10-05:00"),
            "2001-12-14 21:59:43.100000-05:00");
  EXPECT_EQ(read("[2001-12-14 21:59:00Z, !!binary aGk=]"),
            "[datetime.datetime(2001, 12, 14, 21, 59, "
            "tzinfo=datetime.timezone.utc), b'hi']");
  EXPECT_EQ(read("[!!omap [a: 1, b: 2], !!set {a, b}, !!pairs []]"),
            "[[('a', 1), ('b', 2)], {'a', 'b'}, []]");
  EXPECT_EQ(read("!!binary aGk"), "yaml-syntax 1:1");
  EXPECT_EQ(read("[!!int ' 12', !!float infinity, !!int '0o17']"),
            "[12, inf, 15]");
}

TEST(Yaml, AnchorsAndMerges) {
  EXPECT_EQ(read("a: &x [1]\nb: *x\n"), "{'a': [1], 'b': [1]}");
  EXPECT_EQ(read("a: &x {p: 1, q: 2}\nb: {q: 3, <<: *x}\n"),
            "{'a': {'p': 1, 'q': 2}, 'b': {'p': 1, 'q': 3}}");
  EXPECT_EQ(read("- &x {p: 1}\n- &y {p: 2, q: 2}\n- {<<: [*x, *y]}\n"),
            "[{'p': 1}, {'p': 2, 'q': 2}, {'p': 1, 'q': 2}]");
  EXPECT_EQ(read("a: {<<: 1}\n"), "yaml-syntax 1:9");
  EXPECT_EQ(read("a: *x\n"), "yaml-syntax 1:4");
  EXPECT_EQ(read("a: &x [*x]\n"), "{'a': [[...]]}");
  EXPECT_EQ(read("a: &x 1\nb: &x 2\n"), "yaml-syntax 2:4");
  EXPECT_EQ(read("<<: !other {a: 1}\nb: 2\n"), "{'a': 1, 'b': 2}");
}

TEST(Yaml, LastDuplicateWinsWithAWarning) {
  DiagnosticEngine engine;
  auto document = parseText("a.yaml", "a: 1\nb: 2\na: 3\n", engine);
  ASSERT_TRUE(document);
  EXPECT_EQ(pythonText(*document->root()), "{'a': 3, 'b': 2}");
  ASSERT_EQ(engine.all().size(), 1u);
  EXPECT_EQ(engine.all()[0].code, "duplicate-key");
  EXPECT_EQ(engine.all()[0].severity, Severity::Warning);
  EXPECT_EQ(engine.all()[0].line, 3);
  EXPECT_EQ(engine.all()[0].endColumn, 2);
}

TEST(Yaml, RefusesWhatSafeLoadRefuses) {
  EXPECT_EQ(read("a: 'open\n"), "yaml-syntax 2:1");
  EXPECT_EQ(read("a: 1\n---\nb: 2\n"), "yaml-syntax 2:1");
  EXPECT_EQ(read("a: 1\n b: 2\n"), "yaml-syntax 2:3");
  EXPECT_EQ(read("a: @x\n"), "yaml-syntax 1:4");
  EXPECT_EQ(read("{[1]: 2}"), "yaml-syntax 1:2");
  EXPECT_EQ(read("a:\t1\n"), "yaml-syntax 1:3");
  EXPECT_EQ(read("a: 1 # tab\there\n"), "{'a': 1}");
  EXPECT_EQ(read("a: 'tab\there'\n"), "{'a': 'tab\\there'}");
}

TEST(Yaml, EmptyAndOddDocuments) {
  EXPECT_EQ(read(""), "empty");
  EXPECT_EQ(read("# only a comment\n"), "empty");
  EXPECT_EQ(read("---\n"), "None");
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "a: 1\r\nb: 2\r\n"),
            "{'a': 1, 'b': 2}");
}

TEST(Yaml, BytesThatAreNoText) {
  EXPECT_EQ(read("a: 1\nb: \xff\n"), "file-encoding 2:4");
  EXPECT_EQ(read(std::string("a\0b", 3)), "file-encoding 1:2");
  EXPECT_EQ(read("a: \x1b[31m\n"), "file-encoding 1:4");
}

TEST(Yaml, LimitsHold) {
  EXPECT_EQ(read(std::string(10000, '[')), "yaml-limit 1:102");
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 0; j < 9; ++j)
      bomb += ", " + last;
    bomb += "]\n";
  }
  EXPECT_EQ(read(bomb).substr(0, 11), "yaml-limit ");
  std::string many = "[";
  for (int i = 0; i < 400000; ++i)
    many += "1,";
  EXPECT_EQ(read(many + "]").substr(0, 11), "yaml-limit ");
  DiagnosticEngine engine;
  Limits small;
  small.bytes = 10;
  EXPECT_FALSE(parseText("a.yaml", "a: 1\nb: 2\nc: 3\n", engine, small));
  EXPECT_EQ(engine.all()[0].code, "yaml-limit");
}

TEST(Yaml, MergeBombIsBounded) {
  std::string bomb = "a0: &a0 {k0: 1";
  for (int i = 1; i < 3000; ++i)
    bomb += ", k" + std::to_string(i) + ": 1";
  bomb += "}\nb: {<<: [*a0";
  for (int i = 0; i < 60; ++i)
    bomb += ", *a0";
  EXPECT_EQ(read(bomb + "]}\n").substr(0, 11), "yaml-limit ");
}

TEST(Yaml, PositionsCountCharactersFromOne) {
  DiagnosticEngine engine;
  auto document = parseText(
      "a.yaml", "k\xc3\xa9y: 'v\xc3\xa4lue'  # c\nlist:\n  - one\n  - two\n",
      engine);
  ASSERT_TRUE(document);
  const Entry &first = document->root()->entries[0];
  EXPECT_EQ(first.key->range.begin.column, 1);
  EXPECT_EQ(first.key->range.end.column, 4);
  EXPECT_EQ(first.value->range.begin.column, 6);
  EXPECT_EQ(first.value->range.end.column, 13);
  EXPECT_EQ(first.value->style, Style::SingleQuoted);
  const Node *list = document->root()->find("list");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->items[1]->range.begin.line, 4);
  EXPECT_EQ(list->items[1]->range.begin.column, 5);
}

TEST(Json, ReadsWhatPythonReads) {
  const char *file = "a.json";
  EXPECT_EQ(read("{\"a\": [1, -2.5, 1e8, true, null, \"x\\u00e9\\n\"]}", file),
            "{'a': [1, -2.5, 100000000.0, True, None, 'x\xc3\xa9\\n']}");
  EXPECT_EQ(read("[NaN, -Infinity, 1E400]", file), "[nan, -inf, inf]");
  EXPECT_EQ(read("\"\\ud83d\\ude00\"", file), "\xf0\x9f\x98\x80");
  EXPECT_EQ(read("{\"a\": 1, \"a\": 2}", file), "{'a': 2}");
}

TEST(Json, ErrorsHavePlaces) {
  const char *file = "a.json";
  EXPECT_EQ(read("{\"a\": 1,\n \"b\": 01}", file), "yaml-syntax 2:8");
  EXPECT_EQ(read("{\"a\": 1,}", file), "yaml-syntax 1:9");
  EXPECT_EQ(read("{'a': 1}", file), "yaml-syntax 1:2");
  EXPECT_EQ(read("[1, 2", file), "yaml-syntax 1:6");
  EXPECT_EQ(read("\"open", file), "yaml-syntax 1:6");
  EXPECT_EQ(read("\"a\tb\"", file), "yaml-syntax 1:3");
  EXPECT_EQ(read("1 2", file), "yaml-syntax 1:3");
  EXPECT_EQ(read("", file), "yaml-syntax 1:1");
  EXPECT_EQ(read("\xef\xbb\xbf{}", file), "file-encoding 1:1");
  EXPECT_EQ(read(std::string(1000, '['), file), "yaml-limit 1:102");
}

TEST(Files, MissingFoldersAndDevices) {
  DiagnosticEngine engine;
  EXPECT_FALSE(parseFile("/no/such/file.yaml", engine));
  EXPECT_EQ(engine.all()[0].code, "file-not-found");
  DiagnosticEngine second;
  EXPECT_FALSE(parseFile("/", second));
  EXPECT_EQ(second.all()[0].code, "file-unreadable");
  DiagnosticEngine third;
  Limits small;
  small.bytes = 1 << 20;
  EXPECT_FALSE(parseFile("/dev/zero", third, small));
  EXPECT_EQ(third.all()[0].code, "yaml-limit");
}

TEST(PythonText, FloatsAsReprPrintsThem) {
  EXPECT_EQ(read("[1.0e-5, 0.0001, 1.0e+16, 123456789012345.0, -0.0]"),
            "[1e-05, 0.0001, 1e+16, 123456789012345.0, -0.0]");
  EXPECT_EQ(read("[\"it's\", 'say \"x\"']"), "[\"it's\", 'say \"x\"']");
}

} // namespace
