//===- PublishedModelsTest.cpp --------------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/PublishedModels.h"
#include "frontends/HuggingFace/HubCache.h"
#include "frontends/HuggingFace/ModelConfig.h"

#include <gtest/gtest.h>
#include <set>

using namespace accel;
using namespace accel::huggingface;

namespace {

TEST(PublishedModels, FoundByName) {
  auto name = [](const std::string &given) {
    auto model = publishedModel(given);
    return model ? model->name : "";
  };
  EXPECT_EQ(name("Qwen/Qwen3-8B"), "Qwen/Qwen3-8B");
  EXPECT_EQ(name("qwen/qwen3-8b"), "Qwen/Qwen3-8B");
  EXPECT_EQ(name("Qwen3-8B"), "Qwen/Qwen3-8B");
  EXPECT_EQ(name("unsloth/Llama-3.2-1B"), "meta-llama/Llama-3.2-1B");
  // Other sizes, versions and formats are other models.
  for (const char *other :
       {"", "/", "Qwen", "Qwen/", "Qwen/Qwen3", "Qwen/Qwen3-8",
        "Qwen/Qwen3-8BB", "unsloth/Qwen3-8B-bnb-4bit", "models/Qwen/Qwen3-8B",
        "/Qwen/Qwen3-8B", "./models/Qwen3-8B"})
    EXPECT_EQ(name(other), "") << other;
}

TEST(PublishedModels, EachIsReadByItsName) {
  std::set<std::string> names;
  for (const PublishedModel &model : publishedModels()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    auto found = publishedModel(model.name);
    ASSERT_TRUE(found) << model.name;
    EXPECT_EQ(found->config, model.config) << model.name;
    DiagnosticEngine engine;
    auto config = parseModelConfig(model.config, "config.json", engine);
    EXPECT_TRUE(config && engine.all().empty()) << model.name;
    // Scripts load what the checkpoint has.
    EXPECT_TRUE(config && config->dtype()) << model.name;
    EXPECT_EQ(modelTypeOf(model.name), model.modelType);
  }
  EXPECT_GT(names.size(), 240u);
}

TEST(PublishedModels, HintsNameTheNearest) {
  EXPECT_EQ(hubHint("Qwen/Qwen3-8B"), "download its configuration with: hf "
                                      "download Qwen/Qwen3-8B config.json");
  EXPECT_EQ(hubHint("Qwen/Qwem3-8B").rfind("did you mean 'Qwen/Qwen3-8B'?", 0),
            0u);
}

} // namespace
