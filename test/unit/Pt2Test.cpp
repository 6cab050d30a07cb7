//===- Pt2Test.cpp - Tensors inside of .pt2 archives ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Archives are written by torch's own writer, as torch.export.save does.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Pt2.h"

#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

using namespace accel;
using namespace accel::run;

namespace {

constexpr const char *config = R"({"config": {
  "layer.weight": {"path_name": "weight_0", "use_pickle": false, "tensor_meta":
    {"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}],
     "strides": [{"as_int": 3}, {"as_int": 1}],
     "storage_offset": {"as_int": 1}, "device": {"type": "cpu"}}},
  "column.major": {"path_name": "weight_0", "use_pickle": false, "tensor_meta":
    {"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}],
     "strides": [{"as_int": 1}, {"as_int": 2}],
     "storage_offset": {"as_int": 0}, "device": {"type": "cpu"}}},
  "without.values": {"path_name": "weight_1", "use_pickle": false,
    "tensor_meta": {"dtype": 7, "sizes": [{"as_int": 2}],
     "strides": [{"as_int": 1}],
     "storage_offset": {"as_int": 0}, "device": {"type": "meta"}}},
  "pickled": {"path_name": "weight_2", "use_pickle": true}}})";

class Pt2 : public ::testing::Test {
protected:
  Pt2() : path(::testing::TempDir() + "accel-pt2-test.pt2") {}
  ~Pt2() override { std::filesystem::remove(path); }

  /// A model of eight numbers, with the given text of the tensors' places.
  void write(const std::string &text, bool compress = false) {
    caffe2::serialize::PyTorchStreamWriter writer(path);
    writer.writeRecord("archive_format", "pt2", 3);
    writer.writeRecord("data/weights/weight_0", numbers, sizeof numbers,
                       compress);
    writer.writeRecord("data/weights/model_weights_config.json", text.data(),
                       text.size());
    writer.writeEndOfFile();
  }
  std::vector<StoredTensor> read() {
    File file(path, File::Mode::Read);
    return readPt2(file);
  }
  std::string error() {
    try {
      read();
    } catch (const FileError &failure) {
      return failure.what();
    }
    return "";
  }
  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in),
            std::istreambuf_iterator<char>()};
  }
  void overwrite(const std::string &bytes) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  const float numbers[8] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f};
  std::string path;
};

TEST_F(Pt2, ATensorIsAStretchOfTheFile) {
  write(config);
  const std::vector<StoredTensor> tensors = read();
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors[0].name, "layer.weight");
  EXPECT_EQ(tensors[0].dtype, plan::DType::F32);
  EXPECT_EQ(tensors[0].shape, (std::vector<int64_t>{2, 3}));
  float found[6] = {};
  File(path, File::Mode::Read).readAt(tensors[0].offset, found, sizeof found);
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(found[i], numbers[i + 1]) << i;
}

TEST_F(Pt2, WhatIsCompressedIsLeftOut) {
  write(config, /*compress=*/true);
  EXPECT_TRUE(read().empty());
}

TEST_F(Pt2, ATensorThatIsLargerThanItsEntry) {
  std::string text = config;
  text.replace(text.find("\"as_int\": 2}"), 12, "\"as_int\": 9}");
  write(text);
  EXPECT_NE(error().find("'layer.weight' needs 108 bytes, and its entry has "
                         "32"),
            std::string::npos)
      << error();
}

TEST_F(Pt2, PlacesThatAreNoJson) {
  write("{\"config\": {");
  EXPECT_NE(error().find("model_weights_config.json' cannot be read"),
            std::string::npos)
      << error();
}

/// Wherever a file ends, and whatever a byte of its directory is, the answer is
/// tensors inside of the file or an error with its path.
TEST_F(Pt2, DamagedArchivesAreErrors) {
  write(config);
  const std::string whole = bytes();
  for (size_t size = 0; size < whole.size(); size += 61) {
    overwrite(whole.substr(0, size));
    EXPECT_EQ(error().find(path), 0u) << size;
  }
  int refused = 0;
  for (size_t at = whole.size() * 3 / 4; at < whole.size(); at += 3) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    overwrite(damaged);
    try {
      for (const StoredTensor &tensor : read())
        EXPECT_LE(tensor.offset + tensor.numel() * plan::itemSize(tensor.dtype),
                  static_cast<int64_t>(damaged.size()));
    } catch (const FileError &) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10);
}

TEST_F(Pt2, OtherFilesAreNoZip) {
  overwrite("{}");
  EXPECT_FALSE(isZip(File(path, File::Mode::Read)));
  write(config);
  EXPECT_TRUE(isZip(File(path, File::Mode::Read)));
}

} // namespace
