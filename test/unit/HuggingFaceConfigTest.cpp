//===- HuggingFaceConfigTest.cpp ------------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/ConfigJson/JsonDocument.h"
#include "frontends/HuggingFace/ModelConfig.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace accel;
using namespace accel::huggingface;
using nlohmann::json;

namespace {

json llama() {
  return {{"model_type", "llama"},   {"vocab_size", 100},
          {"hidden_size", 48},       {"intermediate_size", 80},
          {"num_hidden_layers", 2},  {"num_attention_heads", 6},
          {"num_key_value_heads", 2}};
}

json with(const json &changes, json base = llama()) {
  base.update(changes);
  return base;
}

struct Read {
  std::optional<LlamaConfig> config;
  std::vector<Diagnostic> diagnostics;
  Outcome outcome;
};
Read readText(const std::string &text) {
  DiagnosticEngine engine;
  Read read;
  read.config = parseLlamaConfig(text, "config.json", engine);
  read.diagnostics = engine.all();
  read.outcome = engine.outcome();
  return read;
}
Read read(const json &value) { return readText(value.dump(1)); }

/// Exactly one error, with this key and with `part` in its message.
void expectError(const json &value, const std::string &key,
                 const std::string &part, Outcome outcome = Outcome::Invalid) {
  SCOPED_TRACE(value.dump());
  Read got = read(value);
  EXPECT_FALSE(got.config);
  EXPECT_EQ(got.outcome, outcome);
  ASSERT_EQ(got.diagnostics.size(), 1u);
  EXPECT_EQ(got.diagnostics[0].key, key);
  EXPECT_NE(got.diagnostics[0].message.find(part), std::string::npos)
      << got.diagnostics[0].message;
  EXPECT_EQ(got.diagnostics[0].file, "config.json");
  EXPECT_GE(got.diagnostics[0].line, 1);
}
void expectUnsupported(const json &value, const std::string &key,
                       const std::string &part) {
  expectError(value, key, part, Outcome::NotSupported);
}

TEST(HuggingFaceConfig, ReadsBothSpellings) {
  json scaling = {{"rope_type", "llama3"},
                  {"factor", 8.0},
                  {"low_freq_factor", 1.0},
                  {"high_freq_factor", 4.0},
                  {"original_max_position_embeddings", 8192}};
  json nested = scaling;
  nested["rope_theta"] = 500000.0;
  for (const json &value :
       {with({{"rope_scaling", scaling},
              {"rope_theta", 500000.0},
              {"torch_dtype", "bfloat16"}}),
        with({{"rope_parameters", nested}, {"dtype", "bfloat16"}})}) {
    Read got = read(value);
    ASSERT_TRUE(got.config);
    EXPECT_TRUE(got.diagnostics.empty());
    EXPECT_EQ(got.config->rope.kind, Rope::Kind::Llama3);
    EXPECT_EQ(got.config->rope.theta, 500000.0);
    EXPECT_EQ(got.config->rope.factor, 8.0);
    EXPECT_EQ(got.config->rope.originalMaxPositions, 8192);
    EXPECT_EQ(got.config->dtype, plan::DType::BF16);
  }
}

TEST(HuggingFaceConfig, OlderSpellingsOfRope) {
  Read got = read(with({{"rope_scaling", {{"type", "linear"}, {"factor", 2}}},
                        {"rope_parameters", {{"rope_type", "yarn"}}}}));
  ASSERT_TRUE(got.config) << "rope_scaling goes before rope_parameters";
  EXPECT_EQ(got.config->rope.kind, Rope::Kind::Linear);
  EXPECT_EQ(got.config->rope.factor, 2.0);
  EXPECT_EQ(got.config->rope.theta, 10000.0);
  got = read(with({{"rope_scaling", nullptr}, {"rope_theta", 5}}));
  ASSERT_TRUE(got.config);
  EXPECT_EQ(got.config->rope.kind, Rope::Kind::Default);
  EXPECT_EQ(got.config->rope.theta, 5.0);
  got = read(with({{"max_position_embeddings", 77},
                   {"rope_scaling",
                    {{"rope_type", "llama3"},
                     {"factor", 8},
                     {"low_freq_factor", 1},
                     {"high_freq_factor", 4}}}}));
  ASSERT_TRUE(got.config);
  EXPECT_EQ(got.config->rope.originalMaxPositions, 77);
}

TEST(HuggingFaceConfig, KindsOfRope) {
  auto scaled = [](const json &scaling) {
    return with({{"max_position_embeddings", 64}, {"rope_scaling", scaling}});
  };
  json factors = json::array({1.0, 2.0, 2.5, 3.0});
  json longRope = {{"rope_type", "longrope"},
                   {"original_max_position_embeddings", 16},
                   {"short_factor", factors},
                   {"long_factor", factors}};
  Read got = read(scaled(longRope));
  ASSERT_TRUE(got.config);
  EXPECT_EQ(got.config->rope.factor, 4.0) << "64 positions, 16 of them learnt";
  EXPECT_DOUBLE_EQ(got.config->rope.attentionFactor, std::sqrt(1.5));
  got = read(scaled({{"rope_type", "yarn"}, {"factor", 1}, {"beta_fast", 0}}));
  ASSERT_TRUE(got.config);
  EXPECT_EQ(got.config->rope.betaFast, 32) << "zero asks for the default";
  EXPECT_EQ(got.config->rope.originalMaxPositions, 64);
  EXPECT_EQ(got.config->rope.attentionFactor, 1);

  auto changed = [&](const char *key, const json &value) {
    json scaling = longRope;
    scaling[key] = value;
    return scaled(scaling);
  };
  expectError(changed("short_factor", nullptr), "rope_scaling.short_factor",
              "is missing");
  expectError(changed("long_factor", {1, 2, 3}), "rope_scaling",
              "'long_factor' has 3 numbers, but a head has 4 rotary");
  expectError(changed("long_factor", {1, 2, 0, 3}), "rope_scaling.long_factor",
              "positive numbers");
  expectError(changed("attention_factor", -1), "rope_scaling.attention_factor",
              "negative");
  expectError(changed("original_max_position_embeddings", 1),
              "rope_scaling.factor", "more than one original position");
  expectError(scaled({{"rope_type", "yarn"}}), "rope_scaling.factor",
              "is missing");
  expectError(scaled({{"rope_type", "yarn"}, {"factor", 2}, {"rope_theta", 1}}),
              "rope_scaling.rope_theta", "above 1");
  expectError(scaled({{"rope_type", "dynamic"}}), "rope_scaling.factor",
              "is missing");
}

TEST(HuggingFaceConfig, DtypeGoesBeforeTorchDtype) {
  Read got = read(with({{"dtype", "float16"}, {"torch_dtype", "bfloat16"}}));
  EXPECT_EQ(got.config->dtype, plan::DType::F16);
  got = read(with({{"dtype", nullptr}, {"torch_dtype", "bfloat16"}}));
  EXPECT_EQ(got.config->dtype, plan::DType::BF16);
  EXPECT_FALSE(read(llama()).config->dtype);
}

TEST(HuggingFaceConfig, PointsAtTheValue) {
  Read got = readText("{\n  \"model_type\": \"llama\",\n"
                      "  \"rope_scaling\": {\n    \"rope_type\": \"linear\",\n"
                      "    \"factor\": -2}\n}\n");
  ASSERT_EQ(got.diagnostics.size(), 1u);
  EXPECT_EQ(got.diagnostics[0].key, "rope_scaling.factor");
  EXPECT_EQ(got.diagnostics[0].line, 5);
  EXPECT_EQ(got.diagnostics[0].column, 15);
}

TEST(HuggingFaceConfig, SyntaxErrorsHaveAPosition) {
  for (auto [text, line, column] : {std::tuple("{\n  \"a\": 1,\n}", 3, 1),
                                    {"{\"hidden_size\": nan}", 1, 17},
                                    {"", 1, 1},
                                    {"{\"\u00e9\": x}", 1, 7},
                                    {"[1, 2", 1, 6}}) {
    SCOPED_TRACE(text);
    Read got = readText(text);
    EXPECT_FALSE(got.config);
    ASSERT_EQ(got.diagnostics.size(), 1u);
    EXPECT_EQ(got.diagnostics[0].line, line);
    EXPECT_NEAR(got.diagnostics[0].column, column, 1);
    EXPECT_EQ(got.outcome, Outcome::Invalid);
  }
}

// As Python's json.load reads them.
TEST(HuggingFaceConfig, NumbersThatAreNone) {
  for (const char *number : {"NaN", "Infinity", "-Infinity", "1e999"}) {
    SCOPED_TRACE(number);
    const std::string others = ", \"unused\": " + std::string(number) + "}";
    std::string text = llama().dump();
    EXPECT_TRUE(readText(text.replace(text.size() - 1, 1, others)).config);
    text = llama().dump();
    const std::string size = "\"hidden_size\":48";
    text.replace(text.find(size), size.size(),
                 "\"hidden_size\":" + std::string(number));
    Read got = readText(text);
    ASSERT_EQ(got.diagnostics.size(), 1u);
    EXPECT_EQ(got.diagnostics[0].key, "hidden_size");
  }
}

TEST(HuggingFaceConfig, RefusesWrongSizes) {
  for (const char *key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "num_key_value_heads", "head_dim",
        "max_position_embeddings"})
    for (const json &value :
         {json(0), json(-1), json(2.5), json("48"), json(true), json::array(),
          json(UINT64_MAX), json(INT64_MAX), json(1e300), json(INT64_MIN)})
      expectError(with({{key, value}}), key, "must be an integer from 1 to");
  for (const char *key : {"hidden_size", "vocab_size", "num_hidden_layers"})
    expectError(with({{key, nullptr}}), key, "not null");
  EXPECT_TRUE(read(with({{"num_key_value_heads", nullptr}})).config);
  EXPECT_TRUE(read(with({{"head_dim", nullptr}})).config);
}

