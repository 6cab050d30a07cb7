//===- RunTableTest.cpp - Tables of measured runs -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/Validate.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::validate;

namespace {

const std::string header = "id,model,gpus,gpu,framework,seq,micro_batch,source";

std::vector<RunRow> rowsOf(const std::string &text, int warnings = 0) {
  DiagnosticEngine engine;
  auto rows = parseRuns("runs.csv", text, engine);
  EXPECT_TRUE(rows) << renderText(engine);
  EXPECT_EQ(int(engine.all().size()), warnings) << renderText(engine);
  return rows.value_or(std::vector<RunRow>());
}

TEST(RunTable, QuotesCommasAndLineEnds) {
  auto rows = rowsOf("\xEF\xBB\xBF" + header +
                     "\r\na1,m,8,H100,torchtitan,4096,2,\"one, \"\"two\"\"\n"
                     "three\"\r\n\na2, m ,16,H100,x,,,\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].source, "one, \"two\"\nthree");
  EXPECT_EQ(rows[0].line, 2);
  EXPECT_EQ(rows[0].sequence, 4096);
  EXPECT_EQ(rows[1].line, 5);
  EXPECT_EQ(rows[1].model, "m") << "blanks around a field do not count";
  EXPECT_FALSE(rows[1].sequence || rows[1].microBatch);
  EXPECT_TRUE(rows[1].problem.empty());
}

TEST(RunTable, BadFieldsAreOfTheirRow) {
  auto rows = rowsOf(header + "\nr1,m,-8,H100,x,4096,2,s\n"
                              "r2,m,8,H100,x,40.5,2,s\n"
                              "r3,m,8,H100,x,1e3,2\n"
                              "r1,m,8,H100,x,1e3,2,s\n",
                     4);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].problem, "'gpus' must be a positive integer, not '-8'");
  EXPECT_NE(rows[1].problem.find("'seq'"), std::string::npos);
  EXPECT_EQ(rows[2].problem, "the line has 7 fields, the header 8");
  EXPECT_EQ(rows[3].problem, "") << "its id is warned of";
  EXPECT_EQ(rows[3].sequence, 1000);
  EXPECT_EQ(interpret(rows[0]).skipped, rows[0].problem);
}

struct BadTable {
  const char *name, *text, *code, *message;
  int line, column;
};
const BadTable badTables[] = {
    {"Empty", "", "bad-csv", "no header", 0, 0},
    {"OpenQuote", "id,model\n1,\"open\n", "bad-csv", "closing quote", 2, 0},
    {"QuoteInside", "id,mo\"del\n", "bad-csv", "a quote inside", 1, 6},
    {"AfterQuote", "id,model\n\"a\"b,c\n", "bad-csv", "expected a comma", 2, 4},
    {"MissingColumn", "id,model,gpus,gpu,framework,seq\n", "missing-column",
     "'micro_batch'", 1, 1},
    {"TwiceTheSame", "id,model,gpus,gpu,framework,seq,micro_batch,seq\n",
     "duplicate-column", "'seq' is there twice", 1, 45},
};
class BadTables : public ::testing::TestWithParam<BadTable> {};
TEST_P(BadTables, AreRefusedWithTheirPlace) {
  const BadTable &bad = GetParam();
  DiagnosticEngine engine;
  EXPECT_FALSE(parseRuns("runs.csv", bad.text, engine));
  ASSERT_EQ(engine.all().size(), 1u) << renderText(engine);
  const Diagnostic &d = engine.all()[0];
  EXPECT_EQ(d.code, bad.code);
  EXPECT_NE(d.message.find(bad.message), std::string::npos) << d.message;
  EXPECT_TRUE(!bad.line || d.line == bad.line) << d.line;
  EXPECT_TRUE(!bad.column || d.column == bad.column) << d.column;
}
INSTANTIATE_TEST_SUITE_P(All, BadTables, ::testing::ValuesIn(badTables),
                         [](const auto &info) { return info.param.name; });

/// Bytes of a good table are changed at random: nothing may crash, and what is
/// read must be interpreted or refused.
TEST(RunTable, DamagedTablesAreRefusedOrRead) {
  const std::string good =
      header + ",sharding,precision,ac,global_batch\n"
               "a1,llama3.1-8b,8,H100,torchtitan,8192,2,\"x, \"\"y\"\"\","
               "FSDP2,bf16,selective-2,16\n"
               "a2,mpt-7b,64,A100-40GB,llm-foundry,2048,8,z,HSDP,bf16/PURE,"
               "full,512\n";
  const std::string letters = ",\"\n\r\t-=.0123456789eE()fpsx\xff\x00";
  uint64_t random = 42;
  auto next = [&](size_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return size_t(random >> 33) % below;
  };
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (size_t change = 0, count = 1 + next(4); change < count; ++change) {
      const size_t at = next(text.size());
      if (next(3) == 0)
        text.erase(at, 1 + next(8));
      else
        text.insert(at, 1, letters[next(letters.size())]);
      if (text.empty())
        text = "x";
    }
    DiagnosticEngine engine;
    const auto rows = parseRuns("runs.csv", text, engine);
    EXPECT_EQ(!rows, engine.hasErrors()) << text;
    refused += !rows;
    for (const RunRow &row : rows.value_or(std::vector<RunRow>()))
      EXPECT_FALSE(interpret(row).family.empty());
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 2900);
}

} // namespace
