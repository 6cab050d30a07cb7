//===- RuntimePiecesTest.cpp - Small parts of the runtime -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Initialize.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/collectives/Groups.h"
#include "runtime/collectives/StopSignal.h"
#include "runtime/execute/Allocator.h"
#include "runtime/execute/Operators.h"
#include "runtime/optimizer/LossScaler.h"
#include "runtime/plan/LearningRate.h"
#include "runtime/plan/Sha256.h"
#include "runtime/tensors/Kernels.h"
#include "runtime/tensors/Parallel.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <unistd.h>

using namespace accel;
using namespace accel::run;

namespace {

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

TEST(StopSignalDeathTest, BeforeTraining) {
  EXPECT_EXIT(
      {
        catchStopSignals();
        std::raise(SIGINT);
      },
      testing::ExitedWithCode(128 + SIGINT),
      "accel-run stops before training, as SIGINT asked");
  EXPECT_EXIT(
      {
        setStopBefore("accel-run: rank 1", true);
        catchStopSignals();
        std::raise(SIGUSR1);
      },
      testing::ExitedWithCode(exitResume),
      "accel-run: rank 1 stops before training, as SIGUSR1 asked; nothing is "
      "lost: start it again as before");
}

TEST(StopSignalDeathTest, FirstSigtermAfterSigusr1) {
  auto later = [] { std::this_thread::sleep_for(std::chrono::seconds(4)); };
  EXPECT_EXIT(
      {
        catchStopSignals();
        deferStopSignals();
        std::raise(SIGUSR1);
        later();
        std::raise(SIGTERM);
        std::fprintf(stderr, "after %s", signalName(stopAsked()).c_str());
        later();
        std::raise(SIGTERM);
        std::fprintf(stderr, "not reached");
      },
      testing::ExitedWithCode(128 + SIGTERM), "^after SIGUSR1$");
}

TEST(RuntimeSha256, KnownDigests) {
  auto digest = [](const std::string &text, size_t piece) {
    plan::Sha256 hash;
    for (size_t at = 0; at < text.size(); at += piece)
      hash.update(std::string_view(text).substr(at, piece));
    return hash.hexDigest();
  };
  EXPECT_EQ(digest("abc", 3), "ba7816bf8f01cfea414140de5dae2223"
                              "b00361a396177a9cb410ff61f20015ad");
  for (size_t piece : {1, 63, 64, 65, 1000})
    EXPECT_EQ(digest(std::string(1000, 'x'), piece),
              "44f8354494a5ba03ba1792a8d3e9c534"
              "c47a9181980fde7a3f44b06ef2ae7c7f");
}

TEST(RuntimeMesh, LastAxisIsFastest) {
  plan::Plan plan;
  plan.axes = {{"dp_replicate", 2}, {"dp_shard", 3}};
  const Mesh mesh(plan, 4); // replicate 1, shard 1
  EXPECT_EQ(mesh.position({"dp_shard"}), 1);
  EXPECT_EQ(mesh.position({"dp_replicate"}), 1);
  EXPECT_EQ(mesh.position({"dp_shard", "dp_replicate"}), 4);
  EXPECT_EQ(mesh.groupName({"dp_shard"}), "dp_replicate=1,dp_shard");
  EXPECT_EQ(mesh.dataIndex(), 4);
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

TEST(RuntimeLearningRate, WarmUpAndDecay) {
  plan::LrSchedule s{100, 10, "constant", 0.1};
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 0), 0.1);
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 9), 1.0);
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 99), 1.0);
  s.decay = "linear";
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 10), 1.0);
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 55), 0.55);
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 100), 0.1);
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 1000), 0.1);
  s.decay = "cosine";
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 55), 0.55);
  EXPECT_GT(lrFactor(s, 1.0, 30), 0.1 + 0.9 * 70 / 90);
  s.decay = "cosine_with_restarts";
  s.cycles = 3; // 30 steps each
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 10), 1.0);
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 25), 0.55);
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 40), 1.0);
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 100), 0.1);
  s.decay = "polynomial";
  s.power = 2;
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 55), 0.1 + 0.9 * 0.25);
  s.decay = "inverse_sqrt";
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 10), 1.0);
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 40), 0.5);
  s.timescale = 90;
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 280), 0.5);
  s.decay = "warmup_stable_decay";
  s.decaySteps = 20;
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 80), 1.0);
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 90), 0.55);
  s.decayShape = "1-sqrt";
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 85), 0.55);
  EXPECT_DOUBLE_EQ(lrFactor(s, 1.0, 100), 0.1);
}

