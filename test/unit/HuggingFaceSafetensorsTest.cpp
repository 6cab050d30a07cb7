//===- HuggingFaceSafetensorsTest.cpp -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/Safetensors.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

using namespace accel;
using namespace accel::huggingface;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string frame(const std::string &header, size_t dataBytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += char(uint64_t(header.size()) >> (8 * i));
  return bytes + header + std::string(dataBytes, '\1');
}

json entry(const char *dtype, const json &shape, uint64_t begin, uint64_t end) {
  return {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, end}}};
}

/// "a" f32 [2, 3] and "b" bf16 [4]: 32 bytes.
json twoTensors() {
  return {{"__metadata__", {{"format", "pt"}}},
          {"a", entry("F32", {2, 3}, 0, 24)},
          {"b", entry("BF16", {4}, 24, 32)}};
}

struct Parsed {
  std::optional<SafetensorsFile> file;
  std::vector<Diagnostic> diagnostics;
};
Parsed parse(const std::string &bytes, uint64_t size) {
  DiagnosticEngine engine;
  Parsed result;
  result.file = parseSafetensorsHeader(bytes, size, "m.safetensors", engine);
  result.diagnostics = engine.all();
  return result;
}
Parsed parse(const std::string &bytes) { return parse(bytes, bytes.size()); }

void expectError(const Parsed &got, const std::string &part) {
  EXPECT_FALSE(got.file);
  ASSERT_EQ(got.diagnostics.size(), 1u);
  EXPECT_NE(got.diagnostics[0].message.find(part), std::string::npos)
      << got.diagnostics[0].message;
}
void expectError(const json &header, const std::string &part) {
  SCOPED_TRACE(header.dump());
  expectError(parse(frame(header.dump(), 32)), part);
}

TEST(Safetensors, ReadsAHeader) {
  std::string header = twoTensors().dump();
  Parsed got = parse(frame(header + "   ", 32));
  ASSERT_TRUE(got.file);
  ASSERT_EQ(got.file->tensors.size(), 2u);
  EXPECT_EQ(got.file->tensors[0].name, "a");
  EXPECT_EQ(got.file->tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(got.file->tensors[1].dtype, "BF16");
  EXPECT_EQ(got.file->tensors[1].begin, 8 + header.size() + 3 + 24);
  EXPECT_EQ(got.file->tensors[1].end, 8 + header.size() + 3 + 32);
  EXPECT_TRUE(parse(frame("{}", 0)).file);
}

TEST(Safetensors, RefusesWrongLengths) {
  expectError(parse(""), "too short");
  expectError(parse("1234567"), "too short");
  std::string good = frame(twoTensors().dump(), 32);
  expectError(parse(good.substr(0, 40)), "does not fit");
  expectError(parse(good.substr(0, good.size() - 1)), "truncated");
  expectError(parse(good + "x"), "1 bytes at the end");
  expectError(parse(std::string(8, '\xff') + good), "exceeds");
  expectError(parse(good, 9), "does not fit");
}

TEST(Safetensors, RefusesWrongHeaders) {
  expectError(parse(frame("[]", 0)), "not a JSON object");
  expectError(parse(frame("{\"a\":", 0)), "not valid JSON");
  auto change = [](const char *key, const json &value) {
    json header = twoTensors();
    header["a"][key] = value;
    return header;
  };
  expectError(change("dtype", "F33"), "unknown dtype 'F33'");
  expectError(change("dtype", 3), "'dtype' is missing");
  expectError(change("shape", "x"), "'shape' is missing");
  expectError(change("shape", {2, -3}), "not a size");
  expectError(change("shape", {2.0, 3.0}), "not a size");
  expectError(change("shape", {2, UINT64_MAX}), "not a size");
  expectError(change("shape", {INT64_MAX, 3}), "overflows");
  expectError(change("shape", {2, 4}), "need 32 bytes");
  expectError(change("shape", json::array()), "need 4 bytes");
  expectError(change("shape", std::vector<int>(65, 1)), "dimensions");
  expectError(change("data_offsets", {0}), "two offsets");
  expectError(change("data_offsets", {0, "24"}), "two offsets");
  expectError(change("data_offsets", {24, 0}), "end before they begin");
  expectError(change("data_offsets", {16, 40}), "the file is truncated");
  json header = twoTensors();
  header["b"] = entry("BF16", {4}, 16, 24);
  expectError(header, "overlaps that of 'a'");
  header["a"] = 3;
  expectError(header, "not an object");
  header = twoTensors();
  header.erase("a");
  expectError(header, "belong to no tensor");
  header["a"] = entry("F4", {3}, 0, 2);
  expectError(header, "whole number of bytes");
}

TEST(Safetensors, EmptyTensors) {
  json header = {{"a", entry("F32", {0, INT64_MAX, INT64_MAX}, 0, 0)},
                 {"b", entry("F32", json::array(), 0, 4)}};
  EXPECT_TRUE(parse(frame(header.dump(), 4)).file);
}

/// Whatever the bytes are, offsets that are accepted lie inside the file.
TEST(Safetensors, Mutations) {
  std::string good = frame(twoTensors().dump(), 32);
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < 40000; ++i) {
    std::string bytes = good;
    for (unsigned changes = random() % 4 + 1; changes > 0; --changes)
      switch (random() % 3) {
      case 0:
        bytes[random() % bytes.size()] = char(random());
        break;
      case 1:
        bytes[random() % bytes.size()] = "0123456789{}[],:\"-e."[random() % 20];
        break;
      case 2:
        bytes.resize(random() % (bytes.size() + 8));
        if (bytes.empty())
          bytes = "x";
      }
    Parsed got = parse(bytes);
    ASSERT_EQ(got.file.has_value(), got.diagnostics.empty());
    if (!got.file)
      continue;
    ++accepted;
    for (const StoredTensor &tensor : got.file->tensors) {
      ASSERT_LE(tensor.begin, tensor.end);
      ASSERT_LE(tensor.end, bytes.size());
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 40000);
}

class WeightsFolder : public testing::Test {
protected:
  void SetUp() override {
    folder = fs::temp_directory_path() /
             ("accel-weights-" + std::to_string(::getpid()) + "-" +
              testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder);
    DiagnosticEngine ignored;
    auto config = parseLlamaConfig(R"({"model_type": "llama", "vocab_size": 4,
      "hidden_size": 4, "intermediate_size": 6, "num_hidden_layers": 1,
      "num_attention_heads": 2, "tie_word_embeddings": true})",
                                   "config.json", ignored);
    model = describeModel(*config);
  }
  void TearDown() override { fs::remove_all(folder); }

  void write(const std::string &name, const std::string &bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
  }
  /// A file with parameters [begin, end) of the model, and `more` entries.
  std::string fileOf(size_t begin, size_t end,
                     const std::vector<std::string> &more = {}) {
    json header = json::object();
    uint64_t at = 0;
    for (size_t i = begin; i < end; ++i) {
      uint64_t bytes = uint64_t(model.parameters[i].numel()) * 4;
      header[model.parameters[i].fqn] =
          entry("F32", model.parameters[i].shape, at, at + bytes);
      at += bytes;
    }
    for (const std::string &name : more) {
      header[name] = entry("F32", {1}, at, at + 4);
      at += 4;
    }
    return frame(header.dump(), at);
  }
  void writeIndex(const json &map) {
    write("model.safetensors.index.json", json{{"weight_map", map}}.dump());
  }

  /// readWeights, then checkWeights; true if both hold.
  bool check() {
    auto weights = readWeights(folder.string(), engine);
    return weights && checkWeights(*weights, model, folder.string(), engine);
  }
  void expectProblem(const std::string &part) {
    EXPECT_FALSE(check());
    ASSERT_EQ(engine.all().size(), 1u);
    EXPECT_NE(engine.all()[0].message.find(part), std::string::npos)
        << engine.all()[0].message;
  }

  fs::path folder;
  ModelInfo model;
  DiagnosticEngine engine;
};

