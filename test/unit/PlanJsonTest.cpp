//===- PlanJsonTest.cpp - plan.json, well-formed and otherwise ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanJson.h"
#include "runtime/plan/Sha256.h"
#include "runtime/plan/Timeline.h"
#include "test/unit/PlanFixture.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <unistd.h>

using namespace accel::plan;

namespace {

/// The text with a hash that fits, so that what lies behind it is reached.
std::string rehashed(std::string text) {
  size_t at = text.find("\n\"hash\"");
  if (at == std::string::npos)
    return text;
  size_t end = text.find('\n', at + 1);
  if (end == std::string::npos)
    return text;
  Sha256 hash;
  hash.update(std::string_view(text).substr(0, at));
  hash.update(std::string_view(text).substr(end));
  return text.replace(at, end - at,
                      "\n\"hash\": \"sha256:" + hash.hexDigest() + "\",");
}

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string errorOf(const std::string &text) {
  Plan plan;
  std::string error;
  EXPECT_FALSE(fromJson(text, plan, error));
  EXPECT_FALSE(error.empty());
  return error;
}

void expectRoundTrip(const Plan &plan) {
  std::string text = toJson(plan);
  Plan read;
  std::string error;
  ASSERT_TRUE(fromJson(text, read, error)) << error;
  EXPECT_TRUE(read == plan);
  EXPECT_EQ(toJson(read), text);
}

TEST(PlanJson, RoundTrips) {
  expectRoundTrip(test::makePlan());
  test::Size size;
  size.shardRanks = 3;
  size.replicas = 2;
  size.accumulation = 5;
  size.gather = DType::BF16;
  size.reduce = DType::BF16;
  size.allToAll = false;
  expectRoundTrip(test::makePlan(size));
}

TEST(PlanJson, EveryFieldRoundTrips) {
  Plan plan = test::makePlan();
  Job &job = plan.job;
  job.modelName = "na\"me\\\n\x01\xc3\xa9";
  job.weightFiles = {"a.safetensors", "b.safetensors"};
  job.seed = 123456789012345;
  job.precision = "fp16";
  job.lossScaling = true;
  job.microBatch = 3;
  job.optimizer = {"adamw",
                   {0.1 + 0.2, 1.0 / 3, 5e-324},
                   0.3,
                   {{1e-300, 0.0}, {1.7976931348623157e308, 1.0}}};
  job.schedule = {1000, 10, "cosine", 1e-7};
  job.data.kind = "arrays";
  job.data.path = "x";
  job.data.arrays = {{"input_ids", "a.npy"}, {"labels", "b.npy"}};
  job.data.files = {{"a.bin", 0.25, "a.npy"}, {"b.bin", 0, ""}};
  job.data.dtype = "int64";
  job.data.shuffle = true;
  job.data.seed = 7;
  job.data.endOfDocument = 2;
  job.data.epochEnd = "drop";
  job.evalData.kind = "tokens";
  job.evalData.path = "val.bin";
  job.sampling = {3, 8, 16};
  job.evalEvery = 5;
  job.evalBatches = 2;
  job.checkpoint = {"out", 20, 3, "full"};
  plan.buffers = {{"model.rotary_emb.inv_freq", {32}, DType::F32, false}};
  plan.parameters[0].aliases = {"lm_head.weight_tied"};
  plan.parameters[0].stored = {"table.weight"};
  plan.parameters[3].group = 1;
  plan.units[1].groupRanges = {{1, 0, 4096}, {0, 4096, plan.units[1].padded}};
  plan.predicted.hasTime = true;
  plan.predicted.stepSeconds = 0.1;
  plan.predicted.tokensPerSecond = 1e6;
  plan.predicted.reservedBytes = 77;
  Instruction &odd = plan.functions[0].instructions[0];
  odd.kind = Instruction::Kind::Opaque;
  using Kind = Arg::Kind;
  auto add = [&](Kind kind, auto set) {
    Arg arg;
    arg.kind = kind;
    set(arg);
    odd.args.push_back(arg);
  };
  add(Kind::None, [](Arg &) {});
  add(Kind::Int,
      [](Arg &a) { a.intValue = std::numeric_limits<int64_t>::min(); });
  add(Kind::Float, [](Arg &a) { a.floatValue = 1.0; });
  add(Kind::Float, [](Arg &a) { a.floatValue = 1e22; });
  add(Kind::Float,
      [](Arg &a) { a.floatValue = -std::numeric_limits<double>::infinity(); });
  add(Kind::Bool, [](Arg &a) { a.intValue = 1; });
  add(Kind::Ints, [](Arg &a) { a.ints = {1, -1}; });
  add(Kind::Ints, [](Arg &) {});
  add(Kind::Bools, [](Arg &a) { a.ints = {1, 0}; });
  add(Kind::Bools, [](Arg &) {});
  add(Kind::Tensors, [](Arg &a) { a.ints = {0, -1, 1}; });
  add(Kind::Tensors, [](Arg &) {});
  add(Kind::Tensors, [](Arg &a) { a.ints = {-1, -1}; });
  add(Kind::Type, [](Arg &a) { a.dtype = DType::BF16; });
  add(Kind::Wrapped, [](Arg &a) { a.floatValue = 2.0; });
  expectRoundTrip(plan);
}

TEST(PlanJson, NumbersThatAreNone) {
  Plan plan = test::makePlan(), read;
  Arg arg;
  arg.kind = Arg::Kind::Float;
  arg.floatValue = std::numeric_limits<double>::quiet_NaN();
  plan.functions[0].instructions[0].args.push_back(arg);
  std::string error;
  ASSERT_TRUE(fromJson(toJson(plan), read, error)) << error;
  EXPECT_TRUE(
      std::isnan(read.functions[0].instructions[0].args.back().floatValue));
  EXPECT_EQ(toJson(read), toJson(plan));
}

TEST(PlanJson, SameInputSameBytes) {
  EXPECT_EQ(toJson(test::makePlan()), toJson(test::makePlan()));
}

TEST(PlanJson, BytesThatAreNotUtf8AreReplaced) {
  Plan plan = test::makePlan();
  plan.job.modelPath = "a\xff\xc0\x80z";
  Plan read;
  std::string error;
  ASSERT_TRUE(fromJson(toJson(plan), read, error)) << error;
  EXPECT_EQ(read.job.modelPath, "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
}

TEST(PlanJson, LargePlanIsSmall) {
  Plan plan = test::makePlan(test::llama405());
  std::string text = toJson(plan);
  EXPECT_LT(text.size(), 2000000u);
  expectRoundTrip(plan);
}

TEST(PlanJson, OneItemALine) {
  std::string text = toJson(test::makePlan());
  size_t lines = 0;
  for (const char *start : {"\n  {\"fqn\":", "\n      {\"kind\":\"call\""})
    for (size_t at = 0; (at = text.find(start, at)) != std::string::npos; ++at)
      ++lines;
  EXPECT_EQ(lines, 21u + 7u + 4u);
}

TEST(PlanJson, EditsByHandAreRefused) {
  std::string text = toJson(test::makePlan());
  std::string error = errorOf(replaced(text, "\"lr\":3", "\"lr\":4"));
  EXPECT_NE(error.find("edited by hand"), std::string::npos) << error;
  size_t line = text.find("\n\"hash\"");
  std::string without = text;
  without.erase(line, text.find('\n', line + 1) - line);
  EXPECT_NE(errorOf(without).find("hash"), std::string::npos);
}

TEST(PlanJson, OtherVersionsAreRefused) {
  std::string text =
      replaced(toJson(test::makePlan()), "\"format\": 2", "\"format\": 1");
  EXPECT_NE(errorOf(text).find("format: version 1 is not readable here"),
            std::string::npos);
}

struct Edit {
  const char *name, *from, *to, *expected;
};

const Edit edits[] = {
    {"UnknownKey",
     "\"device\":", "\"devise\": 1,\n\"device\":", "unknown key 'devise'"},
    {"MissingKey", "\"target\"", "\"tarket\"", "'target' is missing"},
    {"InstructionKind", "{\"kind\":\"aten\"", "{\"kind\":\"kernel\"",
     "functions[0].instructions[0].kind: unknown kind of instruction "
     "'kernel'"},
    {"ProgramInstructionKind", "{\"kind\":\"alloc\"", "{\"kind\":\"malloc\"",
     "programs[0].instructions[0].kind: unknown kind of instruction 'malloc'"},
    {"NegativeSize", "\"shape\":[256,64]", "\"shape\":[-256,64]",
     "parameters[0].shape[0]: -256 is less than 0"},
    {"HugeSize", "\"shape\":[256,64]", "\"shape\":[99999999999999999999,64]",
     "parameters[0].shape[0]: expected an integer"},
    {"FractionalSize", "\"shape\":[256,64]", "\"shape\":[256.5,64]",
     "parameters[0].shape[0]: expected an integer, not 256.5"},
    {"NotANumber", "\"lr\":3e-04", "\"lr\":\"nan\"",
     "job.optimizer.groups[0].lr: expected a number, not \"nan\""},
    {"NegativeRate", "\"lr\":3e-04", "\"lr\":-1.0",
     "job.optimizer.groups[0].lr: -1.0 is less than 0"},
    {"Infinite", "\"lr\":3e-04", "\"lr\":1e999", ": number out of range"},
    {"DType", "\"dtype\":\"f32\"", "\"dtype\":\"f33\"", "unknown dtype 'f33'"},
    {"UnknownUnit", "\"unit\":\"model.layers.0\"",
     "\"unit\":\"model.layers.x\"", "there is no unit 'model.layers.x'"},
    {"Placement", "\"dp_shard\":\"shard\"", "\"dp_shard\":\"replicate\"",
     "does not fit its unit"},
    {"Ranks", "\"ranks\": [0, 2]", "\"ranks\": [0, 3]",
     "rank_classes[0].ranks: expected one class of all 2 ranks"},
    {"Slot", "\"args\":[\"%1\"", "\"args\":[\"%99\"", "there is no slot 99"},
    {"SlotName", "\"args\":[\"%1\"", "\"args\":[\"%1x\"",
     "expected a slot such as"},
    {"Optimizer", "\"adamw\"", "\"sgdm\"", "unknown optimizer 'sgdm'"},
    {"OtherOptimizer", "\"adamw\"", "\"sgd\"", "'momentum' is missing"},
    {"MeshSize", "{\"name\":\"dp_shard\",\"size\":2}",
     "{\"name\":\"dp_shard\",\"size\":0}",
     "mesh.axes[1].size: 0 is less than 1"},
    {"Consumed", "\"consumed\":[0", "\"consumed\":[77", "is more than"},
};

class EditedPlan : public ::testing::TestWithParam<Edit> {};

TEST_P(EditedPlan, IsRefusedWithItsPlace) {
  std::string text = rehashed(
      replaced(toJson(test::makePlan()), GetParam().from, GetParam().to));
  std::string error = errorOf(text);
  EXPECT_NE(error.find(GetParam().expected), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(All, EditedPlan, ::testing::ValuesIn(edits),
                         [](const auto &info) { return info.param.name; });

TEST(PlanJson, NotAPlanAtAll) {
  EXPECT_EQ(errorOf(""), "the file is empty");
  EXPECT_NE(errorOf("[]").find("expected a JSON object"), std::string::npos);
  EXPECT_NE(errorOf("{}").find("'format' is missing"), std::string::npos);
  EXPECT_NE(errorOf("{\n \"a\" 1}").find("line 2, column 6"),
            std::string::npos);
  EXPECT_NE(errorOf(std::string(200000, '[')).find("nest deeper"),
            std::string::npos);
  EXPECT_NE(errorOf(std::string("\0\xff\xfe", 3)).find("JSON"),
            std::string::npos);
}

TEST(PlanJson, TruncatedFilesAreRefused) {
  std::string text = toJson(test::makePlan());
  for (size_t n = 0; n + 2 < text.size(); n += 97)
    EXPECT_NE(errorOf(text.substr(0, n)), "");
}

// Thousands of damaged plans: each is read or refused, none crashes. Half get
// a hash that fits, so that the damage reaches the verifier and the timeline.
TEST(PlanJson, DamagedPlansNeverCrash) {
  test::Size size;
  size.layers = 1;
  const std::string text = toJson(test::makePlan(size));
  std::mt19937 random(20240607);
  const std::string numbers[] = {"-1",    "0",          "9223372036854775807",
                                 "1e308", "4294967296", "true",
                                 "null",  "[]",         "{}"};
  auto pick = [&](size_t n) { return size_t(random() % n); };
  std::vector<size_t> digits;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] >= '0' && text[i] <= '9' &&
        (text[i - 1] < '0' || text[i - 1] > '9'))
      digits.push_back(i);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string damaged = text;
    for (size_t n = 1 + pick(3); n > 0; --n) {
      size_t at = pick(damaged.size());
      switch (pick(6)) {
      case 0:
        damaged[at] = char(pick(256));
        break;
      case 1:
        damaged.erase(at, 1 + pick(40));
        break;
      case 2:
        damaged.insert(at, damaged.substr(pick(damaged.size()), pick(60)));
        break;
      default: { // a number for another one
        at = digits[pick(digits.size())];
        if (at >= damaged.size())
          break;
        size_t end = damaged.find_first_not_of("0123456789", at);
        std::string number =
            pick(2) ? numbers[pick(std::size(numbers))]
                    : std::to_string(pick(2) ? pick(12) : pick(5000));
        damaged.replace(at, end == std::string::npos ? 0 : end - at, number);
        break;
      }
      }
    }
    Plan plan;
    std::string error;
    if (fromJson(round % 4 ? rehashed(damaged) : damaged, plan, error)) {
      predictMemory(plan);
      ++accepted;
    } else {
      EXPECT_FALSE(error.empty());
      ++refused;
    }
  }
  EXPECT_GT(refused, 4000);
  EXPECT_GT(accepted, 10) << "some damage hits only names and costs";
}

class PlanFiles : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "plan-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string folder;
};

