//===- ModelSizes.cpp - A decoder's sizes, and its config.json ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/ModelSizes.h"

#include "frontends/HuggingFace/PublishedModels.h"
#include "passes/Validate/KnownModels.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

namespace accel::validate {

namespace {

struct Known {
  const char *name; // modelKey
  ModelSizes sizes;
};

// MPT as in llm-foundry's scripts/train/benchmarking, whose models have learned
// positions and biases; GPT-3 of 175 B.
const Known models[] = {
    {"mpt125m", {12, 768, 12, 12, 3072, 50368, "gpt2", true}},
    {"mpt350m", {24, 1024, 16, 16, 4096, 50368, "gpt2", true}},
    {"mpt760m", {24, 1536, 12, 12, 6144, 50368, "gpt2", true}},
    {"mpt1b", {24, 2048, 16, 16, 8192, 50368, "gpt2", true}},
    {"mpt3b", {32, 2560, 20, 20, 10240, 50368, "gpt2", true}},
    {"mpt7b", {32, 4096, 32, 32, 16384, 50368, "gpt2", true}},
    {"mpt13b", {40, 5120, 40, 40, 20480, 50368, "gpt2", true}},
    {"mpt30b", {48, 7168, 56, 56, 28672, 50368, "gpt2", true}},
    {"mpt70b", {80, 8192, 64, 64, 32768, 50368, "gpt2", true}},
    {"gpt3175b", {96, 12288, 96, 96, 49152, 51200, "gpt2", true}},
};

// Published models of which a row may change any size: sizes are all that is
// taken of them.
constexpr const char *bySizes[] = {
    "llama27b",     "llama213b",   "llama270b",  "codellama7b", "codellama13b",
    "codellama34b", "llama38b",    "llama318b",  "llama370b",   "llama3170b",
    "llama3370b",   "llama31405b", "llama3405b", "llama321b",   "llama323b",
    "mistral7b",    "qwen27b",     "qwen257b",   "qwen2514b",   "qwen2532b",
    "qwen2572b",    "gpt2",        "gpt2medium", "gpt2large",   "gpt2xl"};

using Json = nlohmann::ordered_json;

/// config.json of the published models by modelKey; of names with one key the
/// first.
const std::map<std::string, Json> &publishedConfigs() {
  static const std::map<std::string, Json> all = [] {
    std::map<std::string, Json> configs;
    for (const huggingface::PublishedModel &model :
         huggingface::publishedModels()) {
      Json config = Json::parse(model.config);
      config.erase("torch_dtype"); // a row says how its model is loaded
      configs.emplace(modelKey(model.name), std::move(config));
    }
    configs.emplace("llama3405b", configs.at("llama31405b"));
    // Names without the parameters of a token, and with "MoE".
    for (const auto &[size, active] :
         {std::pair("30b", "a3b"), std::pair("235b", "a22b")}) {
      const std::string whole = size, full = whole + active;
      const Json config = configs.at("qwen3" + full);
      for (const std::string &name :
           {"moe" + whole, "moe" + full, whole, whole + "moe", full + "moe"})
        configs.emplace("qwen3" + name, config);
    }
    return configs;
  }();
  return all;
}

ModelSizes sizesOf(const Json &config) {
  auto of = [&](const char *key, int64_t otherwise) {
    return config.value(key, otherwise);
  };
  ModelSizes sizes;
  sizes.family = config.value("model_type", "");
  const bool gpt = sizes.family == "gpt2";
  sizes.layers = of(gpt ? "n_layer" : "num_hidden_layers", 0);
  sizes.hidden = of(gpt ? "n_embd" : "hidden_size", 0);
  sizes.heads = of(gpt ? "n_head" : "num_attention_heads", 0);
  sizes.keyValueHeads = of("num_key_value_heads", sizes.heads);
  sizes.ffn = of("intermediate_size", 4 * sizes.hidden);
  sizes.vocab = of("vocab_size", 0);
  sizes.tied = config.value("tie_word_embeddings", gpt);
  return sizes;
}

bool isBySizes(const std::string &key) {
  return std::find(std::begin(bySizes), std::end(bySizes), key) !=
         std::end(bySizes);
}

} // namespace

std::string modelKey(const std::string &name) {
  std::string base = name.substr(0, name.find_first_of("[("));
  if (size_t slash = base.rfind('/'); slash != base.npos)
    base.erase(0, slash + 1);
  std::string key;
  for (char c : base)
    if (std::isalnum(static_cast<unsigned char>(c)))
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char *prefix : {"metallama", "meta"})
    if (key.starts_with(prefix) && key.size() > std::string(prefix).size()) {
      key.erase(0, std::string(prefix).size());
      if (!key.starts_with("llama"))
        key = "llama" + key;
      break;
    }
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (const std::string suffix :
         {"gptq", "awq",      "bnb4bit", "unsloth", "4bit", "2407",
          "2409", "2410",     "2501",    "2503",    "2506", "2507",
          "2508", "instruct", "chat",    "base",    "hf",   "v10",
          "v01",  "v02",      "v03",     "v15",     "it"})
      if (key.ends_with(suffix) && key.size() > suffix.size()) {
        key.erase(key.size() - suffix.size());
        shorter = true;
      }
  }
  return key;
}