TEST(RuntimeLearningRate, GroupsKeepTheirRatios) {
  plan::Job job;
  job.optimizer.groups = {{1e-3, 0}, {1e-5, 0}, {0, 0}, {5e-3, 0}};
  for (const char *decay : {"linear", "cosine", "cosine_with_restarts",
                            "polynomial", "warmup_stable_decay"}) {
    job.schedule = {5, 1, decay, 1e-4};
    job.schedule.decaySteps = 4;
    const std::vector<double> end = plan::learningRates(job, 5);
    ASSERT_EQ(end.size(), 4U) << decay;
    // What transformers' schedulers end at.
    EXPECT_DOUBLE_EQ(end[0], 1e-4) << decay;
    EXPECT_DOUBLE_EQ(end[1], 1e-6) << decay;
    EXPECT_EQ(end[2], 0) << decay;
    EXPECT_DOUBLE_EQ(end[3], 5e-4) << decay;
    for (int64_t step = 0; step < 7; ++step) {
      const std::vector<double> rates = plan::learningRates(job, step);
      EXPECT_DOUBLE_EQ(rates[3], 5 * rates[0]) << decay << " " << step;
      EXPECT_EQ(rates[2], 0) << decay << " " << step;
    }
  }
  // Nothing to decay from.
  job.optimizer.groups = {{0, 0}};
  job.schedule.minLr = 0;
  EXPECT_EQ(plan::learningRates(job, 3).front(), 0);
}

