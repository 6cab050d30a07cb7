//===- PlanTest.cpp - Plan structs and the hash ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/ModulePath.h"
#include "runtime/plan/Sha256.h"
#include "test/unit/PlanFixture.h"

#include <gtest/gtest.h>

using namespace accel::plan;

namespace {

std::string sha(const std::string &text) {
  Sha256 hash;
  hash.update(text);
  return hash.hexDigest();
}

// FIPS 180-4 examples and a block boundary.
TEST(Sha256, Vectors) {
  EXPECT_EQ(sha(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b"
                     "7852b855");
  EXPECT_EQ(sha("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410f"
                        "f61f20015ad");
  EXPECT_EQ(sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSame) {
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += char(i * 7);
  for (size_t piece : {1, 3, 63, 64, 65, 127, 300}) {
    Sha256 hash;
    for (size_t i = 0; i < text.size(); i += piece)
      hash.update(std::string_view(text).substr(i, piece));
    EXPECT_EQ(hash.hexDigest(), sha(text)) << piece;
  }
}

TEST(ModulePath, LayersOfOneKindHaveOneName) {
  EXPECT_EQ(withoutLayerNumbers("model.layers.31.mlp"), "model.layers.*.mlp");
  EXPECT_EQ(withoutLayerNumbers("0.mlp.12"), "*.mlp.*");
  EXPECT_EQ(withoutLayerNumbers("model.layers.31/frozen"),
            "model.layers.*/frozen");
  EXPECT_EQ(withoutLayerNumbers("a/7"), "a/7");
  EXPECT_EQ(withoutLayerNumbers("h1.2b.fc1"), "h1.2b.fc1");
  EXPECT_EQ(withoutLayerNumbers("a..7."), "a..*.");
  EXPECT_EQ(withoutLayerNumbers(""), "");
}

TEST(Plan, DTypesRoundTrip) {
  for (DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16,
                      DType::I64, DType::I32, DType::I16, DType::U8, DType::I1})
    EXPECT_EQ(parseDType(toString(dtype)), dtype);
  EXPECT_FALSE(parseDType("float32"));
  EXPECT_FALSE(parseDType(""));
  EXPECT_EQ(itemSize(DType::BF16), 2);
  EXPECT_EQ(itemSize(DType::I1), 1);
}

TEST(Plan, BytesAreAlignedAndSaturate) {
  EXPECT_EQ(alignedBytes(0), 0);
  EXPECT_EQ(alignedBytes(1), 64);
  EXPECT_EQ(alignedBytes(64), 64);
  EXPECT_EQ(alignedBytes(65), 128);
  EXPECT_GT(alignedBytes(INT64_MAX), 0);
  Parameter huge;
  huge.shape = {int64_t(1) << 40, int64_t(1) << 40};
  EXPECT_EQ(huge.numel(), INT64_MAX);
  huge.shape = {int64_t(1) << 62, 0};
  EXPECT_EQ(huge.numel(), 0);
  Function function;
  function.slots = {{DType::F64, {int64_t(1) << 61}, 0}};
  EXPECT_GT(function.slotBytes(0), int64_t(1) << 62);
}

TEST(Plan, RolesOfAUnit) {
  test::Size size;
  size.shardRanks = 4;
  size.gather = DType::BF16;
  Plan plan = test::makePlan(size);
  const Unit &unit = plan.units[1];
  EXPECT_EQ(shardNumel(plan, unit) * 4, unit.padded);
  EXPECT_EQ(roleBytes(plan, unit, Role::Gathered), unit.padded * 2);
  EXPECT_EQ(roleBytes(plan, unit, Role::Gradient), unit.padded * 4);
  EXPECT_EQ(roleBytes(plan, unit, Role::Receive),
            (unit.padded - shardNumel(plan, unit)) * 4);
  EXPECT_EQ(roleBytes(plan, unit, Role::ShardGradient), unit.padded);
  EXPECT_FALSE(readsShard(plan, unit));
  plan.axes[1].size = 1;
  EXPECT_FALSE(readsShard(plan, unit)) << "the cast needs a buffer";
  EXPECT_TRUE(writesShardGradient(plan, unit));
  plan.units[1].gather = DType::F32;
  EXPECT_TRUE(readsShard(plan, plan.units[1]));
}

} // namespace
