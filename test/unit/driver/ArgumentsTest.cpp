//===- ArgumentsTest.cpp - Tables of options, and the values behind them --===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/options/Arguments.h"

#include <gtest/gtest.h>

using namespace accel;

namespace {

int64_t bytesOf(const std::string &text) {
  int64_t bytes = -7;
  return parseBytes(text, bytes) ? bytes : -7;
}

TEST(Bytes, UnitsOfBothKinds) {
  EXPECT_EQ(bytesOf("1024"), 1024);
  EXPECT_EQ(bytesOf("3B"), 3);
  EXPECT_EQ(bytesOf("2K"), 2048);
  EXPECT_EQ(bytesOf("1.5MiB"), 1572864);
  EXPECT_EQ(bytesOf("70GiB"), int64_t(70) << 30);
  EXPECT_EQ(bytesOf("5GB"), 5'000'000'000);
  EXPECT_EQ(bytesOf("500MB"), 500'000'000);
  EXPECT_EQ(bytesOf("0.25KB"), 250);
}

TEST(Bytes, WhatIsNone) {
  for (const char *text : {"", "GiB", "0", "-1", "0.5", "1e300", "inf", "nan",
                           "9e18", "1 GiB", "1GiBs", "1gib", "+1"})
    EXPECT_EQ(bytesOf(text), -7) << text;
}

TEST(Integer, NothingElse) {
  int64_t value = 0;
  EXPECT_TRUE(parseInteger("-12", value));
  EXPECT_EQ(value, -12);
  for (const char *text : {"", "1.0", " 1", "1 ", "0x1", "9223372036854775808"})
    EXPECT_FALSE(parseInteger(text, value)) << text;
}

enum class Colour { Red, Blue };

/// A command with an option of each form.
class Table : public ::testing::Test {
protected:
  Table() : arguments("tool paint", "FILE", "Paints.", "The end.") {
    arguments.option("--size", size, countValue("N", 1, 100), "how large");
    arguments.option("--memory", memoryBytes, bytesValue("2GiB", true), "of it")
        .saidByModule();
    arguments.option("--colour", colour, colours(), "in which colour");
    arguments.list("--layer", layers, textValue("NAME"), "may be repeated");
    arguments.optionalValue("--fast", fast, Colour::Red, colours(), "faster");
    arguments.flag("--dry", dry, "no paint");
    arguments.action("--tiny", [this] { size = 1; }, "the least size");
    arguments.joined(
        "-W", "CODE",
        [this](const std::string &word) {
          warning = word;
          return word.empty() ? std::string("expected a code") : std::string();
        },
        "warnings");
  }
  static ValueKind<Colour> colours() {
    return choiceValue<Colour>({{"red", Colour::Red}, {"blue", Colour::Blue}});
  }
  /// Standard error of a parse that fails.
  std::string wrong(std::vector<std::string> words) {
    ::testing::internal::CaptureStderr();
    int exitCode = 0;
    EXPECT_FALSE(arguments.parse(words, exitCode));
    EXPECT_EQ(exitCode, exitUsage);
    std::string text = ::testing::internal::GetCapturedStderr();
    return text.substr(0, text.find('\n'));
  }
  bool parse(std::vector<std::string> words) {
    int exitCode = 77;
    return arguments.parse(words, exitCode) && exitCode == exitOk;
  }

  Arguments arguments;
  std::optional<int64_t> size, memoryBytes;
  Colour colour = Colour::Red;
  std::vector<std::string> layers;
  std::optional<Colour> fast;
  bool dry = false;
  std::string warning;
};

TEST_F(Table, ValuesAreTyped) {
  ASSERT_TRUE(
      parse({"--size", "12", "a.yaml", "--memory=3GB", "--colour", "blue",
             "--layer", "x", "--layer=y", "--fast", "--dry", "-Wcode"}));
  EXPECT_EQ(size, 12);
  EXPECT_EQ(memoryBytes, 3'000'000'000);
  EXPECT_EQ(colour, Colour::Blue);
  EXPECT_EQ(layers, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(fast, Colour::Red);
  EXPECT_TRUE(dry);
  EXPECT_EQ(warning, "code");
  EXPECT_EQ(arguments.positional, std::vector<std::string>{"a.yaml"});
}

TEST_F(Table, WhatIsNotGivenIsUnset) {
  ASSERT_TRUE(parse({"a.yaml"}));
  EXPECT_FALSE(size);
  EXPECT_FALSE(memoryBytes);
  EXPECT_FALSE(fast);
  EXPECT_FALSE(arguments.given("--size"));
}

TEST_F(Table, AnOptionalValueNeedsItsEqualsSign) {
  ASSERT_TRUE(parse({"--fast", "blue"}));
  EXPECT_EQ(fast, Colour::Red);
  EXPECT_EQ(arguments.positional, std::vector<std::string>{"blue"});
  ASSERT_TRUE(parse({"--fast=blue"}));
  EXPECT_EQ(fast, Colour::Blue);
}

TEST_F(Table, TheSecondOfTwoCounts) {
  ASSERT_TRUE(parse({"--size", "2", "--tiny"}));
  EXPECT_EQ(size, 1);
  ASSERT_TRUE(parse({"--tiny", "--size", "2"}));
  EXPECT_EQ(size, 2);
}

TEST_F(Table, SomeAreGivenOnce) {
  std::string output;
  arguments.option("-o", output, textValue("FILE"), "where").once();
  EXPECT_EQ(wrong({"-o", "a", "-o=b"}),
            "tool paint: error: '-o' is given twice");
  ASSERT_TRUE(parse({"-o", "a", "--size", "1", "--size", "2"}));
  EXPECT_EQ(output, "a");
  // Behind what a caller has set.
  EXPECT_EQ(arguments.set("-o", "b"), "");
  ASSERT_TRUE(parse({"-o", "c"}));
  EXPECT_EQ(output, "c");
}

TEST_F(Table, ZeroBytesWhereTheyMeanSomething) {
  ASSERT_TRUE(parse({"--memory", "0"}));
  EXPECT_EQ(memoryBytes, 0);
}

TEST_F(Table, BehindDashesAllIsPositional) {
  ASSERT_TRUE(parse({"--size", "2", "--", "--dry", "-x"}));
  EXPECT_EQ(arguments.positional, (std::vector<std::string>{"--dry", "-x"}));
  EXPECT_FALSE(dry);
}

TEST_F(Table, ARestOfItsOwn) {
  std::vector<std::string> command;
  arguments.rest(command);
  ASSERT_TRUE(parse({"a.yaml", "--", "run", "--dry"}));
  EXPECT_EQ(arguments.positional, std::vector<std::string>{"a.yaml"});
  EXPECT_EQ(command, (std::vector<std::string>{"run", "--dry"}));
}

TEST_F(Table, ErrorsSayWhatWasExpected) {
  EXPECT_EQ(wrong({"--sise", "2"}),
            "tool paint: error: unknown option '--sise'; did you mean "
            "'--size'?");
  EXPECT_EQ(wrong({"--size", "0"}),
            "tool paint: error: '--size 0': expected a positive integer");
  EXPECT_EQ(wrong({"--size", "101"}),
            "tool paint: error: '--size 101': expected at most 100");
  EXPECT_EQ(wrong({"--memory", "much"}),
            "tool paint: error: '--memory much': expected bytes such as 2GiB, "
            "or 0");
  EXPECT_EQ(wrong({"--colour=blu"}),
            "tool paint: error: '--colour blu': expected red or blue; did you "
            "mean 'blue'?");
  EXPECT_EQ(wrong({"--fast=green"}),
            "tool paint: error: '--fast=green': expected red or blue");
  EXPECT_EQ(wrong({"--dry=yes"}), "tool paint: error: '--dry' takes no value");
  EXPECT_EQ(wrong({"--size"}), "tool paint: error: '--size' needs a value: N");
  EXPECT_EQ(wrong({"--layer", ""}),
            "tool paint: error: '--layer ': expected NAME");
  EXPECT_EQ(wrong({"-W"}), "tool paint: error: '-W': expected a code");
}

TEST_F(Table, AWrongValueChangesNothing) {
  ASSERT_TRUE(parse({"--size", "7"}));
  wrong({"--size", "x"});
  EXPECT_EQ(size, 7);
}

TEST_F(Table, HowManyPositionalsThereAre) {
  std::string file;
  int exitCode = 0;
  ASSERT_TRUE(parse({"a", "b"}));
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(arguments.one("FILE", file, exitCode));
  EXPECT_EQ(exitCode, exitUsage);
  EXPECT_TRUE(::testing::internal::GetCapturedStderr().starts_with(
      "tool paint: error: expected one FILE, got 2\nusage: tool paint FILE "
      "[options]; see tool paint --help\n"));
}

TEST_F(Table, OptionsByNameAreAsOnTheCommandLine) {
  EXPECT_EQ(arguments.set("--size", "5"), "");
  EXPECT_EQ(arguments.set("--dry", ""), "");
  EXPECT_EQ(arguments.set("--size", "none"), "expected a positive integer");
  EXPECT_EQ(arguments.set("--sise", "1"),
            "unknown option '--sise'; did you mean '--size'?");
  EXPECT_EQ(size, 5);
  EXPECT_TRUE(dry);
  EXPECT_TRUE(arguments.given("--size"));
}

TEST_F(Table, TheHelpIsTheTable) {
  arguments.section("more");
  arguments.flag("--a-name-that-is-longer-than-its-column", dry,
                 "help that is longer than what is left of a line of eighty "
                 "columns is wrapped");
  const std::string help = arguments.help();
  EXPECT_TRUE(help.starts_with("usage: tool paint FILE [options]\n\nPaints.\n"))
      << help;
  EXPECT_NE(help.find("  --memory BYTES                     of it\n"),
            std::string::npos)
      << help;
  EXPECT_NE(help.find("  --fast[=red|blue] "), std::string::npos) << help;
  EXPECT_NE(help.find("\nmore:\n  --a-name-that-is-longer-than-its-column\n"
                      "                                     help that is"),
            std::string::npos)
      << help;
  EXPECT_TRUE(help.ends_with("\nThe end.\n")) << help;
  size_t longest = 0;
  for (size_t begin = 0; begin < help.size();) {
    const size_t end = help.find('\n', begin);
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  EXPECT_LE(longest, 80u);
}

} // namespace
