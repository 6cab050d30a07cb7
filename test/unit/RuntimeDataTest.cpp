//===- RuntimeDataTest.cpp - The order of samples, and bad files ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Loader.h"
#include "runtime/data/Npy.h"
#include "runtime/data/Prefetch.h"
#include "runtime/data/SampleOrder.h"
#include "runtime/data/Vocabulary.h"

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

TEST_F(Data, SamplesAreCountedInTheFilesAlsoWhereTheyAreMixed) {
  write("a.bin", count(14)); // 3 samples
  write("b.bin", count(22)); // 5
  auto holds = [&] {
    Ids samples;
    for (int64_t k = 0; k < 4; ++k)
      for (int64_t row = 0; row < 2; ++row) {
        const int64_t sample = loader.sampleOf(k, row);
        const int64_t inFile = sample < 3 ? sample : sample - 3;
        EXPECT_EQ(load("input_ids", k)[row * 4], 4 * inFile);
        samples.push_back(sample);
      }
    return samples;
  };
  source.files = {{"a.bin", 0, ""}, {"b.bin", 0, ""}};
  ASSERT_EQ(open(), "opened");
  EXPECT_EQ(holds(), (Ids{0, 1, 2, 3, 4, 5, 6, 7}));
  source.shuffle = true;
  ASSERT_EQ(open(), "opened");
  Ids samples = holds();
  EXPECT_FALSE(std::is_sorted(samples.begin(), samples.end()));
  std::sort(samples.begin(), samples.end());
  EXPECT_EQ(samples, (Ids{0, 1, 2, 3, 4, 5, 6, 7}));
  // One in four is of the first file.
  source.shuffle = false;
  source.files = {{"a.bin", 1, ""}, {"b.bin", 3, ""}};
  ASSERT_EQ(open(), "opened");
  samples = holds();
  EXPECT_EQ(std::count_if(samples.begin(), samples.end(),
                          [](int64_t sample) { return sample < 3; }),
            2);
}

