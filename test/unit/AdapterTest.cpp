//===- AdapterTest.cpp - adapter_config.json and what it means ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Job/AdapterConfig.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace accel;

namespace {

class Adapter : public ::testing::Test {
protected:
  DiagnosticEngine engine;

  std::optional<AdapterConfig> parse(const std::string &members) {
    return parseAdapterConfig("{\"peft_type\": \"LORA\"" +
                                  (members.empty() ? "" : ",\n" + members) +
                                  "}",
                              "adapter_config.json", engine);
  }
  std::string findings() const {
    std::string out;
    for (const Diagnostic &d : engine.sorted())
      out += (out.empty() ? "" : "; ") + d.code + " " + std::to_string(d.line) +
             " " + d.key;
    return out;
  }
};

TEST_F(Adapter, NamesMatchWholePartsAtTheEnd) {
  auto config = parse("\"target_modules\": [\"q_proj\", \"mlp.up_proj\"],\n"
                      "\"exclude_modules\": [\"layers.1.mlp.up_proj\"]");
  ASSERT_TRUE(config) << findings();
  EXPECT_TRUE(config->targets("model.layers.0.self_attn.q_proj", 0, 0));
  EXPECT_TRUE(config->targets("q_proj", 0, 0));
  EXPECT_TRUE(config->targets("model.layers.0.mlp.up_proj", 0, 0));
  EXPECT_FALSE(config->targets("model.layers.1.mlp.up_proj", 0, 0));
  EXPECT_FALSE(config->targets("model.layers.0.self_attn.xq_proj", 0, 0));
  EXPECT_FALSE(config->targets("model.layers.0.q_proj.child", 0, 0));
}

TEST_F(Adapter, AnExpressionMatchesTheWholeName) {
  auto config = parse("\"target_modules\": \".*layers\\\\.0\\\\..*_proj\"");
  ASSERT_TRUE(config) << findings();
  EXPECT_TRUE(config->targets("model.layers.0.self_attn.q_proj", 0, 0));
  EXPECT_FALSE(config->targets("model.layers.0.self_attn.q_proj.a", 0, 0));
  EXPECT_FALSE(config->targets("model.layers.10.self_attn.q_proj", 0, 0));
}

TEST_F(Adapter, AllLinearLeavesOutTheHead) {
  auto config = parse("\"target_modules\": \"All-Linear\"");
  ASSERT_TRUE(config) << findings();
  EXPECT_TRUE(config->targets("a.b", /*linear=*/true, false));
  EXPECT_FALSE(config->targets("lm_head", true, /*outputEmbedding=*/true));
  EXPECT_FALSE(config->targets("a.norm", false, false));
}

TEST_F(Adapter, LayersAreTheFirstNumberOfAName) {
  auto config = parse("\"target_modules\": [\"w1\"],\n"
                      "\"layers_to_transform\": [1]");
  ASSERT_TRUE(config) << findings();
  EXPECT_TRUE(config->targets("model.layers.1.experts.0.w1", 0, 0));
  EXPECT_FALSE(config->targets("model.layers.0.experts.1.w1", 0, 0));
  EXPECT_FALSE(config->targets("model.w1", 0, 0));
  auto named = parse("\"target_modules\": [\"w1\"],\n"
                     "\"layers_to_transform\": 1, \"layers_pattern\": \"h\"");
  ASSERT_TRUE(named) << findings();
  EXPECT_TRUE(named->targets("h.1.w1", 0, 0));
  EXPECT_FALSE(named->targets("model.layers.1.w1", 0, 0));
}

TEST_F(Adapter, PatternsCountInTheirOrder) {
  auto config =
      parse("\"target_modules\": [\"q\"], \"r\": 4, \"lora_alpha\": 8,\n"
            "\"rank_pattern\": {\"z.q\": 16, \".*q\": 2},\n"
            "\"alpha_pattern\": {\"1.z.q\": 64}");
  ASSERT_TRUE(config) << findings();
  EXPECT_EQ(config->rankOf("a.z.q"), 16);
  EXPECT_EQ(config->rankOf("a.y.q"), 2);
  EXPECT_EQ(config->rankOf("a.v"), 4);
  EXPECT_EQ(config->scaleOf("a.v"), 2);
  EXPECT_EQ(config->scaleOf("a.1.z.q"), 4);
  auto root = parse("\"target_modules\": [\"q\"], \"r\": 16,\n"
                    "\"use_rslora\": true, \"lora_alpha\": 8");
  ASSERT_TRUE(root) << findings();
  EXPECT_EQ(root->scaleOf("q"), 2);
}

TEST_F(Adapter, SavedModulesMatchTheEndOfAName) {
  auto config = parse("\"target_modules\": [\"q\"],\n"
                      "\"modules_to_save\": [\"norm\", \"head\"]");
  ASSERT_TRUE(config) << findings();
  EXPECT_TRUE(config->saves("model.layers.0.input_layernorm"));
  EXPECT_TRUE(config->saves("lm_head"));
  EXPECT_FALSE(config->saves("model.layers.0.mlp"));
  EXPECT_FALSE(config->targets("norm.q", 0, 0));
}

TEST_F(Adapter, WritesWhatItReads) {
  auto config = parse(
      "\"target_modules\": [\"q\"], \"r\": 3, \"lora_alpha\": 1.5,\n"
      "\"bias\": \"lora_only\", \"init_lora_weights\": \"gaussian\",\n"
      "\"lora_dropout\": 0.25, \"use_dora\": true,\n"
      "\"rank_pattern\": {\"b\": 2, \"a\": 1}, \"task_type\": \"SEQ_CLS\",\n"
      "\"modules_to_save\": [\"score\"], \"inference_mode\": false");
  ASSERT_TRUE(config) << findings();
  std::string text = adapterConfigText(*config, "/base");
  auto again = parseAdapterConfig(text, "again.json", engine);
  ASSERT_TRUE(again) << findings();
  EXPECT_EQ(again->baseModel, "/base");
  EXPECT_EQ(again->rankPattern, config->rankPattern);
  EXPECT_EQ(again->modelClass(), "PeftModelForSequenceClassification");
  EXPECT_EQ(adapterConfigText(*again, "/base"), text);
}

struct Refusal {
  const char *members, *finding;
};

class Refused : public Adapter,
                public ::testing::WithParamInterface<Refusal> {};

TEST_P(Refused, WithItsPlace) {
  EXPECT_FALSE(parse(GetParam().members));
  EXPECT_EQ(findings(), GetParam().finding);
}

INSTANTIATE_TEST_SUITE_P(
    All, Refused,
    ::testing::Values(
        Refusal{"", "invalid-value 1 target_modules"},
        Refusal{"\"target_modules\": [\"q\"], \"r\": 0", "invalid-value 2 r"},
        Refusal{"\"target_modules\": [\"q\"], \"r\": 8.5", "invalid-value 2 r"},
        Refusal{"\"target_modules\": []", "invalid-value 2 target_modules"},
        Refusal{"\"target_modules\": [1]", "invalid-value 2 target_modules"},
        Refusal{"\"target_modules\": \"(q\"", "invalid-value 2 target_modules"},
        Refusal{"\"target_modules\": \"a)(b\"",
                "invalid-value 2 target_modules"},
        Refusal{"\"target_modules\": [\"q\"], \"bias\": \"al\"",
                "invalid-value 2 bias"},
        Refusal{"\"target_modules\": [\"q\"], \"lora_alpha\": \"8\"",
                "invalid-value 2 lora_alpha"},
        Refusal{"\"target_modules\": [\"q\"], \"modules_to_save\": \"head\"",
                "invalid-value 2 modules_to_save"},
        Refusal{"\"target_modules\": \"q\", \"layers_to_transform\": 1",
                "invalid-value 2 layers_to_transform"},
        Refusal{"\"target_modules\": [\"q\"], \"layers_pattern\": \"h\"",
                "invalid-value 2 layers_pattern"},
        Refusal{"\"target_modules\": [\"q\"],\n\"rank_pattern\": {\"q\": -1}",
                "invalid-value 3 rank_pattern"},
        Refusal{"\"target_modules\": [\"q\"],\n\"use_dora\": 1",
                "invalid-value 3 use_dora"},
        Refusal{"\"target_modules\": [\"q\"],\n\"lora_dropout\": 1.0",
                "invalid-value 3 lora_dropout"},
        Refusal{"\"target_modules\": [\"q\"],\n"
                "\"init_lora_weights\": \"pissa\"",
                "not-supported 3 init_lora_weights"}));

TEST_F(Adapter, OtherKindsAreNamed) {
  EXPECT_FALSE(parseAdapterConfig("{\"peft_type\": \"IA3\",\n"
                                  "\"target_modules\": [\"q\"]}",
                                  "adapter_config.json", engine));
  EXPECT_EQ(findings(), "not-supported 1 peft_type");
  EXPECT_EQ(engine.outcome(), Outcome::NotSupported);
}

TEST_F(Adapter, AnUnknownKeyIsIgnoredAsByPeft) {
  EXPECT_TRUE(parse("\"target_modules\": [\"q\"],\n\"lora_alfa\": 8"));
  EXPECT_EQ(findings(), "unknown-key 3 lora_alfa");
  EXPECT_FALSE(engine.hasErrors());
}

TEST_F(Adapter, NoObjectIsNone) {
  for (const char *text : {"", "[]", "1", "{", "nul"}) {
    DiagnosticEngine own;
    EXPECT_FALSE(parseAdapterConfig(text, "adapter_config.json", own)) << text;
    EXPECT_TRUE(own.hasErrors()) << text;
  }
}

} // namespace
