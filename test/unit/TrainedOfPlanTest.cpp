//===- TrainedOfPlanTest.cpp - Whether a plan is of what was trained ------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Trained.h"
#include "runtime/plan/Plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

using namespace accel;
using namespace accel::checkpoint;

namespace {

constexpr int64_t rows = 3, columns = 4;

/// A plan that ties "a" and "b", and a checkpoint that has both: "a" as one
/// piece, "b" cut into its first and its other columns, which come first.
class TrainedOfPlan : public testing::Test {
protected:
  void SetUp() override {
    path = testing::TempDir() + "trained-of-plan-" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
    std::vector<float> values(rows * columns);
    std::iota(values.begin(), values.end(), 1.0F);
    file = values;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 1; column < columns; ++column)
        file.push_back(values[size_t(row * columns + column)]);
    for (int64_t row = 0; row < rows; ++row)
      file.push_back(values[size_t(row * columns)]);
    a.name = "a";
    a.dtype = "float32";
    a.shape = {rows, columns};
    a.bytes = rows * columns * int64_t(sizeof(float));
    b = state = a;
    b.name = "b";
    a.pieces = {pieceOf(0, 0, columns)};
    b.pieces = {pieceOf(rows * columns, 1, columns - 1),
                pieceOf(rows * (2 * columns - 1), 0, 1)};
    trained.parameters["a"].weight = &a;
    trained.parameters["b"].weight = &b;
    plan::Parameter &parameter = plan.parameters.emplace_back();
    parameter.fqn = "a";
    parameter.aliases = {"b"};
    parameter.shape = {rows, columns};
  }
  void TearDown() override { std::filesystem::remove(path); }

  Piece pieceOf(int64_t at, int64_t first, int64_t width) const {
    Piece piece;
    piece.file = path;
    piece.begin = at * int64_t(sizeof(float));
    piece.offsets = {0, first};
    piece.sizes = {rows, width};
    return piece;
  }

  /// The code and message of what is reported; "": it is the plan's model.
  std::string reported() {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(file.data()),
               std::streamsize(file.size() * sizeof(float)));
    DiagnosticEngine diagnostics;
    const bool good = isOfModel(trained, plan, "out", diagnostics);
    EXPECT_EQ(good, diagnostics.all().empty());
    return good ? ""
                : diagnostics.all().front().code + ": " +
                      diagnostics.all().front().message;
  }

  std::string path;
  std::vector<float> file;
  Tensor a, b, state;
  Trained trained;
  plan::Plan plan;
};

TEST_F(TrainedOfPlan, TiedNamesHoldTheSameValues) {
  EXPECT_EQ(reported(), "");
  // Two elements that have changed places.
  std::swap(file[rows * columns], file[rows * columns + 1]);
  EXPECT_EQ(reported(), "conflicting-arguments: the plan ties 'b' to 'a', and "
                        "the checkpoint has other values in each");
  std::swap(file[rows * columns], file[rows * columns + 1]);
  b.dtype = "int32";
  EXPECT_NE(reported().find("other values in each"), std::string::npos);
}

TEST_F(TrainedOfPlan, TiedNamesHaveStatesOnce) {
  trained.parameters["b"].states["exp_avg"] = &state;
  EXPECT_EQ(reported(), "");
  EXPECT_EQ(findTrained(trained, plan.parameters[0]), &trained.parameters["b"]);
  trained.parameters["a"].states["exp_avg"] = &state;
  EXPECT_EQ(reported(), "conflicting-arguments: the plan ties 'b' to 'a', and "
                        "the checkpoint has states of the optimizer of each");
}

TEST_F(TrainedOfPlan, FrozenParametersHaveNoStates) {
  plan.parameters[0].trainable = false;
  EXPECT_EQ(reported(), "");
  trained.parameters["b"].states["exp_avg"] = &state;
  EXPECT_EQ(reported(),
            "conflicting-arguments: the plan freezes 'b', and the checkpoint "
            "has states of the optimizer of it");
}

TEST_F(TrainedOfPlan, NamesOfOneParameterHaveItsShape) {
  b.shape = {columns, rows};
  EXPECT_NE(reported().find("'b' has the shape [4, 3]"), std::string::npos);
}

TEST_F(TrainedOfPlan, WeightsThatCannotBeReadAreReportedAsThat) {
  file.resize(rows * columns);
  EXPECT_TRUE(reported().starts_with("invalid-checkpoint: "));
}

} // namespace