TEST(RuntimeLossScaler, OffIsOne) {
  LossScaler off(false);
  off.update(true);
  EXPECT_EQ(off.scale(), 1.0);
  LossScaler on(true);
  EXPECT_EQ(on.scale(), 65536.0);
  on.update(true);
  EXPECT_EQ(on.scale(), 32768.0);
  for (int i = 0; i < 2000; ++i)
    on.update(false);
  EXPECT_EQ(on.scale(), 65536.0);
  LossScaler own(true, {1024, 3, 0.25, 2});
  EXPECT_EQ(own.scale(), 1024.0);
  own.update(true);
  EXPECT_EQ(own.scale(), 256.0);
  own.update(false);
  own.update(false);
  EXPECT_EQ(own.scale(), 768.0);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

TEST(RuntimeKernels, SlicesAreSummedInOrderAndRoundedOnce) {
  for (auto type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    const int64_t n = 5000;
    const at::Tensor slices = at::randn({3 * n}).to(type);
    at::Tensor sum = at::empty({n});
    const std::vector<at::Tensor> pieces = {slices.narrow(0, 0, n),
                                            slices.narrow(0, n, n),
                                            slices.narrow(0, 2 * n, n)};
    sumSlices(sum, pieces, false);
    const at::Tensor f = slices.to(at::kFloat);
    at::Tensor want = f.narrow(0, 0, n) + f.narrow(0, n, n);
    want = want + f.narrow(0, 2 * n, n);
    EXPECT_TRUE(at::equal(sum, want)) << type;
    sumSlices(sum, pieces, true);
    EXPECT_TRUE(at::equal(sum, want + want)) << type;
  }
}

TEST(RuntimeKernels, SquaresAndScale) {
  const at::Tensor values = at::randn({200003});
  at::Tensor sum = at::zeros({}, at::kDouble);
  addSquares(values, sum);
  const double want = values.to(at::kDouble).square().sum().item<double>();
  EXPECT_NEAR(sum.item<double>() / want, 1.0, 1e-7);
  at::Tensor scaled = values.clone();
  scaleBy(scaled, at::full({}, 0.25, at::kDouble));
  EXPECT_TRUE(at::equal(scaled, values * 0.25));
}

/// Sets torch's threads for a test.
struct Threads {
  explicit Threads(int count) : before(at::get_num_threads()) {
    at::set_num_threads(count);
  }
  ~Threads() { at::set_num_threads(before); }
  const int before;
};

TEST(RuntimeKernels, LoopsRunOnTorchsThreads) {
  Threads three(3);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::vector<int> times(1000);
  parallelFor(0, 1000, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      ++times[i];
    // A loop in a loop is this thread's own.
    parallelFor(0, 100, 1,
                [&](int64_t from, int64_t to) { EXPECT_EQ(to - from, 100); });
    std::lock_guard<std::mutex> lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids.size(), 3U);
  EXPECT_EQ(times, std::vector<int>(1000, 1));
  EXPECT_FALSE(at::in_parallel_region());
  EXPECT_THROW(parallelFor(0, 1000, 10,
                           [](int64_t begin, int64_t) {
                             if (begin > 0)
                               throw std::runtime_error("of a thread");
                           }),
               std::runtime_error);
  ids.clear();
  parallelFor(0, 10, 10, [&](int64_t, int64_t) {
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids, std::set<std::thread::id>({std::this_thread::get_id()}));
}

TEST(RuntimeKernels, ThreadsChangeNoBit) {
  registerOperators();
  const int64_t n = 700001;
  const at::Tensor values = at::randn({n}), other = at::randn({n});
  const at::Tensor matrix = values.narrow(0, 0, 700 * 1000).view({700, 1000});
  auto all = [&](int threads) {
    Threads set(threads);
    std::vector<at::Tensor> results;
    results.push_back(values.clone());
    sumSlices(results.back(), {values, other, values}, true);
    results.push_back(at::zeros({}, at::kDouble));
    addSquares(values, results.back());
    results.push_back(at::zeros({700}));
    addRowSquares(matrix, results.back());
    results.push_back(at::zeros({1000}));
    addColumnSquares(matrix, results.back());
    results.push_back(values.clone());
    scaleBy(results.back(), at::full({}, 0.3, at::kDouble));
    torch::jit::Stack stack = {values, 0.3, std::vector<int64_t>{5, 7}};
    c10::Dispatcher::singleton()
        .findSchemaOrThrow("accel::dropout", "")
        .callBoxed(stack);
    results.push_back(stack[0].toTensor());
    return results;
  };
  const std::vector<at::Tensor> one = all(1), four = all(4);
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_TRUE(at::equal(one[i], four[i])) << i;
}

//===----------------------------------------------------------------------===//
// Allocator
//===----------------------------------------------------------------------===//

TEST(RuntimeAllocator, CountsAlignedBytesAndReusesThem) {
  Allocator &allocator = Allocator::get();
  const int64_t before = allocator.current();
  allocator.resetPeak();
  Block *a = allocator.allocate(1);
  Block *b = allocator.allocate(1000 * 1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(Allocator::data(a)) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(Allocator::data(b)) % 64, 0u);
  EXPECT_EQ(allocator.current() - before, 64 + 1000000);
  allocator.release(a);
  allocator.release(b);
  EXPECT_EQ(allocator.current(), before);
  EXPECT_EQ(allocator.count().peak - before, 64 + 1000000);
}

TEST(RuntimeAllocator, RandomUseKeepsBlocksApartAndMemoryBounded) {
  Allocator &allocator = Allocator::get();
  struct Held {
    Block *block;
    size_t bytes;
    unsigned char mark;
  };
  std::vector<Held> held;
  std::mt19937 random(1);
  int64_t peak = 0;
  for (int i = 0; i < 20000; ++i) {
    if (held.size() < 60 && random() % 2) {
      const size_t bytes = 1 + random() % (random() % 4 ? 300000 : 5000);
      Block *block = allocator.allocate(bytes);
      const auto mark = static_cast<unsigned char>(random());
      std::memset(Allocator::data(block), mark, bytes);
      held.push_back({block, bytes, mark});
      peak = std::max(peak, allocator.current());
    } else if (!held.empty()) {
      const size_t at = random() % held.size();
      auto *data =
          static_cast<unsigned char *>(Allocator::data(held[at].block));
      ASSERT_EQ(data[0], held[at].mark);
      ASSERT_EQ(data[held[at].bytes - 1], held[at].mark);
      allocator.release(held[at].block);
      held[at] = held.back();
      held.pop_back();
    }
  }
  for (const Held &h : held)
    allocator.release(h.block);
  // Best fit with merging loses little even to a random order.
  EXPECT_LT(allocator.highWater(), 2 * peak + (4 << 20));
}

//===----------------------------------------------------------------------===//
// safetensors
//===----------------------------------------------------------------------===//

class Files : public testing::Test {
protected:
  void SetUp() override {
    char text[] = "/tmp/accel-test-XXXXXX";
    folder = mkdtemp(text);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string failure(const std::string &bytes) {
    const std::string path = folder + "/x.safetensors";
    std::filesystem::remove(path);
    writeTextDurably(path, bytes);
    try {
      readHeader(File(path, File::Mode::Read));
    } catch (const FileError &error) {
      return error.what();
    }
    return "read";
  }
  static std::string withHead(const std::string &json, size_t data) {
    const uint64_t length = json.size();
    return std::string(reinterpret_cast<const char *>(&length), 8) + json +
           std::string(data, 'x');
  }
  std::string folder;
};

TEST_F(Files, HeadersRoundTrip) {
  SafetensorsHeader header;
  header.metadata["format"] = "pt";
  header.tensors = {{"b", plan::DType::BF16, {3, 5}, 0},
                    {"a", plan::DType::F32, {}, 0}};
  const std::string head = layOut(header);
  EXPECT_EQ(header.tensors[0].offset % 8, 0);
  EXPECT_EQ(header.fileBytes, static_cast<int64_t>(head.size()) + 34);
  const std::string path = folder + "/y";
  writeTextDurably(path, head + std::string(34, '\0'));
  const SafetensorsHeader again = readHeader(File(path, File::Mode::Read));
  ASSERT_EQ(again.tensors.size(), 2u);
  EXPECT_EQ(again.tensors[0].name, "b");
  EXPECT_EQ(again.tensors[0].shape, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(again.tensors[1].offset, header.tensors[1].offset);
  EXPECT_EQ(again.metadata.at("format"), "pt");
}

TEST_F(Files, DamagedHeadersAreRefused) {
  const std::string good =
      R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(failure(withHead(good, 8)), "read");
  EXPECT_NE(failure("abc").find("shorter than 8 bytes"), std::string::npos);
  EXPECT_NE(failure(withHead(good, 7)).find("truncated"), std::string::npos);
  EXPECT_NE(failure(withHead("{\"w\":", 8)).find("cannot be read"),
            std::string::npos);
  EXPECT_NE(failure(withHead(R"({"w":{"dtype":"F32","shape":[3],)"
                             R"("data_offsets":[0,8]}})",
                             8))
                .find("has 8 bytes"),
            std::string::npos);
  EXPECT_NE(failure(withHead(R"({"w":{"dtype":"F32","shape":"2",)"
                             R"("data_offsets":[0,8]}})",
                             8))
                .find("cannot be read"),
            std::string::npos);
  EXPECT_NE(failure(std::string(16, '\xff')).find("is not a safetensors"),
            std::string::npos);
}

/// Mean and deviation of a parameter's initial values.
std::pair<double, double> moments(const std::vector<float> &values) {
  double sum = 0, squares = 0;
  for (float value : values) {
    sum += value;
    squares += double(value) * value;
  }
  const auto n = static_cast<double>(values.size());
  return {sum / n, std::sqrt(squares / n)};
}

TEST(InitialValues, FollowTheirDistribution) {
  using Kind = plan::Initializer::Kind;
  plan::Parameter p;
  p.fqn = "w";
  p.shape = {100, 1000};
  auto values = [&](plan::Initializer init, int64_t begin = 0,
                    int64_t count = 100000) {
    p.init = init;
    return initialValues(p, 7, begin, count);
  };
  auto [mean, deviation] = moments(values({Kind::Normal, 0.5}));
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(deviation, 0.5, 0.01);
  // A normal cut at one deviation has 0.5396 of it left.
  auto cut = values({Kind::TruncatedNormal, 1, -1, 1});
  EXPECT_NEAR(moments(cut).first, 0, 0.01);
  EXPECT_NEAR(moments(cut).second, 0.5396, 0.01);
  EXPECT_GE(*std::min_element(cut.begin(), cut.end()), -1);
  EXPECT_LE(*std::max_element(cut.begin(), cut.end()), 1);
  auto even = values({Kind::Uniform, 0, -2, 4});
  EXPECT_NEAR(moments(even).first, 1, 0.03);
  EXPECT_NEAR(moments(even).second, 2, 0.03);
  EXPECT_EQ(moments(values({Kind::Constant, 0.25})).second, 0.25);
  // A row of zeros, and parts as the whole has them.
  auto padded = values({Kind::Normal, 1, 0, 0, 3});
  EXPECT_EQ(std::count(padded.begin() + 3000, padded.begin() + 4000, 0.0f),
            1000);
  EXPECT_EQ(std::count(padded.begin(), padded.begin() + 3000, 0.0f), 0);
  auto part = values({Kind::Normal, 1, 0, 0, 3}, 2990, 1020);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), padded.begin() + 2990));
  auto table = values({Kind::Sinusoids, 10000});
  EXPECT_FLOAT_EQ(table[5 * 1000], std::sin(5.0f));
  EXPECT_FLOAT_EQ(table[5 * 1000 + 500], std::cos(5.0f));
  EXPECT_NEAR(table[99 * 1000 + 499], std::sin(99e-4), 1e-6);
}

} // namespace