TEST_F(PlanFiles, WriteAndRead) {
  Plan plan = test::makePlan(), read;
  std::string error;
  const std::string path = folder + "/plan.json";
  ASSERT_TRUE(writeFileAtomically(path, "something older", error)) << error;
  ASSERT_TRUE(writeFileAtomically(path, toJson(plan), error)) << error;
  ASSERT_TRUE(readPlan(path, read, error)) << error;
  EXPECT_TRUE(read == plan);
  int files = 0;
  for (auto &entry : std::filesystem::directory_iterator(folder))
    files += entry.is_regular_file();
  EXPECT_EQ(files, 1) << "no temporary file stays";
}

TEST_F(PlanFiles, FailuresAreSentences) {
  Plan plan;
  std::string error;
  EXPECT_FALSE(readPlan(folder + "/absent.json", plan, error));
  EXPECT_EQ(error, folder + "/absent.json: cannot open the plan: No such file "
                            "or directory");
  EXPECT_FALSE(readPlan(folder, plan, error));
  EXPECT_EQ(error, folder + ": this is a folder, not a plan");
  EXPECT_FALSE(writeFileAtomically(folder + "/no/plan.json", "x", error));
  EXPECT_NE(error.find("cannot create the file"), std::string::npos);
  EXPECT_FALSE(writeFileAtomically(folder, "x", error));
  EXPECT_NE(error.find("a folder has this name"), std::string::npos);
  // Before anything is written.
  EXPECT_FALSE(canWriteFile(folder + "/no/plan.json", error));
  EXPECT_EQ(error, folder + "/no/plan.json: cannot create the file: No such "
                            "file or directory");
  EXPECT_FALSE(canWriteFile(folder, error));
  EXPECT_TRUE(canWriteFile("/dev/full", error));
  EXPECT_TRUE(canWriteFile(folder + "/plan.json", error));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  // A full disk.
  EXPECT_FALSE(writeFileAtomically("/dev/full", "x", error));
  EXPECT_NE(error.find("No space left"), std::string::npos) << error;
}

TEST_F(PlanFiles, AFailedWriteLeavesTheOldFile) {
  std::string error;
  const std::string path = folder + "/plan.json";
  ASSERT_TRUE(writeFileAtomically(path, "old", error));
  ASSERT_EQ(symlink("plan.json", (folder + "/link").c_str()), 0);
  ASSERT_TRUE(writeFileAtomically(folder + "/link", "new", error)) << error;
  EXPECT_TRUE(std::filesystem::is_symlink(folder + "/link"));
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text, "new");
}

} // namespace
