//===- LintTest.cpp - Checks beyond parsing -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What depends on releases: the same file, judged by several.
//
//===----------------------------------------------------------------------===//

#include "frontends/Lint/Lint.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <unistd.h>

using namespace accel;

namespace {

class Lint : public testing::Test {
protected:
  std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                 ("accel-lint-" + std::to_string(getpid()));

  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string &name, const std::string &text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  }

  /// Codes with their severities: "warning upcast-missing".
  std::set<std::string> found(const std::string &path, LintOptions options) {
    DiagnosticEngine engine;
    LoadOptions load;
    load.accelerate.forPlanning = false;
    LoadedConfig loaded = loadConfig(path, load, engine);
    EXPECT_FALSE(engine.hasErrors()) << renderText(engine);
    size_t before = engine.all().size();
    lintConfig(path, loaded, options, engine);
    std::set<std::string> result;
    for (size_t i = before; i < engine.all().size(); ++i)
      result.insert(std::string(toString(engine.all()[i].severity)) + " " +
                    engine.all()[i].code);
    return result;
  }
  std::set<std::string> under(const std::string &path,
                              const std::string &version,
                              const std::string &torch = "2.15.0",
                              const std::string &model = "") {
    return found(path, {version, torch, model});
  }
};

using Codes = std::set<std::string>;
const std::string fsdp2 = "distributed_type: FSDP\n"
                          "num_processes: 8\n"
                          "mixed_precision: bf16\n"
                          "fsdp_config:\n"
                          "  fsdp_version: 2\n"
                          "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";

TEST_F(Lint, KnowsHowReleasesCheckpoint) {
  std::string path =
      write("a.yaml", fsdp2 + "  fsdp_activation_checkpointing: true\n");
  const Codes note = {"note checkpointing-granularity"};
  EXPECT_EQ(under(path, "1.15.0"), Codes{});
  EXPECT_EQ(under(path, "1.14.0"), note);
  EXPECT_EQ(under(path, "1.8.1"), note);
  EXPECT_EQ(under(path, "1.7.0"), Codes{});
  EXPECT_EQ(under(write("b.yaml", fsdp2), "1.14.0"), Codes{});
}

TEST_F(Lint, KnowsHowReleasesCast) {
  std::string path = write("a.yaml", fsdp2);
  EXPECT_EQ(under(path, "1.13.0"), Codes{"warning upcast-missing"});
  EXPECT_EQ(under(path, "1.12.0"), Codes{});
  EXPECT_EQ(under(path, "1.14.0"), Codes{});
  std::string plain = fsdp2;
  plain.replace(plain.find("bf16"), 4, "'no'");
  EXPECT_EQ(under(write("b.yaml", plain), "1.13.0"), Codes{});
}

TEST_F(Lint, KnowsWhatFrozenParametersCost) {
  write("tokens.bin", std::string(32, 0));
  std::filesystem::create_directories(folder / "model");
  write("model/config.json", R"({"model_type": "llama", "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100})");
  std::string inner = "  " + fsdp2;
  for (size_t at = 0; (at = inner.find('\n', at)) != std::string::npos;)
    inner.replace(at, 1, "\n  "), at += 3;
  std::string path =
      write("job.yaml", "model: model\ninit: {seed: 0}\ntrainable: q_proj\n"
                        "data: {tokens: tokens.bin, sequence_length: 4}\n"
                        "accelerate:\n" +
                            inner + "\n");
  EXPECT_EQ(under(path, "1.12.0"), Codes{"warning upcast-frozen"});
  EXPECT_EQ(under(path, "1.15.0"), Codes{});
}

TEST_F(Lint, KnowsWhatReleasesLoadAndSave) {
  std::string full =
      write("a.yaml", fsdp2 + "  fsdp_state_dict_type: FULL_STATE_DICT\n");
  EXPECT_EQ(under(full, "1.6.0"), Codes{"error needs-accelerate"});
  EXPECT_EQ(under(full, "1.7.0"), Codes{});
  std::string offload =
      write("b.yaml", fsdp2 + "  fsdp_offload_params: true\n");
  EXPECT_EQ(under(offload, "1.12.0"), Codes{"warning offload-loading"});
  EXPECT_EQ(under(offload, "1.15.0"), Codes{});
}

TEST_F(Lint, KnowsWhatTorchCanDo) {
  std::string path = write("a.yaml", fsdp2);
  EXPECT_EQ(under(path, "1.15.0", "2.5.1"), Codes{"error needs-torch"});
  EXPECT_EQ(under(path, "1.15.0", "2.6.0"), Codes{});
  std::string ignored =
      write("b.yaml", fsdp2 + "  fsdp_ignored_modules: lm_head\n");
  EXPECT_EQ(under(ignored, "1.15.0", "2.6.0"), Codes{"warning needs-torch"});
  EXPECT_EQ(under(ignored, "1.15.0", "2.7.0"),
            Codes{"warning ignored-gradients"});
  EXPECT_EQ(under(path, "1.15.0", "two"), Codes{"error invalid-version"});
}

TEST_F(Lint, KnowsWhichReleasesKeepTiesTogether) {
  std::string path = write("a.yaml", fsdp2);
  std::string tied = write("config.json", R"({"model_type": "llama",
    "tie_word_embeddings": true})");
  EXPECT_EQ(under(path, "1.14.0", "2.13.0", tied),
            Codes{"error tied-across-units"});
  EXPECT_EQ(under(path, "1.14.0", "2.12.0", tied), Codes{});
  EXPECT_EQ(under(path, "1.15.0", "2.13.0", tied), Codes{});
  std::string untied = write("untied.json", R"({"model_type": "llama"})");
  EXPECT_EQ(under(path, "1.14.0", "2.13.0", untied), Codes{});
}

TEST_F(Lint, KnowsWhichReleasesRefuseWindows) {
  std::string path =
      write("a.yaml", fsdp2 + "parallelism_config:\n"
                              "  parallelism_config_dp_shard_size: 4\n"
                              "  parallelism_config_cp_size: 2\n");
  std::string model = write("config.json", R"({"model_type": "mistral"})");
  EXPECT_EQ(under(path, "1.15.0", "2.15.0", model),
            Codes{"error cp-attention"});
  EXPECT_EQ(under(path, "1.14.0", "2.15.0", model),
            Codes{"warning cp-attention"});
  std::string full = write("full.json", R"({"model_type": "mistral",
    "sliding_window": null})");
  EXPECT_EQ(under(path, "1.14.0", "2.15.0", full), Codes{});
}

TEST_F(Lint, KnowsWhichReleasesShardEmbeddings) {
  std::string path = write("a.yaml", fsdp2);
  std::string bert = write("config.json", R"({"model_type": "bert"})");
  EXPECT_EQ(under(path, "1.14.0", "2.12.0", bert),
            Codes{"error wrap-takes-embedding"});
  EXPECT_EQ(under(path, "1.13.0", "2.12.0", bert),
            (Codes{"warning upcast-missing"}));
}

TEST_F(Lint, FindsTheDefaultFile) {
  setenv("HF_HOME", "/data/hf", 1);
  EXPECT_EQ(defaultConfigPath(), "/data/hf/accelerate/default_config.yaml");
  unsetenv("HF_HOME");
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(defaultConfigPath(),
            "/cache/huggingface/accelerate/default_config.yaml");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(defaultConfigPath(),
            "/home/me/.cache/huggingface/accelerate/default_config.yaml");
  setenv("HF_HOME", "~/hf", 1);
  EXPECT_EQ(defaultConfigPath(), "/home/me/hf/accelerate/default_config.yaml");
}

} // namespace
