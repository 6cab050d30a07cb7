//===- KeyTableTest.cpp - The table of keys by version --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/KeyTable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace accel;

namespace {

bool has(std::string_view section, const char *name, AccelerateVersion v) {
  std::vector<std::string> keys = keysOf(section, v);
  return std::find(keys.begin(), keys.end(), name) != keys.end();
}

TEST(KeyTable, Versions) {
  EXPECT_EQ(parseAccelerateVersion("1.15.0"), (AccelerateVersion{1, 15}));
  EXPECT_EQ(parseAccelerateVersion("0.34.2"), (AccelerateVersion{0, 34}));
  EXPECT_EQ(parseAccelerateVersion("1"), std::nullopt);
  EXPECT_EQ(parseAccelerateVersion("x.1"), std::nullopt);
  EXPECT_EQ(toString(AccelerateVersion{0, 34}), "0.34");
}

TEST(KeyTable, KeysComeAndGo) {
  EXPECT_FALSE(has("fsdp_config", "fsdp_version", {1, 5}));
  EXPECT_TRUE(has("fsdp_config", "fsdp_version", {1, 6}));
  EXPECT_TRUE(has("", "ipex_config", {1, 12}));
  EXPECT_FALSE(has("", "ipex_config", {1, 13}));
  EXPECT_FALSE(has("", "tp_config", {1, 3}));
  EXPECT_TRUE(has("", "tp_config", {1, 6}));
  EXPECT_FALSE(has("", "tp_config", {1, 7}));
  EXPECT_TRUE(has("fsdp_config", "min_num_params", {0, 11}));
  EXPECT_FALSE(has("fsdp_config", "min_num_params", {0, 12}));
}

TEST(KeyTable, DefaultsByVersion) {
  const KeyInfo *orig = findKey("fsdp_config", "fsdp_use_orig_params");
  ASSERT_TRUE(orig);
  EXPECT_STREQ(orig->defaultIn({0, 24})->value, "false");
  EXPECT_STREQ(orig->defaultIn({0, 25})->value, "true");
  EXPECT_EQ(orig->defaultIn({0, 20}), nullptr);
  const KeyInfo *format = findKey("fp8_config", "fp8_format");
  EXPECT_STREQ(format->defaultIn({1, 7})->value, "E4M3");
  EXPECT_STREQ(format->defaultIn({1, 8})->value, "HYBRID");
}

TEST(KeyTable, ValuesByVersion) {
  const EnumInfo &types = *findKey("", "distributed_type")->choices;
  auto allows = [&](const char *value, AccelerateVersion v) {
    std::vector<std::string> values = valuesOf(types, v);
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  EXPECT_TRUE(allows("TPU", {0, 27}));
  EXPECT_FALSE(allows("TPU", {0, 28}));
  EXPECT_TRUE(allows("XLA", {0, 28}));
  EXPECT_TRUE(allows("TP", {1, 9}));
  EXPECT_FALSE(allows("TP", {1, 10}));
  EXPECT_FALSE(allows("MULTI_NEURON", {1, 12}));
}

TEST(KeyTable, WhatLaunchDropsIsAKeyAndWhatIsMisspeltIsNone) {
  const KeyInfo *same = findKey("", "same_network");
  EXPECT_TRUE(same->readIn({0, 13}));
  EXPECT_FALSE(same->readIn({1, 15}));
  EXPECT_TRUE(has("", "same_network", {1, 15}));
  EXPECT_TRUE(findKey("fp8_config", "fp8_amax_history_length"));
  EXPECT_FALSE(has("fp8_config", "fp8_amax_history_length", {1, 15}));
}

// What a schema needs: each row can be printed, and rows of a section stand
// together, once each.
TEST(KeyTable, Wellformed) {
  std::set<std::pair<std::string, std::string>> seen;
  size_t count = 0;
  for (const SectionInfo &section : allSections()) {
    EXPECT_STRNE(section.description, "");
    for (const KeyInfo &key : keysIn(section.name)) {
      SCOPED_TRACE(std::string(section.name) + "." + key.name);
      ++count;
      EXPECT_TRUE(seen.insert({key.section, key.name}).second);
      EXPECT_STRNE(key.description, "");
      EXPECT_NE(std::string(key.description).back(), '.');
      EXPECT_LT(key.since, key.until);
      EXPECT_EQ(key.type == ValueType::Choice, key.choices != nullptr);
      std::string prefix = section.requiredPrefix;
      EXPECT_TRUE(std::string(key.name).starts_with(prefix));
      const KeyRules &rules = key.rules;
      // (What replaces a key may be a section.)
      EXPECT_TRUE(!rules.instead || findKey(key.section, rules.instead));
      AccelerateVersion last{0, 0};
      for (const DefaultValue &d : key.defaults)
        if (d.value) {
          EXPECT_LE(last, d.since);
          EXPECT_LT(d.since, d.until);
          last = d.until;
        }
      if (!key.choices)
        continue;
      for (AccelerateVersion v : {oldestAccelerate, newestAccelerate})
        EXPECT_EQ(key.in(v) && valuesOf(*key.choices, v).empty(), false);
    }
  }
  EXPECT_EQ(count, allKeys().size());
}

TEST(KeyTable, Prefixes) {
  EXPECT_EQ(canonicalKey("fsdp_config", "version"), "fsdp_version");
  EXPECT_EQ(canonicalKey("fp8_config", "fp8_format"), "fp8_format");
  EXPECT_EQ(canonicalKey("dynamo_config", "mode"), "dynamo_mode");
  EXPECT_EQ(canonicalKey("parallelism_config", "tp_size"), "tp_size");
  EXPECT_EQ(requiredPrefix("megatron_lm_config"), "megatron_lm_");
}

} // namespace