std::optional<std::string> shippedConfig(const std::string &name,
                                         const ModelSizes &stated,
                                         int64_t positions) {
  static const Json known = Json::parse(knownModelConfigs);
  const std::string key = modelKey(name);
  Json config;
  if (const auto found = known.find(key); found != known.end())
    config = *found;
  else if (const auto published = publishedConfigs().find(key);
           published != publishedConfigs().end() && !isBySizes(key))
    config = published->second;
  else
    return std::nullopt;
  auto state = [&](std::initializer_list<const char *> keys, int64_t value) {
    for (const char *key : keys)
      if (value > 0 && config.contains(key))
        config[key] = value;
  };
  // Models of fewer layers for a measurement keep one dense layer (SimuMax).
  const char *dense = "first_k_dense_replace";
  if (config.contains(dense) && stated.layers > 0 &&
      stated.layers < config["num_hidden_layers"])
    config[dense] = std::min<int64_t>(1, config[dense]);
  state({"num_hidden_layers", "n_layer"}, stated.layers);
  state({"hidden_size", "n_embd"}, stated.hidden);
  state({"num_attention_heads", "n_head"}, stated.heads);
  state({"num_key_value_heads"}, stated.keyValueHeads);
  state({"intermediate_size", "n_inner", "ffn_dim"}, stated.ffn);
  state({"vocab_size"}, stated.vocab);
  for (const char *key : {"max_position_embeddings", "n_positions"})
    if (config.contains(key))
      config[key] = std::max(config[key].get<int64_t>(), positions);
  return config.dump();
}

std::optional<ModelSizes> knownModel(const std::string &name) {
  const std::string key = modelKey(name);
  if (isBySizes(key))
    return sizesOf(publishedConfigs().at(key));
  const auto found =
      std::find_if(std::begin(models), std::end(models),
                   [&](const Known &known) { return key == known.name; });
  return found == std::end(models) ? std::nullopt
                                   : std::optional<ModelSizes>(found->sizes);
}

std::string configJson(const ModelSizes &sizes, int64_t positions) {
  nlohmann::ordered_json json = {{"model_type", sizes.family},
                                 {"vocab_size", sizes.vocab},
                                 {"tie_word_embeddings", sizes.tied}};
  if (sizes.family == "gpt2") {
    json.update({{"n_layer", sizes.layers},
                 {"n_embd", sizes.hidden},
                 {"n_head", sizes.heads},
                 {"n_inner", sizes.ffn},
                 {"n_positions", positions},
                 {"activation_function", "gelu"},
                 {"resid_pdrop", sizes.dropout},
                 {"embd_pdrop", sizes.dropout},
                 {"attn_pdrop", sizes.dropout}});
    return json.dump();
  }
  json.update({{"num_hidden_layers", sizes.layers},
               {"hidden_size", sizes.hidden},
               {"num_attention_heads", sizes.heads},
               {"num_key_value_heads", sizes.keyValueHeads},
               {"intermediate_size", sizes.ffn},
               {"max_position_embeddings", positions},
               {"hidden_act", "silu"}});
  if (sizes.family == "mistral")
    json["sliding_window"] = nullptr;
  return json.dump();
}

} // namespace accel::validate
