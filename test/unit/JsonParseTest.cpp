//===- JsonParseTest.cpp - JSON within limits, and its places -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/JsonParse.h"
#include "runtime/plan/JsonReader.h"

#include <gtest/gtest.h>

using namespace accel::plan;
using nlohmann::json;
using Kind = JsonSyntaxError::Kind;

namespace {

JsonSyntaxError errorOf(const std::string &text, const JsonLimits &limits) {
  try {
    parseJson(text, limits);
  } catch (const JsonSyntaxError &error) {
    return error;
  }
  ADD_FAILURE() << text << " was read";
  return {};
}

TEST(JsonParse, ReadsWhatNlohmannReads) {
  const std::string text =
      R"({"a": [1, -2, 2.5, true, null], "b": {"c": "\u00e9"}, "a": [3]})";
  EXPECT_EQ(parseJson(text), json::parse(text));
  EXPECT_EQ(parseJson("7"), json(7));
}

TEST(JsonParse, LeavesOutMembers) {
  const std::string text =
      R"({"x": {"deep": [{"x": 1}]}, "a": [{"x": [], "y": 2}], "z": "x"})";
  EXPECT_EQ(parseJson(text, {.without = {"x"}}),
            json::parse(R"({"a": [{"y": 2}], "z": "x"})"));
}

TEST(JsonParse, SaysWhatIsWrongAndWhere) {
  for (const auto &[text, kind, position] :
       {std::tuple("", Kind::EndsEarly, "line 1, column 1"),
        {"[1,\n 2", Kind::EndsEarly, "line 2, column 3"},
        {"{\n \"a\" 1}", Kind::Invalid, "line 2, column 6"},
        {"[1]]", Kind::Invalid, "line 1, column 4"},
        {"[\"[[[\", [[[1]]]]", Kind::TooDeep, "line 1, column 11"}}) {
    SCOPED_TRACE(text);
    const JsonSyntaxError error = errorOf(text, {.depth = 3});
    EXPECT_EQ(error.kind, kind);
    EXPECT_EQ(error.position(text), position);
    EXPECT_FALSE(error.message.empty());
  }
  EXPECT_EQ(errorOf("[1e999]", {}).kind, Kind::Number);
  EXPECT_EQ(errorOf("{\n \"a\" 1}", {}).message,
            "unexpected number literal; expected ':'");
}

TEST(JsonParse, LimitsHold) {
  EXPECT_EQ(parseJson("[1, 2, 3]", {.values = 4}).size(), 3u);
  EXPECT_EQ(errorOf("[1, 2, 3, 4]", {.values = 4}).kind, Kind::TooMany);
  // What is left out nests too.
  EXPECT_EQ(errorOf("{\"x\": [[[]]]}", {.depth = 3, .without = {"x"}}).kind,
            Kind::TooDeep);
}

TEST(JsonNode, NamesThePlace) {
  const json document = {{"a", {{{"b", "text"}}}}, {"odd\nname", 1}};
  const JsonNode root(document), inArchive(document, "data/a.json");
  const auto messageOf = [](auto read) {
    try {
      read();
    } catch (const JsonError &error) {
      return error.message;
    }
    return std::string();
  };
  EXPECT_EQ(messageOf([&] { root["a"].at(0)["b"].integer(); }),
            "a[0].b: expected an integer, not \"text\"");
  EXPECT_EQ(messageOf([&] { inArchive["a"].at(0)["c"]; }),
            "data/a.json: a[0]: 'c' is missing");
  EXPECT_EQ(messageOf([&] { inArchive["c"]; }), "data/a.json: 'c' is missing");
  EXPECT_EQ(messageOf([&] { root["odd\nname"].string(); }),
            "\"odd\\nname\": expected a string, not 1");
}

} // namespace
