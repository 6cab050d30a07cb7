//===- HuggingFaceBadConfigTest.cpp - Configs that make no model ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One field of a good config.json of each family is missing, out of range or
// contradicts another: one clear error, at the field.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/ModelConfig.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace accel;
using namespace accel::huggingface;
using nlohmann::json;

namespace {

struct Bad {
  const char *family; // a file of the fuzzer's corpus
  json change;        // a merge patch: null deletes
  const char *key, *message;
  Outcome outcome = Outcome::Invalid;
};

std::string configOf(const Bad &bad) {
  std::ifstream in(std::string(ACCEL_MODEL_CORPUS) + "/" + bad.family +
                   ".json");
  json config = json::parse(in);
  config.merge_patch(bad.change);
  return config.dump(1);
}

/// The line of "key": in the text, whose members stand on a line each.
int lineOf(const std::string &text, const std::string &key) {
  const std::string name = key.substr(0, key.find('.'));
  size_t at = text.find("\n \"" + name + "\":");
  return at == std::string::npos
             ? 0
             : int(std::count(text.begin(), text.begin() + long(at), '\n')) + 2;
}

class BadConfig : public testing::TestWithParam<Bad> {};

TEST_P(BadConfig, HasOneErrorAtItsPlace) {
  const Bad &bad = GetParam();
  const std::string text = configOf(bad);
  SCOPED_TRACE(std::string(bad.family) + " " + bad.change.dump());
  DiagnosticEngine engine;
  EXPECT_FALSE(parseModelConfig(text, "config.json", engine));
  EXPECT_EQ(engine.outcome(), bad.outcome);
  ASSERT_EQ(engine.all().size(), 1u) << renderText(engine);
  const Diagnostic &d = engine.all().front();
  EXPECT_EQ(d.key, bad.key);
  EXPECT_NE(d.message.find(bad.message), std::string::npos) << d.message;
  // Sections are on several lines: their members stand below them.
  EXPECT_GE(d.line, lineOf(text, bad.key));
  EXPECT_GE(d.column, 2);
}

const Outcome later = Outcome::NotSupported;

INSTANTIATE_TEST_SUITE_P(
    Families, BadConfig,
    testing::Values(
        // Out of range.
        Bad{"bert", {{"hidden_size", -40}}, "hidden_size", "not -40"},
        Bad{"bert",
            {{"max_position_embeddings", 0}},
            "max_position_embeddings",
            "from 1 to"},
        Bad{"bert",
            {{"hidden_dropout_prob", 1.5}},
            "hidden_dropout_prob",
            "a probability"},
        Bad{"roberta",
            {{"id2label", json::array()}},
            "id2label",
            "an object of at least one name"},
        Bad{"roberta", {{"num_labels", -1}}, "num_labels", "not -1"},
        Bad{"roberta", {{"problem_type", "odd"}}, "problem_type", "not 'odd'"},
        Bad{"vit", {{"num_channels", 0}}, "num_channels", "not 0"},
        Bad{"vit", {{"image_size", {12}}}, "image_size", "a list of two"},
        Bad{"t5", {{"d_kv", 0}}, "d_kv", "not 0"},
        Bad{"t5",
            {{"relative_attention_num_buckets", 1}},
            "relative_attention_num_buckets",
            "even and at least 4"},
        Bad{"whisper",
            {{"max_target_positions", 0}},
            "max_target_positions",
            "not 0"},
        Bad{"gemma3", {{"sliding_window", -1}}, "sliding_window", "not -1"},
        Bad{"gemma2",
            {{"query_pre_attn_scalar", 0}},
            "query_pre_attn_scalar",
            "must be positive"},
        Bad{"gpt-neox",
            {{"rope_parameters", nullptr}, {"rotary_pct", 2.0}},
            "rotary_pct",
            "at most 1"},
        Bad{"phi3",
            {{"rope_parameters", {{"partial_rotary_factor", -0.5}}}},
            "rope_parameters.partial_rotary_factor",
            "at most 1"},
        Bad{"opt",
            {{"word_embed_proj_dim", 0}},
            "word_embed_proj_dim",
            "not 0"},
        Bad{"olmo2",
            {{"num_hidden_layers", 1000000000}},
            "num_hidden_layers",
            "not 1000000000"},
        Bad{"gpt2",
            {{"n_positions", 1000000000000}},
            "n_positions",
            "not 1000000000000"},
        Bad{"gpt2",
            {{"initializer_range", -1}},
            "initializer_range",
            "between 0 and 1"},
        Bad{"mixtral",
            {{"num_local_experts", 0}},
            "num_local_experts",
            "not 0"},
        Bad{"qwen3-moe",
            {{"decoder_sparse_step", 0}},
            "decoder_sparse_step",
            "not 0"},
        // Of another type.
        Bad{"olmo2",
            {{"rms_norm_eps", "1e-5"}},
            "rms_norm_eps",
            "must be a number"},
        Bad{"opt",
            {{"do_layer_norm_before", "yes"}},
            "do_layer_norm_before",
            "true or false"},
        Bad{"mpt", {{"attn_config", 3}}, "attn_config", "an object"},
        Bad{"exaone4",
            {{"sliding_window_pattern", "LLLG"}},
            "sliding_window_pattern",
            "must be a number"},
        Bad{"gemma2", {{"layer_types", 3}}, "layer_types", "a list"},
        Bad{"qwen3-moe",
            {{"mlp_only_layers", "x"}},
            "mlp_only_layers",
            "a list of layers"}));

INSTANTIATE_TEST_SUITE_P(
    Contradictions, BadConfig,
    testing::Values(
        Bad{"bert",
            {{"num_attention_heads", 7}},
            "hidden_size",
            "not a multiple of the 7 heads"},
        Bad{"roberta",
            {{"max_position_embeddings", 1}},
            "max_position_embeddings",
            "no position is left"},
        Bad{"roberta", {{"pad_token_id", 200}}, "pad_token_id", "0 to 63"},
        Bad{"vit", {{"patch_size", 33}}, "patch_size", "larger than the image"},
        Bad{"t5",
            {{"decoder_start_token_id", 97}},
            "decoder_start_token_id",
            "0 to 63"},
        Bad{"t5",
            {{"relative_attention_max_distance", 2}},
            "relative_attention_max_distance",
            "half of the 32 buckets"},
        Bad{"whisper",
            {{"encoder_attention_heads", 3}},
            "encoder_attention_heads",
            "not a multiple of the 3 heads"},
        Bad{"gemma2",
            {{"num_key_value_heads", 3}},
            "num_key_value_heads",
            "not a multiple of the 3 key heads"},
        Bad{"gemma2",
            {{"layer_types", {"full_attention"}}},
            "layer_types",
            "has 1 entries for 2 layers"},
        Bad{"gpt-neox",
            {{"num_attention_heads", 5}},
            "num_attention_heads",
            "not a multiple of the 5 heads"},
        Bad{"falcon",
            {{"new_decoder_architecture", true}, {"num_kv_heads", 3}},
            "num_kv_heads",
            "not a multiple of 'num_kv_heads' 3"},
        Bad{"mpt",
            {{"d_model", 61}},
            "n_heads",
            "not a multiple of the 4 heads"},
        Bad{"phi3", {{"pad_token_id", 999}}, "pad_token_id", "64 tokens"},
        Bad{"mixtral",
            {{"num_experts_per_tok", 9}},
            "num_experts_per_tok",
            "more than the 8 experts"},
        Bad{"gpt-oss",
            {{"num_experts_per_tok", 9}},
            "num_experts_per_tok",
            "not between 1 and the 4 experts"},
        Bad{"qwen2-moe",
            {{"layer_types", {"sliding_attention", "full_attention"}}},
            "sliding_window",
            "need a 'sliding_window'"},
        Bad{"gpt2", {{"n_head", 5}}, "n_embd", "not a multiple of the 5 heads"},
        // Right, and not known here.
        Bad{"bert",
            {{"architectures", {"BertModel"}}},
            "architectures.0",
            "'BertModel' is not supported yet",
            later},
        Bad{"t5",
            {{"feed_forward_proj", "gated-odd"}},
            "feed_forward_proj",
            "activation 'odd' is not supported yet",
            later},
        Bad{"gpt-oss",
            {{"intermediate_size", 46}},
            "intermediate_size",
            "not a multiple of 4",
            later},
        Bad{"stablelm",
            {{"qk_layernorm", true}},
            "qk_layernorm",
            "a norm of its own for each head",
            later},
        Bad{"gemma2",
            {{"layer_types", {"full_attention", "chunked"}}},
            "layer_types.1",
            "not 'chunked'",
            later}));

/// What the class of the configuration has a default for may be missing; what
/// it has none for is asked for.
TEST(BadConfigs, MissingFields) {
  for (const char *family : {"bert",      "roberta",    "vit",
                             "t5",        "whisper",    "gemma2",
                             "gpt-neox",  "opt",        "falcon",
                             "mpt",       "gpt2",       "olmo2",
                             "phi3",      "mixtral",    "qwen3-moe",
                             "gpt-oss",   "qwen2-moe",  "olmo3",
                             "phi",       "stablelm",   "exaone4",
                             "glm4",      "cohere",     "cohere2",
                             "glm",       "arcee",      "seed-oss",
                             "olmoe",     "glm4-moe",   "glm4-moe-lite",
                             "ministral", "ministral3", "hunyuan-v1-dense",
                             "ernie4-5",  "granitemoe", "granitemoehybrid"}) {
    SCOPED_TRACE(family);
    DiagnosticEngine engine;
    EXPECT_FALSE(
        parseModelConfig(configOf({family, {{"model_type", nullptr}}, "", ""}),
                         "config.json", engine));
    ASSERT_EQ(engine.all().size(), 1u);
    EXPECT_EQ(engine.all().front().key, "model_type");
    EXPECT_NE(engine.all().front().message.find("missing"), std::string::npos);
  }
}

TEST(BadConfigs, NamesGoBeforeTheirNumber) {
  DiagnosticEngine engine;
  EXPECT_TRUE(
      parseModelConfig(configOf({"roberta", {{"num_labels", 5}}, "", ""}),
                       "config.json", engine));
  ASSERT_EQ(engine.all().size(), 1u);
  EXPECT_EQ(engine.all().front().severity, Severity::Warning);
  EXPECT_NE(engine.all().front().message.find("'num_labels' is 5, and "
                                              "'id2label' names 3"),
            std::string::npos);
}

} // namespace