TEST_F(WeightsFolder, Single) {
  write("model.safetensors", fileOf(0, model.parameters.size()));
  EXPECT_TRUE(check());
  EXPECT_TRUE(engine.all().empty());
}

TEST_F(WeightsFolder, TiedByItsOtherName) {
  ModelInfo stored = model;
  stored.parameters[0].fqn = stored.parameters[0].aliases[0];
  std::swap(model, stored);
  write("model.safetensors", fileOf(0, model.parameters.size()));
  std::swap(model, stored);
  EXPECT_TRUE(check());
  EXPECT_TRUE(engine.all().empty());
}

/// Both names of a tied parameter, equal but for the `last` byte.
static std::string tiedTwice(const ModelInfo &model, char last) {
  json header = json::object();
  uint64_t at = 0;
  for (const ParameterInfo &parameter : model.parameters) {
    uint64_t bytes = uint64_t(parameter.numel()) * 4;
    header[parameter.fqn] = entry("F32", parameter.shape, at, at + bytes);
    at += bytes;
  }
  const ParameterInfo &tied = model.parameters[0];
  uint64_t bytes = uint64_t(tied.numel()) * 4;
  header[tied.aliases[0]] = entry("F32", tied.shape, at, at + bytes);
  std::string file = frame(header.dump(), at + bytes);
  file.back() = last;
  return file;
}

TEST_F(WeightsFolder, TiedTwiceWithEqualValues) {
  write("model.safetensors", tiedTwice(model, '\1'));
  EXPECT_TRUE(check());
  EXPECT_TRUE(engine.all().empty());
}

TEST_F(WeightsFolder, TiedTwiceWithOtherValues) {
  write("model.safetensors", tiedTwice(model, '~'));
  expectProblem("'lm_head.weight' with other values, so that transformers "
                "does not tie them");
  EXPECT_EQ(engine.all()[0].code, notSupportedCode);
}

