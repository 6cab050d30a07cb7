//===- EditFilesTest.cpp - Lines of an advice in their files --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/EditFiles.h"

#include <gtest/gtest.h>

using namespace accel;

namespace {

constexpr const char *yaml = "# ours\n"
                             "distributed_type: FSDP # kept\n"
                             "fsdp_config:\n"
                             "  fsdp_version: 2\n";
constexpr const char *json = "{\n"
                             "  \"zero_optimization\": {\n"
                             "    \"stage\": 2\n"
                             "  }\n"
                             "}\n";

class Edit : public ::testing::Test {
protected:
  FileEditor editor{{{"a.yaml", yaml}, {"b.json", json}}};
};

TEST_F(Edit, AKeyIsChangedAndNothingElse) {
  ASSERT_TRUE(editor.set({"fsdp_config.fsdp_version", "1", "a.yaml"}));
  EXPECT_EQ(editor.text("a.yaml"), "# ours\n"
                                   "distributed_type: FSDP # kept\n"
                                   "fsdp_config:\n"
                                   "  fsdp_version: 1\n");
  EXPECT_TRUE(editor.changed("a.yaml"));
  EXPECT_FALSE(editor.changed("b.json"));
}

TEST_F(Edit, AKeyIsAdded) {
  ASSERT_TRUE(
      editor.set({"fsdp_config.fsdp_offload_params", "true", "a.yaml"}));
  ASSERT_TRUE(editor.set({"mixed_precision", "bf16", "a.yaml"}));
  ASSERT_TRUE(editor.set(
      {"parallelism_config.parallelism_config_dp_shard_size", "4", "a.yaml"}));
  const std::string text = editor.text("a.yaml");
  EXPECT_NE(text.find("  fsdp_offload_params: true\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\nmixed_precision: bf16\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nparallelism_config:\n"
                      "  parallelism_config_dp_shard_size: 4"),
            std::string::npos)
      << text;
}

TEST_F(Edit, SectionsOfAJsonAreAdded) {
  ASSERT_TRUE(editor.set({"zero_optimization.stage", "3", "b.json"}));
  ASSERT_TRUE(editor.set(
      {"zero_optimization.offload_optimizer.device", "cpu", "b.json"}));
  const std::string text = editor.text("b.json");
  EXPECT_NE(text.find("\"stage\": 3"), std::string::npos) << text;
  EXPECT_NE(text.find("\"offload_optimizer\": {\"device\": \"cpu\"}"),
            std::string::npos)
      << text;
  // And changed in what was added.
  ASSERT_TRUE(editor.set(
      {"zero_optimization.offload_optimizer.device", "none", "b.json"}));
  EXPECT_NE(editor.text("b.json").find("{\"device\": \"none\"}"),
            std::string::npos);
}

TEST_F(Edit, TextsAreAllThatIsKnownOrChanged) {
  ASSERT_TRUE(editor.set({"zero_optimization.stage", "3", "b.json"}));
  const yaml::FileTexts texts = editor.texts();
  EXPECT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts.at("a.yaml"), yaml);
  EXPECT_NE(texts.at("b.json"), json);
}

TEST_F(Edit, WhatCannotBeWritten) {
  EXPECT_FALSE(editor.set({"a", "1", "/no/such/file.yaml"}));
  EXPECT_EQ(editor.why(), "no such file");
  EXPECT_FALSE(editor.set({"distributed_type.inner", "1", "a.yaml"}));
  EXPECT_FALSE(editor.why().empty());
  FileEditor broken({{"a.yaml", "- a list\n"}});
  EXPECT_FALSE(broken.set({"a", "1", "a.yaml"}));
  EXPECT_EQ(broken.why(), "the file holds no keys");
}

} // namespace