TEST_F(Data, EpochsEndWithWholeMicroBatches) {
  write("tokens.bin", count(30)); // 7 samples
  // Two ranks take 4 samples at once: 1 whole turn, or 2 with repeated ones.
  std::string error;
  auto firsts = [&](const char *end, int64_t batches) {
    source.epochEnd = end;
    loader = Loader();
    EXPECT_TRUE(loader.open(source, job,
                            {{"input_ids", plan::DType::I64, {2, 4}}}, folder,
                            error, 2))
        << error;
    Ids samples;
    for (int64_t k = 0; k < batches; ++k) {
      const Ids ids = load("input_ids", k);
      samples.insert(samples.end(), {ids[0] / 4, ids[4] / 4});
    }
    return samples;
  };
  EXPECT_EQ(firsts("drop", 4), (Ids{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(loader.epochSamples(), 4);
  EXPECT_EQ(firsts("repeat", 5), (Ids{0, 1, 2, 3, 4, 5, 6, 0, 0, 1}));
  EXPECT_EQ(loader.epochSamples(), 8);
  EXPECT_EQ(firsts("", 5), (Ids{0, 1, 2, 3, 4, 5, 6, 0, 1, 2}));
  EXPECT_EQ(loader.epochSamples(), 0);
  source.epochEnd = "drop";
  loader = Loader();
  EXPECT_FALSE(loader.open(source, job,
                           {{"input_ids", plan::DType::I64, {2, 4}}}, folder,
                           error, 4));
  EXPECT_NE(error.find("drop_last leaves nothing"), std::string::npos);
}

TEST_F(Data, AnOrderThatDoesNotContinueIsToldByItsParts) {
  write("tokens.bin", count(30));
  job.data = source;
  const SampleOrder before = sampleOrder(job, folder, 0);
  EXPECT_EQ(before, (SampleOrder{{"sequence_length", "4"},
                                 {"dtype", "uint16"},
                                 {"shuffle", "false"},
                                 {"file", "tokens.bin of 60 bytes"}}));
  EXPECT_EQ(differences(before, before), std::vector<std::string>());
  // Checkpoints of an earlier accel-run record none.
  EXPECT_EQ(differences({}, before), std::vector<std::string>());
  write("tokens.bin", count(31));
  job.sequenceLength = 8;
  job.data.shuffle = true;
  const std::string ending = ": data does not continue where it stood";
  EXPECT_EQ(
      differences(before, sampleOrder(job, folder, 0)),
      (std::vector<std::string>{
          "the checkpoint's data had file tokens.bin of 60 bytes, the plan's "
          "has file tokens.bin of 62 bytes" +
              ending,
          "the checkpoint's data had no seed, the plan's has seed 0" + ending,
          "the checkpoint's samples had 4 tokens, the plan's have 8" + ending,
          "the checkpoint's data had shuffle false, the plan's has shuffle "
          "true" +
              ending}));
  // An epoch's length is told where both have one.
  job.data.epochEnd = "drop";
  const SampleOrder dropped = sampleOrder(job, folder, 6);
  EXPECT_EQ(differences(dropped, sampleOrder(job, folder, 4)),
            (std::vector<std::string>{
                "an epoch of the checkpoint's data had 6 samples, the plan's "
                "has 4" +
                ending}));
  EXPECT_EQ(differences(sampleOrder(job, folder, 0), dropped),
            std::vector<std::string>());
  job.data.path.clear();
  job.data.files = {{"tokens.bin", 0.25, "starts.npy"}, {"b.bin", 3, ""}};
  EXPECT_EQ(sampleOrder(job, folder, 0).at("weight of file 1"), "0.25");
  EXPECT_EQ(sampleOrder(job, folder, 0).at("documents.starts of file 1"),
            "starts.npy");
}

TEST_F(Data, FilesAreOneListOfSamplesOrShareThemByWeight) {
  write("a.bin", std::vector<uint16_t>(22, 1)); // 5 samples
  write("b.bin", std::vector<uint16_t>(10, 2)); // 2
  write("c.bin", std::vector<uint16_t>(13, 3)); // 3
  source.path.clear();
  source.files = {{"a.bin", 0, ""}, {"b.bin", 0, ""}, {"c.bin", 0, ""}};
  job.microBatch = 1;
  auto sources = [&](int64_t count) {
    Ids found;
    for (int64_t k = 0; k < count; ++k)
      found.push_back(load("input_ids", k)[0]);
    return found;
  };
  ASSERT_EQ(open(), "opened");
  EXPECT_EQ(loader.samples(), 10);
  EXPECT_EQ(sources(11), (Ids{1, 1, 1, 1, 1, 2, 2, 3, 3, 3, 1}));
  source.shuffle = true;
  ASSERT_EQ(open(), "opened");
  Ids mixed = sources(10);
  EXPECT_NE(mixed, (Ids{1, 1, 1, 1, 1, 2, 2, 3, 3, 3}));
  std::sort(mixed.begin(), mixed.end());
  EXPECT_EQ(mixed, (Ids{1, 1, 1, 1, 1, 2, 2, 3, 3, 3}));
  // Shares hold after any number of samples, to one for each halving.
  source.files[0].weight = 0.5;
  source.files[1].weight = 0.3;
  source.files[2].weight = 0.2;
  ASSERT_EQ(open(), "opened");
  const Ids many = sources(1000);
  for (size_t n : {10, 100, 777, 1000}) {
    const double weights[] = {0.5, 0.3, 0.2};
    for (int file = 0; file < 3; ++file)
      EXPECT_NEAR(std::count(many.begin(), many.begin() + n, file + 1),
                  weights[file] * n, 1.5);
  }
}

TEST_F(Data, DocumentsStartPositionsAnewAndDoNotFollowOneAnother) {
  job.microBatch = 1;
  job.sequenceLength = 6;
  source.endOfDocument = 99;
  // Two samples: the second begins within a document, and ends with one.
  write<uint16_t>("tokens.bin", {1, 2, 99, 3, 99, 4, 5, 6, 99, 7, 8, 99, 9});
  auto opened = [&] {
    std::string error;
    loader = Loader();
    const std::vector<int64_t> shape = {1, 6};
    return loader.open(source, job,
                       {{"input_ids", plan::DType::I64, shape},
                        {"labels", plan::DType::I64, shape},
                        {"position_ids", plan::DType::I64, shape}},
                       folder, error)
               ? "opened"
               : error;
  };
  auto check = [&] {
    EXPECT_EQ(load("input_ids", 0), (Ids{1, 2, 99, 3, 99, 4}));
    EXPECT_EQ(load("position_ids", 0), (Ids{0, 1, 2, 0, 1, 0}));
    EXPECT_EQ(load("labels", 0), (Ids{2, 99, -100, 99, -100, 5}));
    EXPECT_EQ(load("input_ids", 1), (Ids{5, 6, 99, 7, 8, 99}));
    EXPECT_EQ(load("position_ids", 1), (Ids{0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(load("labels", 1), (Ids{6, 99, -100, 8, 99, -100}));
  };
  ASSERT_EQ(opened(), "opened");
  check();
  // The same by a list of positions.
  write<int64_t>("starts.npy", {0, 3, 5, 9, 12}, npyHead("<i8", "(5,)"));
  source.endOfDocument = -1;
  source.files = {{"tokens.bin", 0, "starts.npy"}};
  ASSERT_EQ(opened(), "opened");
  check();
  write<int64_t>("starts.npy", {0, 5, 3}, npyHead("<i8", "(3,)"));
  EXPECT_NE(opened().find("element 2 is 3, and positions of documents must "
                          "ascend"),
            std::string::npos);
  write<int64_t>("starts.npy", {0, 13}, npyHead("<i8", "(2,)"));
  EXPECT_NE(opened().find("element 1 is 13, and there are 13 tokens"),
            std::string::npos);
}

TEST_F(Data, WhatIsReadAheadIsTheSame) {
  write("tokens.bin", count(90));
  source.shuffle = true;
  ASSERT_EQ(open(), "opened");
  std::vector<Ids> want;
  for (int64_t k = 1; k < 40; k += 3)
    want.push_back(load("labels", k));
  ASSERT_EQ(open(), "opened");
  {
    Prefetch ahead(loader, 1, 3, want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      const at::Tensor batch = ahead.load("labels", 1 + 3 * i);
      const int64_t *data = batch.const_data_ptr<int64_t>();
      EXPECT_EQ(Ids(data, data + batch.numel()), want[i]);
      EXPECT_EQ(ahead.load("input_ids", 1 + 3 * i).numel(), batch.numel());
    }
    EXPECT_THROW(ahead.load("labels", 1 + 3 * want.size()), std::logic_error);
  }
  ASSERT_EQ(open(), "opened");
  {
    // A later chunk of the model reads labels of micro-batches whose tokens an
    // earlier one read.
    Prefetch ahead(loader, 1, 3, want.size(), 2);
    for (size_t i = 0; i < want.size(); ++i) {
      ahead.load("input_ids", 1 + 3 * i);
      if (i < 2)
        continue;
      const at::Tensor batch = ahead.load("labels", 1 + 3 * (i - 2));
      const int64_t *data = batch.const_data_ptr<int64_t>();
      EXPECT_EQ(Ids(data, data + batch.numel()), want[i - 2]);
    }
    EXPECT_THROW(ahead.load("labels", 1), std::logic_error);
  }
  Prefetch unused(loader, 0, 1, 1000); // ends while it could go on
}

TEST_F(Data, WhatIsReadAheadFailsWhereItIsAskedFor) {
  job.sequenceLength = 1 << 20;
  job.microBatch = 1;
  // Too large to be read through at the start; nearly all of it is a hole.
  std::vector<uint16_t> ids((1 << 20) + 6, 1);
  ids.back() = 200;
  write("tokens.bin", ids);
  std::filesystem::resize_file(folder + "/tokens.bin", (int64_t(1) << 28) + 4);
  ASSERT_EQ(open(), "opened");
  Prefetch ahead(loader, 0, 1, 3);
  EXPECT_EQ(ahead.load("input_ids", 0).numel(), 1 << 20);
  EXPECT_THROW(ahead.load("input_ids", 1), std::runtime_error);
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

TEST_F(Data, TokensOfATokenizerFileAreText) {
  auto vocabulary = [&](const std::string &json) {
    std::ofstream(folder + "/tokenizer.json") << json;
    std::string why;
    auto read = Vocabulary::read(folder + "/tokenizer.json", why);
    return std::make_pair(std::move(read), why);
  };
  // GPT-2's characters for bytes: a space, and the halves of an umlaut.
  auto [levels, why] = vocabulary(
      R"({"model": {"type": "BPE", "vocab": {"Hi": 0, "\u0120\u00c3": 1,
          "\u00a4": 2, "<s>": 3}},
          "added_tokens": [{"id": 3, "content": "<s>", "special": true}],
          "decoder": {"type": "ByteLevel"}})");
  ASSERT_TRUE(levels) << why;
  EXPECT_EQ(levels->decode({3, 0, 1, 2}), "Hi \xc3\xa4");
  EXPECT_EQ(levels->decode({0, 1}),
            "Hi \xef\xbf\xbd"); // cut within a character
  auto [spaces, none] = vocabulary(
      R"({"model": {"type": "BPE", "vocab": {"\u2581a": 0, "b": 1,
          "<0x0A>": 2}}, "decoder": {"type": "Sequence", "decoders": [
          {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
          {"type": "ByteFallback"}, {"type": "Fuse"},
          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})");
  ASSERT_TRUE(spaces) << none;
  EXPECT_EQ(spaces->decode({0, 1, 2, 0}), "ab\n a");
  EXPECT_NE(vocabulary(R"({"model": {"vocab": {}},
                           "decoder": {"type": "WordPiece"}})")
                .second.find("WordPiece, is not known"),
            std::string::npos);
  EXPECT_NE(vocabulary("{").second, "");
  EXPECT_EQ(Vocabulary::ofBytes().decode({72, 105}), "Hi");
}

} // namespace
