//===- RuntimeExecuteTest.cpp - Programs against plain LibTorch -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Initialize.h"
#include "runtime/checkpoint/Pieces.h"
#include "runtime/checkpoint/Sharded.h"
#include "runtime/execute/Executor.h"
#include "runtime/plan/Verify.h"
#include "test/unit/RuntimeRanks.h"
#include "test/unit/RuntimeTinyPlan.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>
#include <unistd.h>

using namespace accel;
using namespace accel::test;
using accel::run::Executor;

namespace {

constexpr int steps = 6;

/// Token `i` of the data: cheap, and not the same in any two micro-batches.
int64_t token(int64_t i, int64_t vocab) {
  return (i * i * 7 + i * 3 + 1) % vocab;
}

at::Tensor batch(const plan::Plan &plan, const std::string &name, int64_t k) {
  const plan::Job &job = plan.job;
  at::Tensor result = at::empty({job.microBatch, job.sequenceLength},
                                at::TensorOptions(at::kLong));
  auto *data = result.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < result.numel(); ++i)
    data[i] = token(k * 64 + i + (name == "labels" ? 1 : 0), job.vocab);
  if (name == "labels")
    data[0] = -100;
  return result;
}

std::vector<double> trainOn(const plan::Plan &plan, run::Groups &groups,
                            int count = steps) {
  std::string error;
  auto device = run::makeDevice("cpu", 0, error);
  Executor executor(plan, *device, groups);
  run::initialize(executor, 3);
  std::vector<double> losses, norms;
  const int64_t ranks = groups.mesh().dataSize();
  for (int step = 0; step < count; ++step) {
    auto result = executor.step(
        [&](int64_t slot, const std::string &name) {
          return batch(plan, name,
                       (step * plan.job.accumulation + slot) * ranks +
                           groups.mesh().dataIndex());
        },
        {0.05});
    double loss = 0;
    for (double value : groups.gather({result.loss}))
      loss += value;
    losses.push_back(loss / static_cast<double>(groups.size()));
    norms.push_back(result.gradNorm);
  }
  losses.insert(losses.end(), norms.begin(), norms.end());
  losses.push_back(executor.ownPeak().bytes);
  // Gloo's threads free what the last gathers staged a moment later.
  for (int wait = 0;
       wait < 1000 &&
       device->memory().current != executor.plan().predicted.persistentBytes;
       ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  losses.push_back(device->memory().current);
  return losses;
}

/// The same with autograd on all micro-batches in one process.
std::vector<double> reference(const plan::Plan &plan, int64_t ranks) {
  std::vector<at::Tensor> params, averages, squares;
  for (const plan::Parameter &p : plan.parameters) {
    std::vector<float> values(p.numel());
    const uint64_t key = run::initializerKey(3, p.fqn);
    for (int64_t i = 0; i < p.numel(); ++i) {
      float four[4];
      run::normals(key, i / 4, four);
      values[i] = 0.5f * four[i % 4];
    }
    params.push_back(at::from_blob(values.data(), p.shape).clone());
    params.back().requires_grad_(true);
    averages.push_back(at::zeros(p.shape));
    squares.push_back(at::zeros(p.shape));
  }
  std::vector<double> losses, norms;
  const int64_t slots = plan.job.accumulation * ranks;
  for (int step = 0; step < steps; ++step) {
    double mean = 0;
    for (at::Tensor &p : params)
      p.mutable_grad() = at::Tensor();
    for (int64_t k = step * slots; k < (step + 1) * slots; ++k) {
      at::Tensor x = at::embedding(params[0], batch(plan, "input_ids", k));
      at::Tensor logits = at::matmul(x.reshape({-1, x.size(2)}), params[1].t());
      at::Tensor loss = at::nll_loss(at::log_softmax(logits, 1),
                                     batch(plan, "labels", k).reshape({-1}));
      mean += loss.item<double>() / static_cast<double>(slots);
      (loss / static_cast<double>(slots)).backward();
    }
    at::NoGradGuard noGrad;
    double square = 0;
    for (at::Tensor &p : params)
      square += std::pow(p.grad().norm().item<double>(), 2);
    const double norm = std::sqrt(square),
                 limit = plan.job.optimizer.maxGradNorm;
    if (limit > 0)
      for (at::Tensor &p : params)
        p.mutable_grad().mul_(std::min(1.0, limit / (norm + 1e-6)));
    for (size_t i = 0; i < params.size(); ++i) {
      const at::Tensor &g = params[i].grad();
      params[i].mul_(1 - 0.05 * 0.1);
      averages[i].lerp_(g, 1 - 0.9);
      squares[i].mul_(0.999).addcmul_(g, g, 1 - 0.999);
      const double c1 = 1 - std::pow(0.9, step + 1),
                   c2 = 1 - std::pow(0.999, step + 1);
      params[i].addcdiv_(averages[i],
                         (squares[i].sqrt() / std::sqrt(c2)).add_(1e-8),
                         -0.05 / c1);
    }
    losses.push_back(mean);
    norms.push_back(norm);
  }
  losses.insert(losses.end(), norms.begin(), norms.end());
  return losses;
}

struct Case {
  const char *name;
  TinyOptions options;
  double tolerance = 2e-6;
};

void PrintTo(const Case &c, std::ostream *out) { *out << c.name; }

class Training : public testing::TestWithParam<Case> {};

TEST_P(Training, MatchesAutogradAndPredictedBytes) {
  const TinyOptions &options = GetParam().options;
  const plan::Plan plan = tinyPlan(options);
  const std::vector<std::string> problems = plan::verify(plan);
  ASSERT_TRUE(problems.empty()) << problems.front();
  const int64_t ranks = options.shard * options.replicate;
  const std::vector<double> want =
      inChild([&] { return reference(plan, ranks); });
  ASSERT_EQ(want.size(), 2u * steps);
  EXPECT_LT(want[steps - 1], 0.9 * want[0]) << "the reference learns nothing";
  const bool hasNorm = options.maxGradNorm > 0 || options.lossScaling;
  for (const auto &got :
       onRanks(plan, [&](run::Groups &g) { return trainOn(plan, g); })) {
    ASSERT_EQ(got.size(), 2u * steps + 2);
    for (int i = 0; i < steps; ++i) {
      EXPECT_NEAR(got[i] / want[i], 1.0, GetParam().tolerance) << "loss " << i;
      if (hasNorm) {
        EXPECT_NEAR(got[steps + i] / want[steps + i], 1.0,
                    10 * GetParam().tolerance)
            << "norm " << i;
      }
    }
    EXPECT_EQ(static_cast<int64_t>(got[2 * steps]),
              plan.predicted.ownPeakBytes);
    EXPECT_EQ(static_cast<int64_t>(got[2 * steps + 1]),
              plan.predicted.persistentBytes);
  }
}

TinyOptions with(int64_t shard, int64_t replicate = 1, int64_t accumulation = 1,
                 double clip = 0, const char *algorithm = "all_to_all") {
  TinyOptions options;
  options.shard = shard;
  options.replicate = replicate;
  options.accumulation = accumulation;
  options.maxGradNorm = clip;
  options.algorithm = algorithm;
  return options;
}

TinyOptions inlined(TinyOptions options) {
  options.inlineUpdate = true;
  return options;
}

TinyOptions lowPrecision(TinyOptions options, plan::DType gather,
                         plan::DType reduce, bool scaling = false) {
  options.gather = gather;
  options.reduce = reduce;
  options.lossScaling = scaling;
  return options;
}

using plan::DType;
INSTANTIATE_TEST_SUITE_P(
    Runtime, Training,
    testing::Values(
        Case{"Alone", with(1)}, Case{"AloneClipped", with(1, 1, 1, 0.1)},
        Case{"AloneAccumulating", with(1, 1, 3)}, Case{"TwoShards", with(2)},
        Case{"ThreeShardsClipped", with(3, 1, 1, 0.1)},
        Case{"TwoShardsAccumulating", with(2, 1, 4, 0.1)},
        Case{"TwoShardsDirect", with(2, 1, 2, 0.1, "direct")},
        Case{"TwoShardsInline", inlined(with(2))},
        Case{"TwoReplicas", with(1, 2, 2, 0.1)},
        Case{"Hybrid", with(2, 2, 2, 0.1)},
        Case{"Bf16", lowPrecision(with(2), DType::BF16, DType::F32), 2e-2},
        Case{"Bf16ReducedInBf16",
             lowPrecision(with(3, 1, 2), DType::BF16, DType::BF16), 3e-2},
        Case{"Bf16Direct",
             lowPrecision(with(2, 1, 2, 0.1, "direct"), DType::BF16,
                          DType::BF16),
             3e-2},
        Case{"Bf16Alone", lowPrecision(with(1), DType::BF16, DType::F32), 2e-2},
        Case{"ScaledLoss",
             lowPrecision(with(2, 1, 1, 0.1), DType::F32, DType::F32, true)}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(RuntimeExecute, InfiniteGradientsSkipTheStepAndHalveTheScale) {
  const plan::Plan plan =
      tinyPlan(lowPrecision(with(2), DType::F32, DType::F32, true));
  for (const auto &got : onRanks(plan, [&](run::Groups &groups) {
         std::string error;
         auto device = run::makeDevice("cpu", 0, error);
         Executor executor(plan, *device, groups);
         run::initialize(executor, 3);
         executor.scaler().set({3e38, 0});
         const at::Tensor before = executor.unit(1).shard().clone();
         std::vector<double> out;
         auto input = [&](int64_t, const std::string &name) {
           return batch(plan, name, groups.mesh().dataIndex());
         };
         // A gradient of a few at 3e38: overflow on some rank.
         executor.unit(0).shard().mul_(1e3);
         auto result = executor.step(input, {0.05});
         out.push_back(result.skipped);
         out.push_back(executor.scaler().get().scale);
         out.push_back(executor.optimizerSteps());
         out.push_back(at::equal(before, executor.unit(1).shard()));
         executor.scaler().set({65536, 1999});
         result = executor.step(input, {0.05});
         out.push_back(result.skipped);
         out.push_back(executor.scaler().get().scale);
         // Sums of two ranks are at twice that.
         out.push_back(executor.scaler().scale());
         out.push_back(executor.optimizerSteps());
         return out;
       })) {
    EXPECT_EQ(got,
              (std::vector<double>{1, 1.5e38, 0, 1, 0, 131072, 262144, 1}));
  }
}

TEST(RuntimeExecute, EvaluationMatchesTrainingLossAndKeepsNothing) {
  const plan::Plan plan = tinyPlan(with(2));
  for (const auto &got : onRanks(plan, [&](run::Groups &groups) {
         std::string error;
         auto device = run::makeDevice("cpu", 0, error);
         Executor executor(plan, *device, groups);
         run::initialize(executor, 3);
         auto one = [&](const std::string &name) {
           return batch(plan, name, groups.mesh().dataIndex());
         };
         std::vector<double> out{executor.evaluate(one).loss};
         out.push_back(device->memory().current);
         out.push_back(
             executor
                 .step([&](int64_t,
                           const std::string &name) { return one(name); },
                       {0.0})
                 .loss);
         return out;
       })) {
    ASSERT_EQ(got.size(), 3u);
    EXPECT_EQ(got[0], got[2]);
    EXPECT_EQ(static_cast<int64_t>(got[1]), plan.predicted.persistentBytes);
  }
}

TEST(RuntimeExecute, UnknownOperatorsAndArgumentsAreNamed) {
  plan::Plan plan = tinyPlan(with(1));
  std::string error;
  auto device = run::makeDevice("cpu", 0, error);
  run::Groups alone(plan);
  auto message = [&](const plan::Function &function) -> std::string {
    try {
      run::FunctionRunner runner(function, *device, alone);
    } catch (const run::PlanError &failure) {
      return failure.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message(plan.functions[0]), "accepted");
  plan::Function broken = plan.functions[0];
  broken.instructions[0].op = "aten::embeding";
  EXPECT_EQ(message(broken),
            "function 'Tiny.train', instruction 0 (aten::embeding): this "
            "LibTorch has no such operator");
  broken = plan.functions[0];
  broken.instructions[0].args.pop_back();
  EXPECT_NE(message(broken).find("argument 'indices' is missing"),
            std::string::npos);
  broken = plan.functions[0];
  broken.instructions[0].args[1].kind = plan::Arg::Kind::Float;
  EXPECT_NE(message(broken).find("'indices' is Tensor"), std::string::npos)
      << message(broken);
}

/// A folder that goes with the test.
struct Folder {
  std::string path;
  Folder() {
    char text[] = "/tmp/accel-test-XXXXXX";
    path = mkdtemp(text);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

/// Trains `before` steps, saves; a new executor on `after`'s ranks loads and
/// its shards are gathered: parameters and states by name.
TEST(RuntimeCheckpoint, AnotherNumberOfRanksReadsTheSameBits) {
  Folder folder;
  const plan::Plan two = tinyPlan(with(2)), three = tinyPlan(with(3)),
                   hybrid = tinyPlan(with(2, 2));
  /// Every element that this rank holds, weighted by its global position.
  auto fingerprint = [](Executor &executor, run::Groups &groups) {
    std::vector<double> sums;
    const plan::Plan &plan = executor.plan();
    for (int u : {0, 1}) {
      run::UnitStorage &unit = executor.unit(u);
      for (const at::Tensor &flat :
           {unit.shard(), unit.state(0), unit.state(1)}) {
        double sum = 0;
        if (run::writesUnit(plan, unit.unit(), groups.mesh()))
          for (const run::Piece &piece :
               run::piecesOf(plan, unit.unit(), unit.shardBegin(),
                             unit.shardEnd(), groups.mesh()))
            for (int64_t i = piece.begin; i < piece.end; ++i)
              sum += std::ldexp(
                  std::abs(flat[piece.offset + i - piece.begin].item<float>()),
                  static_cast<int>(i % 7));
        sums.push_back(sum);
      }
    }
    std::vector<double> total(sums.size());
    const std::vector<double> all = groups.gather(sums);
    for (size_t i = 0; i < all.size(); ++i)
      total[i % sums.size()] += all[i];
    return total;
  };
  auto saved = onRanks(two, [&](run::Groups &groups) {
    std::string error;
    auto device = run::makeDevice("cpu", 0, error);
    Executor executor(two, *device, groups);
    run::initialize(executor, 3);
    for (int step = 0; step < 3; ++step)
      executor.step(
          [&](int64_t, const std::string &name) {
            return batch(two, name, step * 2 + groups.mesh().dataIndex());
          },
          {0.05});
    run::saveCheckpoint(executor, folder.path, 0, {"one", 3, 6, 3, {}}, {});
    return fingerprint(executor, groups);
  });
  ASSERT_EQ(saved[0].size(), 6u);
  EXPECT_GT(saved[0][5], 0);
  for (const plan::Plan *plan : {&two, &three, &hybrid})
    for (const auto &got : onRanks(*plan, [&](run::Groups &groups) {
           std::string error;
           auto device = run::makeDevice("cpu", 0, error);
           Executor executor(*plan, *device, groups);
           run::Buffers buffers;
           auto state = run::loadCheckpoint(
               executor, folder.path + "/step-00000003", buffers);
           auto values = fingerprint(executor, groups);
           values.push_back(state.step);
           values.push_back(state.microBatch);
           values.push_back(executor.optimizerSteps());
           return values;
         })) {
      ASSERT_EQ(got.size(), 9u);
      for (int i = 0; i < 6; ++i)
        EXPECT_NEAR(got[i] / saved[0][i], 1.0, 1e-12);
      EXPECT_EQ(got[6], 3);
      EXPECT_EQ(got[7], 6);
      EXPECT_EQ(got[8], 3);
    }
}

TEST(RuntimeCheckpoint, InitialValuesDoNotDependOnTheNumberOfRanks) {
  std::vector<double> first;
  for (int64_t ranks : {1, 2, 3}) {
    const plan::Plan plan = tinyPlan(with(ranks));
    auto all = onRanks(plan, [&](run::Groups &groups) {
      std::string error;
      auto device = run::makeDevice("cpu", 0, error);
      Executor executor(plan, *device, groups);
      run::initialize(executor, 11);
      run::UnitStorage &unit = executor.unit(1);
      std::vector<double> values;
      for (const run::Piece &piece :
           run::piecesOf(plan, unit.unit(), unit.shardBegin(), unit.shardEnd(),
                         groups.mesh()))
        for (int64_t i = 0; i < piece.end - piece.begin; ++i)
          values.push_back(unit.shard()[piece.offset + i].item<float>());
      return values;
    });
    std::vector<double> values;
    for (const auto &part : all)
      values.insert(values.end(), part.begin(), part.end());
    if (first.empty())
      first = values;
    EXPECT_EQ(values, first) << ranks << " ranks";
  }
  ASSERT_EQ(first.size(), 29u * 12);
  double sum = 0, square = 0;
  for (double value : first)
    sum += value, square += value * value;
  EXPECT_NEAR(sum / first.size(), 0.0, 0.1);
  EXPECT_NEAR(std::sqrt(square / first.size()), 0.5, 0.05);
}

} // namespace