TEST(HuggingFaceConfig, RefusesWhatDoesNotFitTogether) {
  expectError(with({{"hidden_size", 50}}), "hidden_size", "not a multiple");
  expectError(with({{"num_key_value_heads", 4}}), "num_attention_heads",
              "not a multiple");
  expectError(with({{"num_key_value_heads", 12}}), "num_attention_heads",
              "not a multiple");
  expectError(with({{"head_dim", 7}}), "head_dim", "even");
  expectError(with({{"pad_token_id", 100}}), "pad_token_id", "outside");
  expectError(with({{"pad_token_id", -101}}), "pad_token_id", "outside");
  expectError(with({{"hidden_size", 1 << 24},
                    {"intermediate_size", 1 << 24},
                    {"num_attention_heads", 1},
                    {"num_key_value_heads", 1},
                    {"num_hidden_layers", 16384}}),
              "", "1e15 parameters");
  EXPECT_EQ(read(with({{"pad_token_id", -1}})).config->paddingIndex, 99);
}

TEST(HuggingFaceConfig, RefusesWrongTypes) {
  expectError(json::array(), "", "expected a JSON object");
  expectError(with({{"model_type", 3}}), "model_type", "must be a string");
  expectError(with({{"model_type", nullptr}}), "model_type", "missing");
  expectError(with({{"tie_word_embeddings", 1}}), "tie_word_embeddings",
              "true or false");
  expectError(with({{"rms_norm_eps", "1e-5"}}), "rms_norm_eps", "a number");
  expectError(with({{"rms_norm_eps", -1}}), "rms_norm_eps", "negative");
  expectError(with({{"initializer_range", 2}}), "initializer_range",
              "between 0 and 1");
  expectError(with({{"rope_theta", 0}}), "rope_theta", "positive");
  expectError(with({{"rope_scaling", "linear"}}), "rope_scaling",
              "must be an object");
  expectError(with({{"rope_scaling", {{"type", "linear"}}}}),
              "rope_scaling.factor", "missing");
  expectError(with({{"rope_scaling",
                     {{"rope_type", "llama3"},
                      {"factor", 8},
                      {"low_freq_factor", 4},
                      {"high_freq_factor", 4}}}}),
              "rope_scaling.high_freq_factor", "greater");
  expectError(with({{"architectures", "LlamaForCausalLM"}}), "architectures",
              "list");
  expectError(with({{"architectures", {"MistralForCausalLM"}}}),
              "architectures.0", "contradicts");
}

