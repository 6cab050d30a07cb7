//===- ConvertRewriterTest.cpp - Changing a YAML file in place ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Convert/Rewriter.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::convert;

namespace {

const std::string block = "# top\n"
                          "a: 1 # one\n"
                          "s:\n"
                          "  # about x\n"
                          "  x: yes  # '#' no comment 'x'\n"
                          "\n"
                          "  y: 'it''s # not'\n"
                          "b: two\n";

/// The text after an edit, or why it was refused.
template <typename F>
std::string edited(const std::string &text, F edit,
                   const std::string &file = "a.yaml") {
  Rewriter rewriter(file, text);
  return edit(rewriter) ? rewriter.text() : "refused: " + rewriter.why();
}
std::string without(const std::string &text, const Path &path,
                    const std::string &file = "a.yaml") {
  return edited(text, [&](Rewriter &r) { return r.remove(path); }, file);
}
std::string with(const std::string &text, const Path &parent,
                 const std::string &key, const Value &value,
                 const std::string &file = "a.yaml") {
  return edited(
      text, [&](Rewriter &r) { return r.insert(parent, key, value); }, file);
}

TEST(Rewriter, SetsOneValue) {
  EXPECT_EQ(edited(block,
                   [](Rewriter &r) {
                     return r.set({"s", "x"}, Value::boolean(false)) &&
                            r.set({"b"}, Value::string("no"));
                   }),
            "# top\n"
            "a: 1 # one\n"
            "s:\n"
            "  # about x\n"
            "  x: false  # '#' no comment 'x'\n"
            "\n"
            "  y: 'it''s # not'\n"
            "b: 'no'\n");
  EXPECT_EQ(edited("a:\nb: 1\n",
                   [](Rewriter &r) { return r.set({"a"}, Value::integer(3)); }),
            "a: 3\nb: 1\n");
  EXPECT_EQ(edited("a: # none\nb: 1\n",
                   [](Rewriter &r) { return r.set({"a"}, Value::integer(3)); }),
            "a: 3 # none\nb: 1\n");
}

TEST(Rewriter, SetsLists) {
  auto set = [](Rewriter &r) {
    return r.set({"s", "list"}, Value::string("A,B"));
  };
  EXPECT_EQ(edited("s: {list: [A, B], x: 1}\n", set),
            "s: {list: 'A,B', x: 1}\n");
  EXPECT_EQ(edited("s:\n  list:\n  - A\n  - B\n  x: 1 # c\n", set),
            "s:\n  list: 'A,B'\n  x: 1 # c\n");
  EXPECT_EQ(edited("s:\n  list:\n  - A # first\n  - B\n  x: 1\n", set),
            "refused: the text around it has a form that cannot be edited in "
            "place");
}

TEST(Rewriter, RemovesAndKeepsComments) {
  EXPECT_EQ(without(block, {"s", "x"}), "# top\n"
                                        "a: 1 # one\n"
                                        "s:\n"
                                        "  # about x\n"
                                        "  # '#' no comment 'x'\n"
                                        "\n"
                                        "  y: 'it''s # not'\n"
                                        "b: two\n");
  EXPECT_EQ(without(block, {"s"}), "# top\n"
                                   "a: 1 # one\n"
                                   "# about x\n"
                                   "# '#' no comment 'x'\n"
                                   "b: two\n");
  EXPECT_EQ(without("a: 1\nb: 2", {"b"}), "a: 1\n");
  EXPECT_EQ(without("a: 1\r\nb: 2\r\nc: 3\r\n", {"b"}), "a: 1\r\nc: 3\r\n");
  EXPECT_EQ(without("a: |\n  text # not\n\nb: 2\n", {"a"}), "\nb: 2\n");
}

TEST(Rewriter, RemovesEveryRepetition) {
  EXPECT_EQ(without("a: 1\nb: 2\na: 3 # last\nc: 4\n", {"a"}),
            "b: 2\n# last\nc: 4\n");
}

TEST(Rewriter, RemovesFromFlow) {
  EXPECT_EQ(without("s: {x: 1, y: 2, z: 3}\n", {"s", "x"}),
            "s: {y: 2, z: 3}\n");
  EXPECT_EQ(without("s: {x: 1, y: 2, z: 3}\n", {"s", "z"}),
            "s: {x: 1, y: 2}\n");
  EXPECT_EQ(without("s: {x: 1}\nt: 1\n", {"s", "x"}), "s: {}\nt: 1\n");
  EXPECT_EQ(without("s: {x: 1, # one\n  y: 2}\n", {"s", "y"}),
            "refused: the text around it has a form that cannot be edited in "
            "place");
  const std::string json = "{\n  \"a\": 1,\n  \"s\": {\n    \"x\": \"}\",\n"
                           "    \"y\": 2\n  }\n}\n";
  EXPECT_EQ(without(json, {"s", "y"}, "a.json"),
            "{\n  \"a\": 1,\n  \"s\": {\n    \"x\": \"}\"\n  }\n}\n");
  EXPECT_EQ(without(json, {"a"}, "a.json"),
            "{\n  \"s\": {\n    \"x\": \"}\",\n    \"y\": 2\n  }\n}\n");
}

TEST(Rewriter, Inserts) {
  EXPECT_EQ(with("s:\n    x: 1\n# end\n", {"s"}, "k", Value::string("v")),
            "s:\n    x: 1\n    k: v\n# end\n");
  EXPECT_EQ(with("s:\n  x: 1", {}, "k", Value::string("NO")),
            "s:\n  x: 1\nk: 'NO'");
  EXPECT_EQ(with("s: # why\nb: 1\n", {"s"}, "k", Value::integer(2)),
            "s: # why\n  k: 2\nb: 1\n");
  EXPECT_EQ(with("s: null\nb: 1\n", {"s"}, "k", Value::integer(2)),
            "s: {k: 2}\nb: 1\n");
  EXPECT_EQ(with("s: {}\n", {"s"}, "k", Value::string("a, b")),
            "s: {k: 'a, b'}\n");
  EXPECT_EQ(with("a: 1\r\nb: 2\r\n", {}, "k", Value::integer(2)),
            "a: 1\r\nb: 2\r\nk: 2\r\n");
  EXPECT_EQ(with("{\n  \"a\": 1\n}\n", {}, "k", Value::string("v\""), "a.json"),
            "{\n  \"a\": 1,\n  \"k\": \"v\\\"\"\n}\n");
}

TEST(Rewriter, InsertsSections) {
  auto insert = [](Rewriter &r) {
    return r.insertSection(
        "p", {{"x", Value::integer(2)}, {"y", Value::string("z")}}, "s");
  };
  EXPECT_EQ(edited("s:\n  x: 1\nb: 1\n", insert),
            "s:\n  x: 1\np:\n  x: 2\n  y: z\nb: 1\n");
  EXPECT_EQ(edited("{\n  \"s\": {},\n  \"b\": 1\n}", insert, "a.json"),
            "{\n  \"s\": {},\n  \"p\": {\n    \"x\": 2,\n    \"y\": \"z\"\n"
            "  },\n  \"b\": 1\n}");
  EXPECT_EQ(edited("{s: 1, b: 2}", insert), "{s: 1, p: {x: 2, y: z}, b: 2}");
}

TEST(Rewriter, RefusesWhatItCannotEdit) {
  EXPECT_EQ(without("a: &x {k: 1}\nb: *x\n", {"b", "k"}),
            "refused: the text around it has a form that cannot be edited in "
            "place");
  EXPECT_EQ(with("a: &x {k: 1}\nb: *x\n", {"b"}, "c", Value::integer(1)),
            "refused: the section stands elsewhere, behind an alias");
  EXPECT_EQ(without("a: {<<: {k: 1}, c: 2}\n", {"a", "k"}),
            "refused: it comes from a merge ('<<')");
  EXPECT_EQ(without("? a\n: 1\nb: 2\n", {"a"}),
            "refused: it does not start a line");
  EXPECT_EQ(without("a: &x 1\nb: *x\n", {"a"}),
            "refused: the text around it has a form that cannot be edited in "
            "place");
  EXPECT_EQ(without("a: 1\n", {"b"}), "refused: there is no such key");
}

TEST(Rewriter, WritesOverMergedValuesAndAliases) {
  EXPECT_EQ(
      edited("a: &x {k: 1}\nb:\n  <<: *x\n  c: 2\n",
             [](Rewriter &r) { return r.set({"b", "k"}, Value::integer(5)); }),
      "a: &x {k: 1}\nb:\n  <<: *x\n  c: 2\n  k: 5\n");
  EXPECT_EQ(edited("a: &x 1\nb: *x # c\n",
                   [](Rewriter &r) { return r.set({"b"}, Value::integer(5)); }),
            "a: &x 1\nb: 5 # c\n");
}

TEST(Rewriter, CountsColumnsInCharacters) {
  EXPECT_EQ(edited("\xef\xbb\xbf{\"\xc3\xa9\": \xe4\xb8\xad, a: 1}\n",
                   [](Rewriter &r) {
                     return r.set({"a"}, Value::integer(2)) &&
                            r.rename({"\xc3\xa9"}, "e");
                   }),
            "\xef\xbb\xbf{\"e\": \xe4\xb8\xad, a: 2}\n");
}

} // namespace
