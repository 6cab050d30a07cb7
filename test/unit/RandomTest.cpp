//===- RandomTest.cpp - Dropout by key ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/Operators.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

using namespace accel::run;

namespace {

at::Tensor drop(const at::Tensor &x, double p, const std::vector<int64_t> &k) {
  registerOperators();
  static auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("accel::dropout", "")
          .typed<at::Tensor(const at::Tensor &, double, at::IntArrayRef)>();
  return op.call(x, p, k);
}

at::Tensor mask(int64_t numel, double p, const Draw &draw, int64_t key) {
  return drop(at::ones({numel}), p, draw.list(key)) != 0;
}

/// Correlation of two masks of rate `p`, in standard deviations.
double correlation(const at::Tensor &a, const at::Tensor &b, double p) {
  const double both =
      a.logical_and(b).sum().item<double>() / static_cast<double>(a.numel());
  const double keep = 1 - p, expected = keep * keep;
  return (both - expected) /
         std::sqrt(expected * (1 - expected) / static_cast<double>(a.numel()));
}

TEST(Random, IsPhiloxOfTheKey) {
  Draw draw{11, 5, 3};
  const std::vector<int64_t> key = draw.list(7);
  const double p = 0.3;
  const int64_t n = 5003;
  at::Tensor kept = mask(n, p, draw, 7);
  for (int64_t i = 0; i < n; ++i) {
    // LibTorch's engine: its subsequence is the upper half of the counter.
    at::Philox4_32 engine(static_cast<uint64_t>(key[0]),
                          static_cast<uint64_t>(key[1]),
                          static_cast<uint64_t>(i / 4));
    uint32_t word = 0;
    for (int64_t skip = 0; skip <= i % 4; ++skip)
      word = engine();
    ASSERT_EQ(kept[i].item<bool>(), word * 0x1p-32 >= p) << i;
  }
}

TEST(Random, DropsWithProbabilityAndKeepsTheMean) {
  const int64_t n = 1 << 20;
  for (double p : {0.05, 0.1, 0.5, 0.9}) {
    at::Tensor x = at::rand({n});
    at::Tensor y = drop(x, p, Draw{1, 2, 3}.list(4));
    const double dropped = (y == 0).sum().item<double>() / double(n);
    EXPECT_NEAR(dropped, p, 4 * std::sqrt(p * (1 - p) / double(n)));
    EXPECT_NEAR(y.mean().item<double>(), x.mean().item<double>(),
                4 * std::sqrt(p / (1 - p) / 3 / double(n)));
    at::Tensor kept = y != 0;
    EXPECT_TRUE(at::allclose(y.masked_select(kept),
                             x.masked_select(kept) * float(1 / (1 - p)), 1e-6));
  }
}

TEST(Random, MasksOfOtherDrawsAreIndependent) {
  const int64_t n = 1 << 18;
  const double p = 0.4;
  const Draw draw{7, 100, 12};
  at::Tensor own = mask(n, p, draw, 2);
  EXPECT_TRUE(at::equal(own, mask(n, p, draw, 2)));
  Draw seed = draw, batch = draw, call = draw;
  seed.seed = 8;
  batch.microBatch = 101;
  call.call = 13;
  const Draw swapped{100, 7, 12};
  EXPECT_LT(std::abs(correlation(own, mask(n, p, seed, 2), p)), 4);
  EXPECT_LT(std::abs(correlation(own, mask(n, p, batch, 2), p)), 4);
  EXPECT_LT(std::abs(correlation(own, mask(n, p, call, 2), p)), 4);
  EXPECT_LT(std::abs(correlation(own, mask(n, p, draw, 3), p)), 4);
  EXPECT_LT(std::abs(correlation(own, mask(n, p, swapped, 2), p)), 4);
  // Nor are neighbours, near or far, of one mask.
  for (int64_t lag : {1, 2, 3, 4, 128, 1 << 15})
    EXPECT_LT(std::abs(correlation(own.slice(0, 0, n - lag),
                                   own.slice(0, lag, n), p)),
              4)
        << lag;
}

TEST(Random, NeitherLayoutNorDtypeNorThreadsMatter) {
  const std::vector<int64_t> key = Draw{0, 0, 1}.list(0);
  at::Tensor x = at::rand({6, 70, 513}) + 1;
  at::Tensor want = drop(x, 0.2, key);
  at::Tensor strided = x.transpose(0, 2).contiguous().transpose(0, 2);
  ASSERT_FALSE(strided.is_contiguous());
  EXPECT_TRUE(at::equal(drop(strided, 0.2, key), want));
  EXPECT_TRUE(drop(strided, 0.2, key).is_contiguous());
  at::Tensor expanded = x.slice(1, 0, 1).expand({6, 70, 513});
  EXPECT_TRUE(at::equal(drop(expanded, 0.2, key),
                        drop(expanded.contiguous(), 0.2, key)));
  for (auto type : {at::kDouble, at::kBFloat16, at::kHalf})
    EXPECT_TRUE(at::equal(drop(x.to(type), 0.2, key) != 0, want != 0));
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  EXPECT_TRUE(at::equal(drop(x, 0.2, key), want));
  at::set_num_threads(threads);
}

TEST(Random, Extremes) {
  const std::vector<int64_t> key = Draw().list(0);
  at::Tensor x = at::rand({1000});
  EXPECT_TRUE(at::equal(drop(x, 0, key), x));
  EXPECT_TRUE(at::equal(drop(x, 1, key), at::zeros({1000})));
  x.fill_(std::numeric_limits<float>::infinity());
  EXPECT_FALSE(drop(x, 0.5, key).isnan().any().item<bool>());
  EXPECT_EQ(drop(at::rand({0, 3}), 0.5, key).numel(), 0);
  EXPECT_EQ(drop(at::rand({}), 0.5, key).dim(), 0);
  EXPECT_ANY_THROW(drop(x, 1.5, key));
  EXPECT_ANY_THROW(drop(x, 0.5, {1}));
}

/// What devices other than CPUs do.
TEST(Random, ByGeneratorRepeatsAndLeavesTheDefaultOneAlone) {
  at::Tensor x = at::ones({1 << 16});
  at::manual_seed(3);
  at::Tensor before = at::rand({4});
  at::manual_seed(3);
  at::Tensor a = dropoutByGenerator(x, 0.25, Draw{1, 2, 3}.list(4));
  EXPECT_TRUE(at::equal(at::rand({4}), before));
  EXPECT_TRUE(at::equal(a, dropoutByGenerator(x, 0.25, Draw{1, 2, 3}.list(4))));
  EXPECT_TRUE(at::equal(
      a, dropoutByGenerator(x.view({256, 256}).t(), 0.25, Draw{1, 2, 3}.list(4))
             .flatten()));
  at::Tensor other = dropoutByGenerator(x, 0.25, Draw{1, 2, 3}.list(5));
  EXPECT_LT(std::abs(correlation(a != 0, other != 0, 0.25)), 4);
  EXPECT_NEAR((a == 0).to(at::kFloat).mean().item<double>(), 0.25, 0.01);
  EXPECT_NEAR(a.max().item<double>(), 1 / 0.75, 1e-6);
}

/// Ranks that have other heads of one attention draw from other states.
TEST(Random, SeedsOfRanksDiffer) {
  const std::vector<int64_t> key = Draw{1, 2, 3}.list(4);
  std::set<uint64_t> seeds = {deviceSeed(key)};
  for (int64_t place = 0; place < 4; ++place) {
    std::vector<int64_t> own = key;
    own.insert(own.end(), {place, 4});
    EXPECT_EQ(deviceSeed(own), deviceSeed(own));
    seeds.insert(deviceSeed(own));
  }
  EXPECT_EQ(seeds.size(), 5u);
  EXPECT_ANY_THROW(deviceSeed({1, 2, 3}));
}

TEST(Random, AddsOtherDtypesRoundedOnce) {
  registerOperators();
  auto op = c10::Dispatcher::singleton()
                .findSchemaOrThrow("accel::add_", "")
                .typed<at::Tensor &(at::Tensor &, const at::Tensor &)>();
  at::Tensor self = at::rand({1000, 7}), other = at::rand({1000, 7});
  at::Tensor narrow = other.to(at::kBFloat16);
  at::Tensor want = self + narrow.to(at::kFloat);
  at::Tensor got = self.clone();
  op.call(got, narrow);
  EXPECT_TRUE(at::equal(got, want));
  at::Tensor turned = self.clone();
  op.call(turned, narrow.t().contiguous().t());
  EXPECT_TRUE(at::equal(turned, want));
}

} // namespace