TEST(HuggingFaceConfig, NamesWhatIsNotSupportedYet) {
  expectUnsupported(with({{"model_type", "bloom"}}), "model_type", "bloom");
  expectUnsupported(with({{"architectures", {"LlamaForTokenClassification"}}}),
                    "architectures.0", "LlamaForTokenClassification");
  expectUnsupported(with({{"hidden_act", "gelu"}}), "hidden_act", "gelu");
  expectError(with({{"attention_dropout", 1.5}}), "attention_dropout",
              "probability");
  expectUnsupported(with({{"rope_scaling", {{"rope_type", "axial"}}}}),
                    "rope_scaling.rope_type", "yarn, longrope and llama3");
  expectUnsupported(with({{"partial_rotary_factor", 0.5}}),
                    "partial_rotary_factor", "partial");
  expectUnsupported(with({{"dtype", "float64"}}), "dtype", "float64");
  expectError(with({{"model_type", "qwen3"},
                    {"layer_types", {"full_attention", "sliding_attention"}}}),
              "layer_types.1", "use_sliding_window");
  expectUnsupported(
      with({{"model_type", "qwen3"},
            {"layer_types", {"full_attention", "chunked_attention"}}}),
      "layer_types.1", "sliding_attention");
  expectError(
      with({{"model_type", "qwen3"}, {"layer_types", {"full_attention"}}}),
      "layer_types", "1 entries for 2 layers");
}

