//===- IndexChecksTest.cpp - Indices that kernels trust -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/IndexChecks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>

using accel::run::indexCheckOf;
using torch::jit::Stack;

namespace {

/// What the check of an operator says; empty if nothing.
std::string problemOf(const std::string &name, const Stack &arguments) {
  const accel::run::IndexCheck check = indexCheckOf(name);
  if (!check)
    return "no check";
  try {
    check(arguments);
  } catch (const std::out_of_range &error) {
    return error.what();
  }
  return "";
}

at::Tensor indices(std::vector<int64_t> values) {
  return at::tensor(values, at::TensorOptions(at::kLong));
}

const std::vector<int64_t> two{2, 2}, zero{0, 0}, one{1, 1};

TEST(IndexChecks, MostOperatorsCheckThemselves) {
  EXPECT_EQ(indexCheckOf("aten::embedding"), nullptr);
  EXPECT_EQ(indexCheckOf("aten::index_select"), nullptr);
}

TEST(IndexChecks, EmbeddingsThatCount) {
  const char *name = "aten::embedding_dense_backward";
  const at::Tensor gradient = at::ones({2, 4});
  EXPECT_EQ(problemOf(name, {gradient, indices({0, 6}), 7, -1, true}), "");
  EXPECT_EQ(problemOf(name, {gradient, indices({0, 7}), 7, -1, true}),
            "index 7 of argument 'indices' is out of bounds: expected 0 to 6");
  EXPECT_EQ(problemOf(name, {gradient, indices({-1, 0}), 7, -1, true}),
            "index -1 of argument 'indices' is out of bounds: expected 0 to 6");
  EXPECT_EQ(problemOf(name, {gradient, indices({0, 7}), 7, -1, false}), "");
}

TEST(IndexChecks, Pools) {
  const at::Tensor self = at::ones({1, 1, 4, 4}),
                   small = at::ones({1, 1, 1, 2});
  const at::Tensor good = indices({0, 15}).view({1, 1, 1, 2});
  const at::Tensor bad = indices({0, 16}).view({1, 1, 1, 2});
  const char *text =
      "index 16 of argument 'indices' is out of bounds: expected 0 to 15";
  for (const auto &[given, expected] :
       {std::pair{good, ""}, std::pair{bad, text}}) {
    EXPECT_EQ(problemOf("aten::max_pool2d_with_indices_backward",
                        {small, self, two, two, zero, one, false, given}),
              expected);
    EXPECT_EQ(
        problemOf("aten::adaptive_max_pool2d_backward", {small, self, given}),
        expected);
  }
  EXPECT_EQ(problemOf("aten::adaptive_max_pool3d_backward",
                      {small, at::ones({1, 2, 4, 4}), bad}),
            "");
}

TEST(IndexChecks, LossesLeaveOutTheIgnoredIndex) {
  const auto arguments = [](std::vector<int64_t> target, int64_t reduction) {
    return Stack{at::ones({2}),  at::ones({2, 3}), indices(std::move(target)),
                 c10::IValue(),  reduction,        -100,
                 at::tensor(2.0)};
  };
  const char *name = "aten::nll_loss_backward";
  EXPECT_EQ(problemOf(name, arguments({2, -100}, 0)), "");
  EXPECT_EQ(problemOf(name, arguments({3, -100}, 0)),
            "index 3 of argument 'target' is out of bounds: expected 0 to 2");
  EXPECT_EQ(problemOf(name, arguments({3, -100}, 1)), "");
}

TEST(IndexChecks, CtcReadsTargetsUpToTheirLengths) {
  const std::vector<int64_t> frames{4, 4}, lengths{1, 2};
  const at::Tensor logits = at::zeros({4, 2, 3});
  const auto said = [&](const at::Tensor &targets, const c10::IValue &given) {
    return problemOf("aten::_ctc_loss",
                     {logits, targets, frames, given, 0, false});
  };
  const char *text =
      "index 3 of argument 'targets' is out of bounds: expected 0 to 2";
  EXPECT_EQ(said(indices({1, -100, 2, 1}).view({2, 2}), lengths), "");
  EXPECT_EQ(said(indices({1, -100, 2, 3}).view({2, 2}), indices(lengths)),
            text);
  EXPECT_EQ(said(indices({1, 2, 1, 99}), lengths), "");
  EXPECT_EQ(said(indices({1, 3, 1}), lengths), text);
}

} // namespace
