//===- ModuleTreeTest.cpp - Module trees from config.json -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/ModuleTree.h"
#include "frontends/ModuleTree/Expression.h"

#include <gtest/gtest.h>

using namespace accel;

static double valueOf(const std::string &text) {
  std::string error;
  auto lookup = [](std::string_view name) -> std::optional<double> {
    return name == "a" ? std::optional(7.0) : std::nullopt;
  };
  std::optional<double> value = moduletree::evaluate(text, lookup, error);
  EXPECT_EQ(value.has_value(), error.empty()) << error;
  return value.value_or(-99);
}

TEST(Expression, BindsAsInC) {
  EXPECT_EQ(valueOf("1+2*3"), 7);
  EXPECT_EQ(valueOf("(1+2)*3-4"), 5);
  EXPECT_EQ(valueOf("10-4-3"), 3);
  EXPECT_EQ(valueOf("7/2*2"), 6); // rounds down
  EXPECT_EQ(valueOf("a%4==3&&!0"), 1);
  EXPECT_EQ(valueOf("a<7||a>=7"), 1);
  EXPECT_EQ(valueOf("0?1:a?2:3"), 2);
  EXPECT_EQ(valueOf("-a+0.5"), -6.5);
}

TEST(Expression, RefusesWhatItCannotRead) {
  for (const char *text :
       {"", "1+", "b", "(1", "1?2", "1 2", "1/0", "a%0", "1..2", "))", "a)"})
    EXPECT_EQ(valueOf(text), -99) << text;
  EXPECT_EQ(valueOf(std::string(5000, '(')), -99);
}

static std::optional<ModuleTree> parse(const std::string &text,
                                       DiagnosticEngine &engine,
                                       const std::string &architecture = "") {
  return parseModuleTree(text, "config.json", {architecture}, engine);
}

TEST(ModuleTree, CountsTiedTensorsOnce) {
  DiagnosticEngine engine;
  auto tied = parse(R"({"model_type": "llama", "vocab_size": 10,
    "hidden_size": 4, "num_attention_heads": 2, "intermediate_size": 6,
    "num_hidden_layers": 2, "tie_word_embeddings": true})",
                    engine);
  ASSERT_TRUE(tied);
  EXPECT_EQ(tied->parameters.back().fqn, "lm_head.weight");
  EXPECT_EQ(tied->parameters.back().tiedTo, 0);
  // 2 layers of 4 * 16 + 3 * 24 + 2 * 4, the embedding, the norm.
  EXPECT_EQ(tied->numel(), 2 * 144 + 40 + 4);
  int head = tied->find("lm_head"), layers = tied->find("model.layers");
  EXPECT_EQ(tied->numelOf(head), 40);
  EXPECT_EQ(tied->numelOf(layers), 2 * 144);
  EXPECT_EQ(tied->parametersOf(head), std::vector<int>{0});
  EXPECT_EQ(tied->find("model.layers.2"), -1);
}

TEST(ModuleTree, TakesTheArchitectureThatIsAskedFor) {
  DiagnosticEngine engine;
  const char *text = R"({"model_type": "bert", "num_hidden_layers": 1,
    "architectures": ["BertForMaskedLM"]})";
  EXPECT_EQ(parse(text, engine)->architecture, "BertForMaskedLM");
  EXPECT_EQ(parse(text, engine, "base")->architecture, "BertModel");
  EXPECT_TRUE(engine.all().empty());
}

TEST(ModuleTree, SaysWhatItDoesNotKnow) {
  DiagnosticEngine engine;
  EXPECT_FALSE(parse(R"({"model_type": "lama"})", engine));
  EXPECT_FALSE(parse(R"({"model_type": "llama",
    "architectures": ["LlamaForAll"]})",
                     engine));
  ASSERT_EQ(engine.all().size(), 2u);
  EXPECT_FALSE(engine.hasErrors());
  EXPECT_EQ(engine.all()[0].code, "unknown-model");
  EXPECT_EQ(engine.all()[0].hint, "did you mean 'llama'?");
  EXPECT_NE(engine.all()[1].hint.find("LlamaForCausalLM"), std::string::npos);
}

TEST(ModuleTree, RefusesBadFiles) {
  for (const char *text :
       {"", "{", "[]", "{}", R"({"model_type": 3})",
        R"({"model_type": "llama", "hidden_size": "big"})",
        R"({"model_type": "llama", "hidden_size": -4})",
        R"({"model_type": "llama", "num_attention_heads": 0})",
        R"({"model_type": "llama", "num_hidden_layers": 1000000000})",
        R"({"model_type": "llama", "vocab_size": 1e300})",
        R"({"model_type": "qwen2", "hidden_act": 5})",
        R"({"model_type": "bert", "num_hidden_layers": 2000})"}) {
    DiagnosticEngine engine;
    std::optional<ModuleTree> tree = parse(text, engine);
    // The last one is large but fine.
    EXPECT_EQ(tree.has_value(),
              std::string(text).find("2000") != std::string::npos)
        << text;
    EXPECT_EQ(tree.has_value(), !engine.hasErrors()) << text;
  }
}

TEST(ModuleTree, SaysWhichLayersSeeAWindow) {
  DiagnosticEngine engine;
  auto sliding = [&](const std::string &text) {
    std::string bits;
    std::optional<ModuleTree> tree = parse(text, engine);
    for (Attention a : tree->attention)
      bits += a == Attention::Sliding ? 's' : 'f';
    return bits;
  };
  EXPECT_EQ(sliding(R"({"model_type": "mistral", "num_hidden_layers": 2})"),
            "ss");
  EXPECT_EQ(sliding(R"({"model_type": "mistral", "num_hidden_layers": 2,
    "sliding_window": null})"),
            "ff");
  EXPECT_EQ(sliding(R"({"model_type": "gemma2", "num_hidden_layers": 3})"),
            "sfs");
  EXPECT_EQ(sliding(R"({"model_type": "gemma2", "num_hidden_layers": 2,
    "layer_types": ["full_attention", "sliding_attention"]})"),
            "fs");
  EXPECT_EQ(sliding(R"({"model_type": "bert"})"), "");
}

TEST(ModuleTree, ReportsAMissingFile) {
  DiagnosticEngine engine;
  EXPECT_FALSE(readModuleTree("/nowhere/at/all", {}, engine));
  ASSERT_EQ(engine.all().size(), 1u);
  EXPECT_EQ(engine.all()[0].code, "no-model");
}
