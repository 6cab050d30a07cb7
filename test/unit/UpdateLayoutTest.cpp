//===- UpdateLayoutTest.cpp -----------------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/UpdateLayout.h"

#include <gtest/gtest.h>

#include <random>

using namespace accel::plan;

namespace {

UpdateShape shapeOf(std::vector<std::vector<int64_t>> parameters, int64_t shard,
                    DType storage = DType::F32) {
  UpdateShape shape;
  for (std::vector<int64_t> &own : parameters)
    shape.parameters.push_back({std::move(own)});
  shape.shard = shard;
  shape.storage = storage;
  return shape;
}

OptimizerRule ruleOf(const char *name) {
  Optimizer optimizer;
  optimizer.name = name;
  optimizer.groups.emplace_back();
  return OptimizerRule(optimizer);
}

/// Each element is in one rectangle, at its place, and no rectangle leaves its
/// matrix.
TEST(UpdateLayout, RectanglesCoverAnyPart) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const int64_t batch = 1 + random() % 3, rows = 1 + random() % 5,
                  columns = 1 + random() % 6, all = batch * rows * columns;
    const int64_t begin = random() % all;
    const int64_t count = 1 + random() % (all - begin);
    std::vector<int> seen(all);
    int64_t next = 0;
    const std::vector<Rectangle> parts =
        rectangles(begin, count, rows, columns);
    for (const Rectangle &part : parts) {
      EXPECT_EQ(part.offset, next);
      for (int64_t i = 0; i < part.rowCount; ++i)
        for (int64_t j = 0; j < part.columnCount; ++j) {
          const int64_t row = part.row + i, column = part.column + j;
          EXPECT_EQ(row / rows, column / columns) << "of another matrix";
          const int64_t element = row * columns + column % columns;
          EXPECT_EQ(element, begin + part.offset + i * part.columnCount + j);
          ++seen[element];
        }
      next += part.rowCount * part.columnCount;
    }
    EXPECT_EQ(next, count);
    for (int64_t i = 0; i < all; ++i)
      EXPECT_EQ(seen[i], i >= begin && i < begin + count);
    EXPECT_LE(parts.size(), static_cast<size_t>(2 + batch));
  }
  EXPECT_TRUE(rectangles(3, 0, 2, 2).empty());
}

TEST(UpdateLayout, AdamwIsShardedAsItWas) {
  const auto states = stateLayouts(ruleOf("adamw"), shapeOf({{8, 4}, {5}}, 64));
  ASSERT_EQ(states.size(), 2u);
  for (const StateLayout &state : states) {
    EXPECT_TRUE(state.sharded);
    EXPECT_EQ(state.elements, 64);
  }
  EXPECT_EQ(
      updateWork(ruleOf("adamw"), shapeOf({{8, 4}}, 64), "cpu").workspaceBytes,
      0);
}

TEST(UpdateLayout, AdafactorsSumsAreWholeOnEveryRank) {
  const UpdateShape shape = shapeOf({{8, 20}, {5}, {2, 3, 40}}, 256);
  const auto states = stateLayouts(ruleOf("adafactor"), shape);
  ASSERT_EQ(states.size(), 3u);
  EXPECT_STREQ(states[0].rule.name, "exp_avg_sq_row");
  // Parts begin at multiples of 64 bytes.
  EXPECT_EQ(states[0].elements, 16 + 16);
  ASSERT_EQ(states[0].parts.size(), 2u);
  EXPECT_EQ(states[0].parts[1].parameter, 2);
  EXPECT_EQ(states[0].parts[1].offset, 16);
  EXPECT_EQ(states[0].parts[1].numel, 6);
  EXPECT_EQ(states[1].elements, 32 + 80);
  EXPECT_EQ(states[2].elements, 16);
  EXPECT_EQ(states[2].parts[0].numel, 5);

  const FactoredLayout layout = factoredLayout(shape);
  EXPECT_EQ(layout.sums, 16 + 32 + 16 + 80);
  EXPECT_EQ(layout.scratchBytes, 0);
  // Means of one and of two matrices, and a vector's factors.
  EXPECT_EQ(layout.squaresBegin, 4 * (layout.sums + 3 * 16));
  EXPECT_EQ(layout.bytes, layout.squaresBegin + 64);
  const UpdateWork work = updateWork(ruleOf("adafactor"), shape, "cpu");
  EXPECT_EQ(work.workspaceBytes, layout.bytes);
  EXPECT_TRUE(work.exchanges.empty()) << "one rank";
  UpdateShape shared = shape;
  shared.ranks = 2;
  EXPECT_EQ(
      updateWork(ruleOf("adafactor"), shared, "cpu").exchanges,
      (std::vector<UpdateExchange>{{true, 4.0 * layout.sums}, {true, 3 * 8}}));
}

TEST(UpdateLayout, NarrowParametersHaveAnUpdateInF32) {
  // The largest part of a parameter that a rank can have.
  EXPECT_EQ(factoredLayout(shapeOf({{8, 20}}, 100, DType::BF16)).scratchBytes,
            448);
  EXPECT_EQ(factoredLayout(shapeOf({{8, 20}}, 500, DType::BF16)).scratchBytes,
            640);
}

/// Each matrix has one rank in one round, large ones share a round, and what a
/// rank has of a round fits.
TEST(UpdateLayout, MuonsMatricesTakeTurns) {
  UpdateShape shape =
      shapeOf({{8, 16}, {5}, {32, 16}, {16, 16}, {2, 3, 4}, {16, 32}}, 600);
  shape.ranks = 3;
  const MatrixLayout layout = matrixLayout(shape);
  EXPECT_EQ(layout.rounds, (std::vector<std::vector<int>>{{2, 5, 3}, {0}}));
  EXPECT_EQ(layout.matrixBegin - layout.sentBegin, 2 * 608) << "the shard";
  EXPECT_EQ(layout.nextBegin - layout.matrixBegin, 2 * 512);
  EXPECT_EQ(layout.polynomialBegin - layout.gramBegin, 2 * 256);
  const UpdateWork work = updateWork(ruleOf("muon"), shape, "cpu");
  EXPECT_EQ(work.workspaceBytes, layout.bytes);
  EXPECT_EQ(work.exchanges,
            (std::vector<UpdateExchange>{
                {false, 1200}, {false, 1200}, {false, 256}, {false, 256}}));
  EXPECT_EQ(work.flops, 5.0 * (4 * 16 * 16 * 32 + 2 * 16 * 16 * 16) +
                            5.0 * (4 * 8 * 8 * 16 + 2 * 8 * 8 * 8));
  const auto states = stateLayouts(ruleOf("muon"), shape);
  ASSERT_EQ(states.size(), 3u);
  EXPECT_TRUE(states[0].sharded);
  EXPECT_EQ(states[0].parts.size(), 4u);
  EXPECT_FALSE(states[1].sharded);
  EXPECT_EQ(states[1].elements, 16 + 32);
  EXPECT_TRUE(matrixLayout(shapeOf({{5}}, 64)).rounds.empty());
}

/// Vectors that take more than the shard are sharded with it.
TEST(UpdateLayout, LargeStatesOfSomeParametersAreSharded) {
  const auto small = stateLayouts(ruleOf("adafactor"), shapeOf({{100}}, 128));
  ASSERT_EQ(small.size(), 1u);
  EXPECT_FALSE(small[0].sharded);
  const auto large = stateLayouts(ruleOf("adafactor"), shapeOf({{100}}, 64));
  EXPECT_TRUE(large[0].sharded);
  EXPECT_EQ(large[0].elements, 64);
}

} // namespace