TEST(HuggingFaceConfig, SlidingWindows) {
  auto windows = [](const json &changes) {
    auto config = read(with(changes)).config;
    return config ? config->windows : std::vector<int64_t>{-1};
  };
  using List = std::vector<int64_t>;
  EXPECT_EQ(windows({{"model_type", "mistral"}}), (List{4096, 4096}));
  EXPECT_EQ(windows({{"model_type", "mistral"}, {"sliding_window", nullptr}}),
            List());
  EXPECT_EQ(windows({{"model_type", "qwen2"}, {"sliding_window", 7}}), List());
  EXPECT_EQ(windows({{"model_type", "qwen2"},
                     {"use_sliding_window", true},
                     {"sliding_window", 7},
                     {"max_window_layers", 1}}),
            (List{0, 7}));
  EXPECT_EQ(windows({{"model_type", "qwen3"},
                     {"use_sliding_window", true},
                     {"layer_types", {"sliding_attention", "full_attention"}}}),
            (List{4096, 0}));
}

/// Exactly one problem of a model with `value`, at `key`.
void expectProblem(const json &value, Outcome outcome, const std::string &key,
                   const std::string &part) {
  SCOPED_TRACE(value.dump());
  DiagnosticEngine engine;
  EXPECT_FALSE(parseModelConfig(value.dump(1), "config.json", engine));
  EXPECT_EQ(engine.outcome(), outcome);
  ASSERT_EQ(engine.all().size(), 1u);
  EXPECT_EQ(engine.all()[0].key, key);
  EXPECT_NE((engine.all()[0].message + engine.all()[0].hint).find(part),
            std::string::npos)
      << engine.all()[0].message << engine.all()[0].hint;
}

