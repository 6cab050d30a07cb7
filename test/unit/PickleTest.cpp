//===- PickleTest.cpp - Pickles as data -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Pickle.h"
#include "frontends/Checkpoint/Checkpoint.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::checkpoint;
using namespace std::string_literals;

namespace {

bool onlySize(std::string_view name) { return name == "torch Size"; }

/// What the reader says of a pickle that it refuses.
std::string refusal(const std::string &bytes) {
  Pickle::Problem problem;
  auto pickle = Pickle::parse(bytes, onlySize, problem);
  return pickle ? "" : std::to_string(problem.offset) + ": " + problem.message;
}

TEST(Pickle, ReadsValues) {
  // pickle.dumps({"a": (1, -2, 2.5, None, True), "b": [300]}, 2), without memo
  const std::string bytes = "\x80\x02}(X\1\0\0\0a(K\1J\xfe\xff\xff\xffG\x40\x04"
                            "\0\0\0\0\0\0N\x88tX\1\0\0\0b](M\x2c\1eu."s;
  Pickle::Problem problem;
  auto pickle = Pickle::parse(bytes, onlySize, problem);
  ASSERT_TRUE(pickle) << problem.message;
  auto tuple = pickle->field(pickle->root(), "a");
  ASSERT_TRUE(tuple);
  const std::vector<ValueId> &items = pickle->at(*tuple).items;
  ASSERT_EQ(items.size(), 5u);
  EXPECT_EQ(pickle->integer(items[0]), 1);
  EXPECT_EQ(pickle->integer(items[1]), -2);
  EXPECT_EQ(pickle->at(items[2]).real, 2.5);
  EXPECT_TRUE(pickle->is(items[3], Pickle::Kind::None));
  EXPECT_EQ(pickle->at(items[4]).number, 1);
  EXPECT_EQ(pickle->integer(
                pickle->at(*pickle->field(pickle->root(), "b")).items.at(0)),
            300);
}

TEST(Pickle, SharesByMemo) {
  Pickle::Problem problem;
  const std::string bytes = "\x80\x04]\x94h\0a."s; // a list that holds itself
  auto pickle = Pickle::parse(bytes, onlySize, problem);
  ASSERT_TRUE(pickle) << problem.message;
  EXPECT_EQ(pickle->at(pickle->root()).items.at(0), pickle->root());
}

TEST(Pickle, KeepsOnceWhatNothingChanges) {
  Pickle::Problem problem;
  // [1, 1, (), (), None, None, [], [7]]
  const std::string bytes = "\x80\x02](K\1K\1))NN]]K\7ae."s;
  auto pickle = Pickle::parse(bytes, onlySize, problem);
  ASSERT_TRUE(pickle) << problem.message;
  const std::vector<ValueId> &items = pickle->at(pickle->root()).items;
  ASSERT_EQ(items.size(), 8u);
  for (size_t i : {0, 2, 4})
    EXPECT_EQ(items[i], items[i + 1]) << i;
  EXPECT_EQ(pickle->integer(items[1]), 1);
  EXPECT_TRUE(pickle->at(items[6]).items.empty());
  ASSERT_EQ(pickle->at(items[7]).items.size(), 1u);
  EXPECT_EQ(pickle->integer(pickle->at(items[7]).items[0]), 7);
  EXPECT_EQ(pickle->size(), 10u); // as many as opcodes made
}

TEST(Pickle, RemembersInAnySlot) {
  Pickle::Problem problem;
  // Slots 4294967295, 0 and that which MEMOIZE takes: how many there are.
  const std::string bytes =
      "\x80\x04](K\5r\xff\xff\xff\xffK\6q\0K\7\x94j\xff\xff\xff\xffh\0h\2e."s;
  auto pickle = Pickle::parse(bytes, onlySize, problem);
  ASSERT_TRUE(pickle) << problem.message;
  const std::vector<ValueId> &items = pickle->at(pickle->root()).items;
  ASSERT_EQ(items.size(), 6u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(items[i], items[i + 3]) << i;
  EXPECT_EQ(refusal("\x80\x04]j\xfe\xff\xff\xff."s),
            "3: it takes value 4294967294, which was not kept");
}

/// Lists of one number are as long as they are.
TEST(Pickle, EqualNumbersAreNoSharing) {
  std::string bytes = "\x80\x02}(X\1\0\0\0a]("s;
  for (int i = 0; i < 5000; ++i)
    bytes += "K\0"s;
  Part part;
  DiagnosticEngine engine;
  EXPECT_TRUE(parseTorchSave(bytes + "eu.", "a.bin", part, engine));
  EXPECT_EQ(part.objects, 5000);
}

TEST(Pickle, NamesOutsideOfTheListAreRefused) {
  const std::string bytes = "\x80\x02"
                            "cos\nsystem\nX\4\0\0\0true\x85R."s;
  Pickle::Problem problem;
  EXPECT_FALSE(Pickle::parse(bytes, onlySize, problem));
  EXPECT_TRUE(problem.foreign);
  EXPECT_EQ(problem.message, "it names 'os.system', which no checkpoint of "
                             "this kind needs");
  // The name may be put together on the stack.
  EXPECT_NE(refusal("\x80\x04\x8c\2os\x8c\6system\x93."s), "");
}

TEST(Pickle, DamageIsNamedByItsByte) {
  EXPECT_EQ(refusal(""), "0: it ends without STOP: the file is cut");
  EXPECT_EQ(refusal("."), "0: an opcode takes a value that is not there");
  EXPECT_EQ(refusal("\x80\7."s),
            "0: its protocol is 7, and Python knows 0 to 5");
  EXPECT_EQ(refusal("NX\xff\xff\0\0a."s),
            "1: an argument of 65535 bytes leaves the file: the file is cut");
  EXPECT_EQ(refusal("i."s),
            "0: opcode 0x69 is none that torch writes into checkpoints");
  EXPECT_EQ(refusal("h\5."s), "0: it takes value 5, which was not kept");
  EXPECT_EQ(refusal("e."s), "0: an opcode takes a MARK that is not there");
  EXPECT_EQ(refusal("N)R."s), "2: it calls what is no class or function");
}

TEST(TorchSave, BoundsWhatIsShared) {
  // Lists of the list before, twice each: 2^30 visits without a limit.
  std::string bytes = "\x80\x02]q\0"s;
  for (int i = 0; i < 30; ++i)
    bytes += "](h"s + char(i) + "h"s + char(i) + "eq"s + char(i + 1);
  DiagnosticEngine engine;
  Part part;
  EXPECT_FALSE(parseTorchSave(bytes + ".", "a.bin", part, engine));
  EXPECT_TRUE(engine.hasErrors());
}

} // namespace
