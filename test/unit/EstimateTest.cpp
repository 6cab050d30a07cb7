//===- EstimateTest.cpp - Sizes of models ---------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Estimate/AccelerateTable.h"
#include "frontends/Estimate/Sizes.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::estimate;

namespace {

/// root(p[2]) { a Leaf(w[4,3], buffer i64[5]); b Block { c Leaf(w[10]) } },
/// head Linear(w[4,3] tied to a).
ModuleTree sample() {
  ModuleTree tree;
  tree.modules = {{"", "Model", -1},
                  {"a", "Embedding", 0},
                  {"b", "Block", 0},
                  {"b.c", "Linear", 2},
                  {"head", "Linear", 0}};
  tree.parameters = {{"p", {2}, plan::DType::BF16, 0, -1},
                     {"a.weight", {4, 3}, plan::DType::BF16, 1, -1},
                     {"b.c.weight", {10, 70}, plan::DType::BF16, 3, -1},
                     {"head.weight", {4, 3}, plan::DType::BF16, 4, 1}};
  tree.buffers = {{"a.ids", {5}, plan::DType::I64, 1}};
  tree.outputEmbedding = "head";
  return tree;
}

TEST(Estimate, CountsAsAccelerateDoes) {
  ModelSizes sizes = modelSizes(sample());
  // Everything in float32, ties as often as they are named.
  EXPECT_EQ(sizes.total, 4 * (2 + 12 + 700 + 12) + 40);
  EXPECT_EQ(sizes.largestLayer, 4 * 700);
  EXPECT_EQ(sizes.largestLayers, std::vector<std::string>{"b.c"});
  // A class that must not be split counts as one, also if nothing is in it.
  ModuleTree tree = sample();
  tree.noSplit = {"Block"};
  EXPECT_EQ(modelSizes(tree).largestLayers, std::vector<std::string>{"b"});
  // A tensor of the root is a layer of its own.
  tree.parameters[0].shape = {5000};
  EXPECT_EQ(modelSizes(tree).largestLayers, std::vector<std::string>{"p"});
}

TEST(Estimate, RowsDivideTheFloat32Size) {
  ModelSizes sizes;
  sizes.total = 1001;
  sizes.largestLayer = 12;
  Row half = row(sizes, Dtype::Float16), eighth = row(sizes, Dtype::Int4);
  EXPECT_EQ(half.total, 500.5);
  EXPECT_EQ(half.training, 2002);
  EXPECT_EQ(eighth.largestLayer, 1.5);
  EXPECT_EQ(eighth.training, std::nullopt);
  EXPECT_EQ(row(sizes, Dtype::Float32).training, 4004);
}

TEST(Estimate, WritesNumbersAsPythonDoes) {
  EXPECT_EQ(convertBytes(512, true), "512 bytes");
  EXPECT_EQ(convertBytes(512, false), "512.0 bytes");
  EXPECT_EQ(convertBytes(0.5, false), "0.5 bytes");
  EXPECT_EQ(convertBytes(1024, true), "1.0 KB");
  EXPECT_EQ(convertBytes(1023.999, false), "1024.0 bytes");
  EXPECT_EQ(convertBytes(96 * 1024 + 768, true), "96.75 KB");
  EXPECT_EQ(convertBytes(3.5 * 1024 * 1024 * 1024, true), "3.5 GB");
  EXPECT_EQ(convertBytes(1e18, true), "888.18 PB");
}

TEST(Estimate, CountsWhatIsTrainedOnce) {
  TrueSizes sizes = trueSizes(sample());
  EXPECT_EQ(sizes.parameters, 714);
  EXPECT_EQ(sizes.bufferBytes, 40);
  EXPECT_EQ(sizes.loaded[0].bytes, 4 * 714 + 40);
  // The matrix in 8 bits with 10 scales, the rest in 16.
  EXPECT_EQ(sizes.loaded[2].bytes, 700 + 40 + 2 * 14 + 40);
  // 700 in blocks of 64 need 11 scales.
  EXPECT_EQ(sizes.loaded[3].bytes, 350 + 44 + 2 * 14 + 40);
  EXPECT_EQ(sizes.training[0].total(), 16 * 714);
  EXPECT_EQ(sizes.training[1].total(), 18 * 714);
  EXPECT_EQ(sizes.training[2].total(), 8 * 714);
}

TEST(Estimate, FindsWhatTheBaseModelLacks) {
  ModuleTree full = sample(), base;
  for (TreeParameter &p : full.parameters)
    p.fqn = "model." + p.fqn;
  full.parameters.push_back({"score.weight", {2, 3}, plan::DType::F32, 0, -1});
  full.base = "model";
  base.parameters = sample().parameters;
  base.parameters.pop_back(); // tied in the other
  auto missing = missingParameters(full, base);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0]->fqn, "score.weight");
}

} // namespace