TEST(HuggingFaceConfig, DecoderFamilies) {
  auto family = [](const char *type, const json &changes) {
    json value = {{"model_type", type},     {"hidden_size", 48},
                  {"vocab_size", 100},      {"num_attention_heads", 6},
                  {"num_hidden_layers", 2}, {"num_key_value_heads", 6}};
    if (!changes.is_null())
      value.update(changes);
    return value;
  };
  auto invalid = Outcome::Invalid, unsupported = Outcome::NotSupported;
  expectProblem(family("gemma1", {}), unsupported, "model_type",
                "did you mean 'gemma'?");
  expectProblem(family("bloom", {}), unsupported, "model_type",
                "tools/export-model NAME -o model.pt2");
  expectProblem(family("phi3", {}), invalid, "pad_token_id",
                "32000, the default, is outside");
  expectProblem(
      family("phi3", {{"pad_token_id", nullptr},
                      {"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}),
      invalid, "rope_scaling.type", "default or longrope");
  expectProblem(family("gemma", {{"hidden_size", "48"}}), invalid,
                "hidden_size", "integer");
  expectProblem(family("gemma2", {{"query_pre_attn_scalar", 0}}), invalid,
                "query_pre_attn_scalar", "positive");
  expectProblem(family("gemma3_text", {{"use_bidirectional_attention", true}}),
                unsupported, "use_bidirectional_attention", "bidirectional");
  expectProblem(family("gemma2", {{"architectures", {"Gemma2Model"}}}),
                unsupported, "architectures.0", "Gemma2ForCausalLM");
  expectProblem(family("gemma2", {{"architectures", {"BertModel"}}}), invalid,
                "architectures.0", "contradicts");
  expectProblem(family("gpt_neox", {{"hidden_size", 50}}), invalid,
                "num_attention_heads", "not a multiple of the 6 heads");
  expectProblem(family("gpt_neox", {{"hidden_act", "mish"}}), unsupported,
                "hidden_act", "gelu_new");
  expectProblem(family("gpt_neox", {{"rotary_pct", 1.5}}), invalid,
                "rotary_pct", "at most 1");
  expectProblem(family("opt", {{"dropout", 2}}), invalid, "dropout",
                "probability");
  expectProblem(family("bert", {{"hidden_dropout_prob", -0.1}}), invalid,
                "hidden_dropout_prob", "probability");
  expectProblem(family("t5", {{"dropout_rate", 1.5}}), invalid, "dropout_rate",
                "probability");
  expectProblem(family("whisper", {{"decoder_layerdrop", 0.1}}), unsupported,
                "decoder_layerdrop", "not supported yet");
  expectProblem(family("falcon", {{"num_kv_heads", 2}, {"multi_query", false}}),
                invalid, "num_kv_heads", "new_decoder_architecture");
  expectProblem(family("falcon", {{"new_decoder_architecture", true},
                                  {"parallel_attn", false}}),
                invalid, "parallel_attn", "needs");
  expectProblem(family("mpt", {{"attn_config", {{"clip_qkv", 2.0}}}}),
                unsupported, "attn_config.clip_qkv", "clipped");
}

/// Exactly one problem of a GPT-2 with `changes`, at `key`.
void expectGpt2(const json &changes, Outcome outcome, const std::string &key,
                const std::string &part) {
  json value = {{"model_type", "gpt2"},
                {"resid_pdrop", 0.0},
                {"embd_pdrop", 0.0},
                {"attn_pdrop", 0.0}};
  value.update(changes);
  SCOPED_TRACE(value.dump());
  DiagnosticEngine engine;
  EXPECT_FALSE(parseModelConfig(value.dump(1), "config.json", engine));
  EXPECT_EQ(engine.outcome(), outcome);
  ASSERT_EQ(engine.all().size(), 1u);
  EXPECT_EQ(engine.all()[0].key, key);
  EXPECT_NE(engine.all()[0].message.find(part), std::string::npos)
      << engine.all()[0].message;
}

TEST(HuggingFaceConfig, Gpt2) {
  DiagnosticEngine engine;
  auto config = parseModelConfig(R"({"model_type": "gpt2", "hidden_size": 40,
      "n_head": 5, "n_inner": null, "resid_pdrop": 0, "embd_pdrop": 0,
      "attn_pdrop": 0})",
                                 "config.json", engine);
  ASSERT_TRUE(config);
  const auto &gpt2 = std::get<Gpt2Config>(config->family);
  EXPECT_EQ(gpt2.hiddenSize, 40);
  EXPECT_EQ(gpt2.intermediateSize, 160);
  EXPECT_EQ(config->maxPositions(), 1024);
  EXPECT_EQ(describeModel(*config).anatomy.noSplit,
            std::vector<std::string>{"GPT2Block"});
  expectGpt2({{"n_head", 7}}, Outcome::Invalid, "n_embd", "multiple");
  expectGpt2({{"resid_pdrop", -0.1}}, Outcome::Invalid, "resid_pdrop",
             "probability");
  expectGpt2({{"activation_function", "mish"}}, Outcome::NotSupported,
             "activation_function", "gelu_new");
  expectGpt2({{"add_cross_attention", true}}, Outcome::NotSupported,
             "add_cross_attention", "cross");
  expectGpt2({{"architectures", {"GPT2Model"}}}, Outcome::NotSupported,
             "architectures.0", "GPT2LMHeadModel");
  expectGpt2({{"architectures", {"BertModel"}}}, Outcome::Invalid,
             "architectures.0", "contradicts");
}

TEST(HuggingFaceConfig, WarnsOfKeysWithoutEffect) {
  Read got = read(with({{"model_type", "qwen2"}, {"attention_bias", true}}));
  ASSERT_TRUE(got.config);
  ASSERT_EQ(got.diagnostics.size(), 1u);
  EXPECT_EQ(got.diagnostics[0].severity, Severity::Warning);
  EXPECT_EQ(got.diagnostics[0].key, "attention_bias");
  EXPECT_FALSE(got.config->outputBias);
  EXPECT_TRUE(got.config->queryKeyValueBias);
}

TEST(HuggingFaceConfig, MissingFile) {
  DiagnosticEngine engine;
  EXPECT_FALSE(readModelConfig("no-such-folder/config.json", engine));
  ASSERT_EQ(engine.all().size(), 1u);
  EXPECT_EQ(engine.all()[0].file, "no-such-folder/config.json");
}

TEST(HuggingFaceConfig, DescribesTiedAndUntied) {
  ModelInfo untied = describeModel(*read(llama()).config);
  EXPECT_EQ(untied.parameters.size(), 2u * 9 + 3);
  EXPECT_EQ(untied.parameters.back().fqn, "lm_head.weight");
  ModelInfo tied =
      describeModel(*read(with({{"tie_word_embeddings", true}})).config);
  EXPECT_EQ(tied.parameters.size(), 2u * 9 + 2);
  EXPECT_EQ(tied.parameters.front().aliases,
            std::vector<std::string>{"lm_head.weight"});
  EXPECT_EQ(untied.numel() - tied.numel(), 100 * 48);
  EXPECT_EQ(untied.modules.size(), tied.modules.size());
}

TEST(HuggingFaceConfig, DeepNestingIsRefused) {
  std::string deep(200000, '[');
  EXPECT_FALSE(readText(deep).config);
  deep += std::string(200000, ']');
  Read got = readText("{\"model_type\": \"llama\", \"x\": " + deep + "}");
  EXPECT_FALSE(got.config);
  ASSERT_EQ(got.diagnostics.size(), 1u);
  EXPECT_NE(got.diagnostics[0].message.find("nested more than"),
            std::string::npos)
      << got.diagnostics[0].message;
}

/// Any cut and any changed byte ends in a configuration or in errors.
TEST(HuggingFaceConfig, Mutations) {
  std::string good =
      with({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}},
            {"architectures", {"LlamaForCausalLM"}}})
          .dump(1);
  auto check = [](const std::string &text) {
    Read got = readText(text);
    bool errors = got.outcome != Outcome::Ok;
    ASSERT_NE(got.config.has_value(), errors) << text;
    if (got.config)
      ASSERT_GT(describeModel(*got.config).numel(), 0) << text;
  };
  for (size_t i = 0; i < good.size(); ++i) {
    check(good.substr(0, i));
    for (char c : {'"', '{', '}', '[', ',', ':', '-', '0', '9', 'e', '\\',
                   '\xff', '\0', 'n'}) {
      std::string text = good;
      text[i] = c;
      check(text);
    }
  }
}

} // namespace
