//===- HuggingFaceMixtureTest.cpp -----------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/ModelConfig.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace accel;
using namespace accel::huggingface;
using nlohmann::json;

namespace {

json mixtral(const json &changes = json::object()) {
  json config = {{"model_type", "mixtral"},  {"vocab_size", 100},
                 {"hidden_size", 48},        {"intermediate_size", 20},
                 {"num_hidden_layers", 2},   {"num_attention_heads", 6},
                 {"num_key_value_heads", 2}, {"num_local_experts", 5}};
  config.update(changes);
  return config;
}
json qwen3Moe(const json &changes = json::object()) {
  json config = mixtral({{"model_type", "qwen3_moe"},
                         {"num_hidden_layers", 5},
                         {"moe_intermediate_size", 12},
                         {"num_experts_per_tok", 3}});
  config.update(changes);
  return config;
}

std::optional<LlamaConfig> read(const json &value, DiagnosticEngine &engine) {
  return parseLlamaConfig(value.dump(1), "config.json", engine);
}
LlamaConfig readGood(const json &value) {
  DiagnosticEngine engine;
  auto config = read(value, engine);
  EXPECT_TRUE(config) << value;
  return config.value_or(LlamaConfig());
}
void expectError(const json &value, const std::string &key,
                 const std::string &part, Outcome outcome) {
  SCOPED_TRACE(value.dump());
  DiagnosticEngine engine;
  EXPECT_FALSE(read(value, engine));
  EXPECT_EQ(engine.outcome(), outcome);
  ASSERT_EQ(engine.all().size(), 1u);
  EXPECT_EQ(engine.all()[0].key, key);
  EXPECT_NE(engine.all()[0].message.find(part), std::string::npos)
      << engine.all()[0].message;
}

TEST(MixtureConfig, Mixtral) {
  LlamaConfig c = readGood(mixtral());
  EXPECT_EQ(c.mixture.experts, 5);
  EXPECT_EQ(c.mixture.chosen, 2);
  EXPECT_EQ(c.mixture.intermediateSize, 20);
  EXPECT_TRUE(c.mixture.normalize && c.mixture.scoresInFp32);
  EXPECT_EQ(c.mixture.sparseLayers(), 2);
  EXPECT_FALSE(c.mixture.auxiliary);
  EXPECT_TRUE(c.windows.empty());
  // null is absent, in either spelling.
  EXPECT_EQ(readGood(mixtral({{"num_experts", nullptr}})).mixture.experts, 5);
  EXPECT_EQ(
      readGood(mixtral({{"num_local_experts", nullptr}, {"num_experts", 7}}))
          .mixture.experts,
      7);
  EXPECT_EQ(c.rope.theta, 1e6);
  EXPECT_EQ(c.rmsNormEps, 1e-5);
  c = readGood(
      mixtral({{"output_router_logits", true}, {"sliding_window", 8}}));
  EXPECT_EQ(c.mixture.auxiliary, 0.001);
  EXPECT_EQ(c.windows, (std::vector<int64_t>{8, 8}));
}

TEST(MixtureConfig, TheScriptSetsTheBalancingLoss) {
  auto parsed = [](const json &config) {
    DiagnosticEngine engine;
    return *parseModelConfig(config.dump(), "config.json", engine);
  };
  auto coefficient = [](const ModelConfig &config) {
    return std::get<LlamaConfig>(config.family).mixture.auxiliary;
  };
  ModelConfig mixture = parsed(mixtral(json::object()));
  EXPECT_TRUE(setBalancing(mixture, 0.02));
  EXPECT_EQ(coefficient(mixture), 0.02);
  EXPECT_TRUE(setBalancing(mixture, 0));
  EXPECT_FALSE(coefficient(mixture));
  ModelConfig dense = parsed(qwen3Moe({{"num_local_experts", 0}}));
  EXPECT_FALSE(setBalancing(dense, 0.02)); // has no experts
  EXPECT_FALSE(coefficient(dense));
}

TEST(MixtureConfig, DenseLayers) {
  auto sparse = [](const json &changes) {
    LlamaConfig c = readGood(qwen3Moe(changes));
    std::vector<int64_t> layers;
    for (int64_t i = 0; i < c.layers; ++i)
      if (c.mixture.isSparse(i))
        layers.push_back(i);
    return layers;
  };
  using List = std::vector<int64_t>;
  EXPECT_EQ(sparse(json::object()), (List{0, 1, 2, 3, 4}));
  EXPECT_EQ(sparse({{"decoder_sparse_step", 2}}), (List{1, 3}));
  EXPECT_EQ(sparse({{"mlp_only_layers", {0, 3}}}), (List{1, 2, 4}));
  EXPECT_EQ(sparse({{"num_local_experts", 0}}), List{});
}

TEST(MixtureConfig, Problems) {
  expectError(mixtral({{"num_experts_per_tok", 6}}), "num_experts_per_tok",
              "more than the 5 experts", Outcome::Invalid);
  expectError(mixtral({{"num_experts", 4}}), "num_experts", "one setting",
              Outcome::Invalid);
  expectError(qwen3Moe({{"decoder_sparse_step", 0}}), "decoder_sparse_step",
              "decoder_sparse_step", Outcome::Invalid);
  expectError(qwen3Moe({{"mlp_only_layers", "none"}}), "mlp_only_layers",
              "must be a list", Outcome::Invalid);
  expectError(mixtral({{"intermediate_size", 18}}), "intermediate_size",
              "not a multiple of 4", Outcome::NotSupported);
  expectError(mixtral({{"router_jitter_noise", 0.1}}), "router_jitter_noise",
              "must be 0", Outcome::NotSupported);
  DiagnosticEngine engine;
  EXPECT_TRUE(read(qwen3Moe({{"mlp_only_layers", {7}}}), engine));
  ASSERT_EQ(engine.all().size(), 1u);
  EXPECT_EQ(engine.all()[0].code, "ignored-key");
}

TEST(MixtureConfig, StoredNames) {
  ModelInfo info = describeModel(readGood(mixtral()));
  auto find = [&](const std::string &fqn) {
    for (const ParameterInfo &p : info.parameters)
      if (p.fqn == fqn)
        return *plan::storedParts(p.fqn, p.stored, p.shape);
    return std::vector<plan::StoredPart>();
  };
  auto gate = find("model.layers.1.mlp.gate.weight");
  ASSERT_EQ(gate.size(), 1u);
  EXPECT_EQ(gate[0].name, "model.layers.1.block_sparse_moe.gate.weight");
  auto experts = find("model.layers.1.mlp.experts.gate_up_proj");
  ASSERT_EQ(experts.size(), 10u);
  EXPECT_EQ(experts[3].name,
            "model.layers.1.block_sparse_moe.experts.1.w3.weight");
  EXPECT_EQ(experts[3].shape, (std::vector<int64_t>{20, 48}));
  EXPECT_EQ(experts[3].begin, 3 * 20 * 48);
}

TEST(StoredParts, NamesThatDoNotFit) {
  EXPECT_FALSE(plan::storedParts("p", {"a.*", "b.*"}, {4, 3}));
  EXPECT_FALSE(plan::storedParts("p", {"a.*", "b"}, {4, 2}));
  EXPECT_FALSE(plan::storedParts("p", {"a.*"}, {4}));
  EXPECT_FALSE(plan::storedParts("p", {"a.*"}, {int64_t(1) << 40, 1}));
  EXPECT_EQ(plan::storedParts("p", {}, {4})->front().name, "p");
}

} // namespace