TEST_F(WeightsFolder, Sharded) {
  json map;
  for (size_t i = 0; i < model.parameters.size(); ++i)
    map[model.parameters[i].fqn] =
        i < 4 ? "one.safetensors" : "two.safetensors";
  write("one.safetensors", fileOf(0, 4));
  write("two.safetensors", fileOf(4, model.parameters.size()));
  writeIndex(map);
  EXPECT_TRUE(check());
  EXPECT_TRUE(engine.all().empty());
}

TEST_F(WeightsFolder, IndexThatLies) {
  json map;
  for (size_t i = 0; i < model.parameters.size(); ++i)
    map[model.parameters[i].fqn] = "one.safetensors";
  write("one.safetensors", fileOf(0, 4));
  writeIndex(map);
  expectProblem("in files that do not hold them");
}

TEST_F(WeightsFolder, IndexWithAMissingFile) {
  writeIndex({{"a", "gone.safetensors"}});
  expectProblem("no such file");
  EXPECT_NE(engine.all()[0].file.find("gone.safetensors"), std::string::npos);
}

TEST_F(WeightsFolder, IndexThatLeavesTheFolder) {
  writeIndex({{"a", "../model.safetensors"}});
  expectProblem("must be a name in this folder");
}

TEST_F(WeightsFolder, TheSameTensorTwice) {
  json map;
  map[model.parameters[0].fqn] = "one.safetensors";
  map[model.parameters[1].fqn] = "two.safetensors";
  write("one.safetensors", fileOf(0, 2));
  write("two.safetensors", fileOf(1, 2));
  writeIndex(map);
  expectProblem("is also in");
}

TEST_F(WeightsFolder, MissingTensorsAreNamed) {
  write("model.safetensors", fileOf(0, model.parameters.size() - 1));
  expectProblem("1 of the model's tensors: 'model.norm.weight'");
}

TEST_F(WeightsFolder, ABaseModelWithoutItsPrefix) {
  ModelInfo stored = model;
  for (ParameterInfo &parameter : stored.parameters)
    parameter.fqn = parameter.fqn.substr(std::string("model.").size());
  std::swap(model, stored);
  write("model.safetensors", fileOf(0, model.parameters.size()));
  std::swap(model, stored);
  EXPECT_TRUE(check());
  EXPECT_TRUE(engine.all().empty());
}

TEST_F(WeightsFolder, AHeadThatIsNotThereStartsAnew) {
  write("model.safetensors", fileOf(0, model.parameters.size()));
  model.parameters.push_back({"score.weight", {2, 4}, {}, {}, {}});
  model.parameters.push_back({"score.bias", {2}, {}, {}, {}});
  EXPECT_TRUE(check());
  ASSERT_EQ(engine.all().size(), 1u);
  EXPECT_EQ(engine.all()[0].severity, Severity::Note);
  EXPECT_EQ(engine.all()[0].code, "fresh-weights");
  EXPECT_NE(engine.all()[0].message.find("'score.weight', 'score.bias'"),
            std::string::npos);
}

TEST_F(WeightsFolder, HalfAHeadIsMissing) {
  model.parameters.push_back({"score.bias", {2}, {}, {}, {}});
  model.parameters.push_back({"score.weight", {2, 4}, {}, {}, {}});
  write("model.safetensors", fileOf(0, model.parameters.size() - 1));
  expectProblem("lack 1 of the model's tensors: 'score.weight'");
}

TEST_F(WeightsFolder, AnotherBaseIsMissing) {
  model.anatomy.base = "transformer";
  model.parameters.push_back({"score.weight", {2, 4}, {}, {}, {}});
  write("model.safetensors", fileOf(0, model.parameters.size() - 1));
  expectProblem("lack 1 of the model's tensors: 'score.weight'");
}

TEST_F(WeightsFolder, SurplusTensorsAreNamed) {
  write("model.safetensors",
        fileOf(0, model.parameters.size(),
               {"strange", "model.layers.0.self_attn.rotary_emb.inv_freq"}));
  EXPECT_TRUE(check());
  ASSERT_EQ(engine.all().size(), 1u);
  EXPECT_EQ(engine.all()[0].severity, Severity::Warning);
  EXPECT_NE(engine.all()[0].message.find("'strange'"), std::string::npos);
  EXPECT_EQ(engine.all()[0].message.find("inv_freq"), std::string::npos);
}

TEST_F(WeightsFolder, AnotherShape) {
  model.parameters[1].shape = {2, 8};
  std::string bytes = fileOf(0, model.parameters.size());
  model.parameters[1].shape = {4, 4};
  write("model.safetensors", bytes);
  expectProblem("has shape [2, 8], but config.json makes it [4, 4]");
}

TEST_F(WeightsFolder, NoWeights) {
  auto weights = readWeights(folder.string(), engine);
  ASSERT_TRUE(weights);
  EXPECT_TRUE(weights->files.empty());
  write("pytorch_model.bin", "PK");
  EXPECT_FALSE(readWeights(folder.string(), engine));
  EXPECT_EQ(engine.outcome(), Outcome::NotSupported);
}

} // namespace
