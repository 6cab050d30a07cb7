//===- RuntimeDataTest.cpp - The order of samples, and bad files ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Loader.h"
#include "runtime/data/Npy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <unistd.h>

using namespace accel;
using namespace accel::run;

namespace {

class Data : public testing::Test {
protected:
  void SetUp() override {
    char text[] = "/tmp/accel-test-XXXXXX";
    folder = mkdtemp(text);
    job.microBatch = 2;
    job.sequenceLength = 4;
    job.vocab = 100;
    source.kind = "tokens";
    source.path = "tokens.bin";
    source.dtype = "uint16";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  template <typename T>
  void write(const std::string &name, const std::vector<T> &values,
             const std::string &head = "") {
    std::ofstream file(folder + "/" + name, std::ios::binary);
    file << head;
    file.write(reinterpret_cast<const char *>(values.data()),
               values.size() * sizeof(T));
  }
  static std::string npyHead(const std::string &descr,
                             const std::string &shape) {
    std::string text = "{'descr': '" + descr +
                       "', 'fortran_order': False, 'shape': " + shape + ", }";
    text.resize((10 + text.size() + 64) / 64 * 64 - 11, ' ');
    text += '\n';
    std::string head = "\x93NUMPY";
    head += '\x01';
    head += '\0';
    head += static_cast<char>(text.size() & 0xff);
    head += static_cast<char>(text.size() >> 8);
    return head + text;
  }
  std::string open() {
    std::string error;
    loader = Loader();
    const std::vector<int64_t> shape = {job.microBatch, job.sequenceLength};
    return loader.open(source, job,
                       {{"input_ids", plan::DType::I64, shape},
                        {"labels", plan::DType::I64, shape}},
                       folder, error)
               ? "opened"
               : error;
  }
  std::vector<int64_t> load(const char *name, int64_t k) {
    at::Tensor batch = loader.load(name, k);
    const int64_t *data = batch.const_data_ptr<int64_t>();
    return {data, data + batch.numel()};
  }
  template <typename T = uint16_t> static std::vector<T> count(int n) {
    std::vector<T> values(n);
    std::iota(values.begin(), values.end(), T(0));
    return values;
  }

  std::string folder;
  plan::Job job;
  plan::Data source;
  Loader loader;
};

using Ids = std::vector<int64_t>;

TEST_F(Data, SamplesAreConsecutiveAndLabelsAreTheNextToken) {
  // 14 tokens: (14 - 1) / 4 = 3 samples.
  write("tokens.bin", count(14));
  ASSERT_EQ(open(), "opened");
  EXPECT_EQ(loader.samples(), 3);
  EXPECT_EQ(load("input_ids", 0), (Ids{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(load("labels", 0), (Ids{1, 2, 3, 4, 5, 6, 7, 8}));
  // Micro-batch 1 is samples 2 and 3 mod 3 = 0.
  EXPECT_EQ(load("input_ids", 1), (Ids{8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(load("labels", 1), (Ids{9, 10, 11, 12, 1, 2, 3, 4}));
}

TEST_F(Data, EveryTokenTypeAndNpyGiveTheSame) {
  write("tokens.bin", count(14));
  ASSERT_EQ(open(), "opened");
  const Ids want = load("labels", 1);
  write("tokens.bin", count<uint32_t>(14));
  source.dtype = "uint32";
  ASSERT_EQ(open(), "opened");
  EXPECT_EQ(load("labels", 1), want);
  write("tokens.bin", count<int32_t>(14));
  source.dtype = "int32";
  ASSERT_EQ(open(), "opened");
  EXPECT_EQ(load("labels", 1), want);
  write("tokens.bin", count<int64_t>(14));
  source.dtype = "int64";
  ASSERT_EQ(open(), "opened");
  EXPECT_EQ(load("labels", 1), want);
  source.kind = "npy";
  source.path = "tokens.npy";
  write("tokens.npy", count<int32_t>(14), npyHead("<i4", "(14,)"));
  ASSERT_EQ(open(), "opened");
  EXPECT_EQ(load("labels", 1), want);
  source.kind = "text";
  source.path = "text";
  write("text", count<uint8_t>(14));
  ASSERT_EQ(open(), "opened");
  EXPECT_EQ(load("labels", 1), want);
}

TEST_F(Data, ArraysAreRows) {
  source.kind = "arrays";
  source.arrays = {{"input_ids", "a.npy"}, {"labels", "b.npy"}};
  Ids labels = count<int64_t>(12);
  labels[5] = -100;
  write("a.npy", count<int64_t>(12), npyHead("<i8", "(3, 4)"));
  write("b.npy", labels, npyHead("<i8", "(3, 4)"));
  ASSERT_EQ(open(), "opened");
  EXPECT_EQ(load("input_ids", 1), (Ids{8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(load("labels", 0), (Ids{0, 1, 2, 3, 4, -100, 6, 7}));
  write("b.npy", count<int64_t>(8), npyHead("<i8", "(2, 4)"));
  EXPECT_NE(open().find("has 2 rows, and 'input_ids' has 3"),
            std::string::npos);
  write("b.npy", count<int64_t>(10), npyHead("<i8", "(3, 4)"));
  EXPECT_NE(open().find("is truncated"), std::string::npos);
  source.arrays.erase("labels");
  EXPECT_EQ(open(),
            "the model reads 'labels', and data.arrays has no such key");
}

TEST_F(Data, ArraysHaveAnyShapeAndDtype) {
  using plan::DType;
  source.kind = "arrays";
  source.arrays = {{"pixels", "p.npy"}, {"mask", "m.npy"}, {"labels", "l.npy"}};
  const std::vector<Loader::Input> inputs = {{"pixels", DType::F32, {2, 2, 3}},
                                             {"mask", DType::I64, {2, 4}},
                                             {"labels", DType::I64, {2}}};
  job.inputLimits = {{"labels", 3}, {"mask", 2}};
  auto openThese = [&] {
    std::string error;
    loader = Loader();
    return loader.open(source, job, inputs, folder, error) ? "opened" : error;
  };
  std::vector<double> pixels(18);
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = 0.5 * static_cast<double>(i);
  write("p.npy", pixels, npyHead("<f8", "(3, 2, 3)"));
  const std::vector<uint8_t> mask = {1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0};
  write("m.npy", mask, npyHead("|b1", "(3, 4)"));
  write("l.npy", std::vector<int16_t>{2, -100, 1}, npyHead("<i2", "(3,)"));
  ASSERT_EQ(openThese(), "opened");
  const at::Tensor batch = loader.load("pixels", 1);
  ASSERT_EQ(batch.sizes(), (std::vector<int64_t>{2, 2, 3}));
  EXPECT_EQ(batch.const_data_ptr<float>()[0], 6.0f); // sample 2, then 0
  EXPECT_EQ(batch.const_data_ptr<float>()[7], 0.5f);
  EXPECT_EQ(load("mask", 0), (Ids{1, 1, 1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(load("labels", 0), (Ids{2, -100}));

  write("l.npy", std::vector<int16_t>{2, 3, 1}, npyHead("<i2", "(3,)"));
  EXPECT_EQ(openThese(), folder + "/l.npy: element 1 of 'labels' is 3, and the "
                                  "model takes 0 to 2");
  write("l.npy", std::vector<float>{2, 0, 1}, npyHead("<f4", "(3,)"));
  EXPECT_EQ(openThese(), folder + "/l.npy: 'labels' must hold integers");
  write("l.npy", std::vector<int16_t>{2, 0, 1}, npyHead("<i2", "(3, 1)"));
  EXPECT_EQ(openThese(), folder + "/l.npy: 'labels' must be [samples], not "
                                  "[samples, 1]");
}

TEST_F(Data, ShufflingTakesEachSampleOnceAPass) {
  job.microBatch = 1;
  source.shuffle = true;
  source.seed = 5;
  write("tokens.bin", count(4 * 23 + 1));
  ASSERT_EQ(open(), "opened");
  std::vector<Ids> passes;
  for (int pass = 0; pass < 2; ++pass) {
    Ids order;
    for (int i = 0; i < 23; ++i)
      order.push_back(load("input_ids", pass * 23 + i)[0] / 4);
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 23u);
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
    passes.push_back(order);
  }
  EXPECT_NE(passes[0], passes[1]);
  EXPECT_EQ(load("input_ids", 3)[0] / 4, passes[0][3]) << "out of order";
  source.seed = 6;
  ASSERT_EQ(open(), "opened");
  Ids other;
  for (int i = 0; i < 23; ++i)
    other.push_back(load("input_ids", i)[0] / 4);
  EXPECT_NE(other, passes[0]);
}

TEST_F(Data, PermutationsOfAllSizesAreBijections) {
  for (int64_t n : {1, 2, 3, 4, 5, 16, 17, 1000, 4097}) {
    const Permutation permutation(n, 1, 2);
    std::set<int64_t> seen;
    for (int64_t i = 0; i < n; ++i)
      seen.insert(permutation(i));
    EXPECT_EQ(static_cast<int64_t>(seen.size()), n);
    EXPECT_GE(*seen.begin(), 0);
    EXPECT_LT(*seen.rbegin(), n);
  }
}

TEST_F(Data, BadFilesAreRefusedWithTheirName) {
  EXPECT_EQ(open(), folder + "/tokens.bin: No such file or directory");
  write("tokens.bin", count(4));
  EXPECT_EQ(open(), folder + "/tokens.bin: has 4 tokens, and one sample needs "
                             "5");
  write("tokens.bin", std::vector<uint16_t>{});
  EXPECT_EQ(open(), folder + "/tokens.bin: has 0 tokens, and one sample needs "
                             "5");
  write("tokens.bin", count<uint8_t>(13));
  EXPECT_NE(open().find("13 bytes are not a whole number of 2-byte tokens"),
            std::string::npos);
  auto tokens = count(14);
  tokens[9] = 100;
  write("tokens.bin", tokens);
  EXPECT_EQ(open(), folder + "/tokens.bin: token 9 is 100, and the model's "
                             "vocabulary has ids 0 to 99");
  source.dtype = "int16";
  tokens[9] = 0xffff;
  write("tokens.bin", tokens);
  EXPECT_NE(open().find("token 9 is -1"), std::string::npos);
  source.dtype = "float32";
  EXPECT_EQ(open(), "token dtype 'float32' is not known");
  source.kind = "npy";
  source.path = "x.npy";
  write("x.npy", count<float>(14), npyHead("<f4", "(14,)"));
  EXPECT_NE(open().find("only integers can be tokens"), std::string::npos);
  write("x.npy", count<uint16_t>(14));
  EXPECT_NE(open().find("not a .npy file"), std::string::npos);
}

} // namespace
