//===- UnitSetsTest.cpp - Which parameters form a unit ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/ModuleTree/UnitSets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace accel::wrap;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// A decoder of `layers` layers, each of two linear layers of 100 elements in
/// an "Mlp"; embedding and head of 1000, tied on request.
Problem decoder(int layers = 2, bool tied = false) {
  Problem p;
  auto module = [&](std::string fqn, std::string className) {
    p.modules.push_back({std::move(fqn), std::move(className)});
  };
  auto parameter = [&](std::string fqn, int64_t numel) {
    p.parameters.push_back({std::move(fqn), {}, numel});
  };
  module("", "CausalLM");
  module("model", "Model");
  module("model.embed", "Embedding");
  module("model.layers", "ModuleList");
  parameter("model.embed.weight", 1000);
  if (tied)
    p.parameters.back().aliases = {"head.weight"};
  for (int i = 0; i < layers; ++i) {
    std::string layer = "model.layers." + std::to_string(i);
    module(layer, "Layer");
    module(layer + ".mlp", "Mlp");
    module(layer + ".mlp.up", "Linear");
    module(layer + ".mlp.down", "Linear");
    module(layer + ".norm", "RMSNorm");
    parameter(layer + ".mlp.up.weight", 100);
    parameter(layer + ".mlp.down.weight", 100);
    parameter(layer + ".norm.weight", 10);
  }
  module("model.norm", "RMSNorm");
  parameter("model.norm.weight", 10);
  module("head", "Linear");
  if (!tied)
    parameter("head.weight", 1000);
  p.noSplit = {"Layer"};
  p.base = "model";
  p.inputEmbedding = "model.embed";
  p.outputEmbedding = "head";
  return p;
}

std::vector<std::string> names(const Solution &s) {
  std::vector<std::string> result;
  for (const UnitSet &u : s.units)
    result.push_back(u.name);
  return result;
}

std::vector<std::string> fqns(const Problem &p, const UnitSet &u) {
  std::vector<std::string> result;
  for (int i : u.parameters)
    result.push_back(p.parameters[i].fqn);
  return result;
}

Solution solved(const Problem &p) {
  Solution s = solve(p);
  EXPECT_EQ(s.error, "");
  EXPECT_EQ(verify(p, s), "");
  return s;
}

TEST(UnitSets, LayersEmbeddingAndTail) {
  Problem p = decoder();
  p.policy = Policy::Transformer;
  Solution s = solved(p);
  EXPECT_THAT(names(s), ElementsAre("model.embed", "model.layers.0",
                                    "model.layers.1", "model.norm"));
  EXPECT_THAT(fqns(p, s.units[1]), ElementsAre("model.layers.0.mlp.up.weight",
                                               "model.layers.0.mlp.down.weight",
                                               "model.layers.0.norm.weight"));
  EXPECT_THAT(fqns(p, s.units[3]),
              ElementsAre("model.norm.weight", "head.weight"));
  EXPECT_THAT(s.units[3].modules, ElementsAre("model.norm", "head"));
  EXPECT_TRUE(s.units[3].keepGathered);
  EXPECT_FALSE(s.units[0].keepGathered);
  EXPECT_THAT(s.units[1].why, HasSubstr("_no_split_modules"));
}

TEST(UnitSets, NeighbouringLayersShareAUnit) {
  Problem p = decoder(5);
  p.policy = Policy::Transformer;
  p.layersPerUnit = 2;
  Solution s = solved(p);
  EXPECT_THAT(names(s),
              ElementsAre("model.embed", "model.layers.0", "model.layers.2",
                          "model.layers.4", "model.norm"));
  EXPECT_THAT(s.units[1].modules,
              ElementsAre("model.layers.0", "model.layers.1"));
  EXPECT_EQ(s.units[2].parameters.size(), 6u);
  EXPECT_EQ(s.units[3].modules.size(), 1u) << "the odd one";
}

TEST(UnitSets, TiedEmbeddingsJoinTheTail) {
  Problem p = decoder(2, /*tied=*/true);
  p.policy = Policy::Transformer;
  Solution s = solved(p);
  // The table comes first in the model's order, so its unit does too.
  EXPECT_THAT(names(s),
              ElementsAre("model.norm", "model.layers.0", "model.layers.1"));
  EXPECT_THAT(s.units[0].modules,
              ElementsAre("model.norm", "model.embed", "head"));
  EXPECT_THAT(fqns(p, s.units[0]),
              ElementsAre("model.embed.weight", "model.norm.weight"));
}

TEST(UnitSets, AHeadMayHaveABiasBesideATiedWeight) {
  Problem p = decoder(2, /*tied=*/true);
  p.parameters.push_back({"head.bias", {}, 50});
  p.policy = Policy::Transformer;
  Solution s = solved(p);
  EXPECT_THAT(names(s),
              ElementsAre("model.norm", "model.layers.0", "model.layers.1"));
  EXPECT_THAT(
      fqns(p, s.units[0]),
      ElementsAre("model.embed.weight", "model.norm.weight", "head.bias"));
}

TEST(UnitSets, OlderReleasesLeaveTheEndsToTheRoot) {
  for (bool tied : {false, true})
    for (bool reshards : {false, true}) {
      Problem p = decoder(2, tied);
      p.policy = Policy::Transformer;
      p.restInRoot = true;
      p.rootReshards = reshards;
      p.refuseTies = true; // one group holds both
      const Solution s = solved(p);
      EXPECT_THAT(names(s),
                  ElementsAre("", "model.layers.0", "model.layers.1"));
      EXPECT_EQ(s.units[0].keepGathered, !reshards);
    }
}

TEST(UnitSets, TiedEmbeddingsInTwoGroupsAreRefused) {
  Problem p = decoder(2, /*tied=*/true);
  p.policy = Policy::Transformer;
  p.refuseTies = true;
  EXPECT_THAT(solve(p).error, HasSubstr("share a weight"));
  Problem untied = decoder();
  untied.policy = Policy::Transformer;
  untied.refuseTies = true;
  EXPECT_EQ(solve(untied).error, "");
}

TEST(UnitSets, NestedClassesAreTakenInsideOut) {
  Problem p = decoder(1);
  p.policy = Policy::Transformer;
  p.classes = {{"Layer", "Mlp"}};
  Solution s = solved(p);
  EXPECT_THAT(names(s), ElementsAre("model.embed", "model.layers.0.mlp",
                                    "model.layers.0", "model.norm"));
  EXPECT_THAT(fqns(p, s.units[2]), ElementsAre("model.layers.0.norm.weight"));
  EXPECT_THAT(s.units[1].why, HasSubstr("cls_to_wrap"));
}

TEST(UnitSets, ModulesWithoutParametersMakeNoUnit) {
  Problem p = decoder(1);
  p.modules.push_back({"model.act", "SiLU"});
  p.policy = Policy::Transformer;
  p.classes = {{"Layer", "SiLU"}};
  EXPECT_THAT(names(solved(p)),
              ElementsAre("model.embed", "model.layers.0", "model.norm"));
}

TEST(UnitSets, NoWrapLeavesARoot) {
  Problem p = decoder(1);
  Solution s = solved(p);
  EXPECT_THAT(names(s), ElementsAre("model.embed", "", "model.norm"));
  EXPECT_TRUE(s.units[1].keepGathered);
}

TEST(UnitSets, SizePolicyOfVersion2) {
  Problem p = decoder(1);
  p.policy = Policy::Size;
  // More than, not at least: the container of one layer has 210 as well.
  p.minParams = 210;
  EXPECT_THAT(solve(p).error, HasSubstr("takes the input embedding"));
  p.minParams = 5000;
  EXPECT_THAT(names(solved(p)), ElementsAre("model.embed", "", "model.norm"));
  p.minParams = 209;
  Solution s = solve(p);
  EXPECT_THAT(s.error, HasSubstr("matches the ModuleList 'model.layers'"));
  EXPECT_EQ(s.errorHint, "use TRANSFORMER_BASED_WRAP");
}

TEST(UnitSets, SizePolicyOfVersion1) {
  Problem p = decoder(2);
  p.fsdpVersion = 1;
  p.policy = Policy::Size;
  p.minParams = 200;
  Solution s = solved(p);
  // At least: an Mlp of exactly 200 is wrapped, and never a container.
  EXPECT_THAT(names(s), ElementsAre("model.embed", "model.layers.0.mlp", "",
                                    "model.layers.1.mlp", "head"));
  p.minParams = 201;
  EXPECT_THAT(names(solved(p)), ElementsAre("model.embed", "model.layers.0",
                                            "model.layers.1", "", "head"));
}

TEST(UnitSets, Version1LayersLeaveTheEndsToTheRoot) {
  Problem p = decoder(1);
  p.fsdpVersion = 1;
  p.policy = Policy::Transformer;
  p.classes = {{"Layer"}};
  Solution s = solved(p);
  EXPECT_THAT(names(s), ElementsAre("", "model.layers.0"));
  EXPECT_THAT(
      fqns(p, s.units[0]),
      ElementsAre("model.embed.weight", "model.norm.weight", "head.weight"));
}

TEST(UnitSets, ReplicationHasABucketPerLayer) {
  Problem p = decoder(2);
  p.fsdpVersion = 0;
  EXPECT_THAT(names(solved(p)), ElementsAre("model.embed", "model.layers.0",
                                            "model.layers.1", "model.norm"));
}

TEST(UnitSets, IgnoredModulesMatchWholeNames) {
  Problem p = decoder(2);
  p.policy = Policy::Transformer;
  p.ignoredModules = "model\\.layers\\.[0-9]+\\.mlp\\.up";
  Solution s = solved(p);
  std::vector<std::string> ignored;
  for (const UnitSet &u : s.units)
    if (u.ignored)
      ignored.push_back(u.name);
  EXPECT_THAT(ignored,
              ElementsAre("model.layers.0.mlp.up", "model.layers.1.mlp.up"));
  p.ignoredModules = "mlp";
  EXPECT_THAT(solve(p).error, HasSubstr("matches no module"));
  p.ignoredModules = "(";
  EXPECT_THAT(solve(p).error, HasSubstr("no regular expression"));
}

TEST(UnitSets, AnUnknownClassNamesTheOnesThereAre) {
  Problem p = decoder(1);
  p.policy = Policy::Transformer;
  p.classes = {{"LlamaLayer"}};
  Solution s = solve(p);
  EXPECT_EQ(s.error,
            "could not find the transformer layer class 'LlamaLayer' in the "
            "model");
  EXPECT_THAT(s.errorHint, HasSubstr("'Layer'"));
  EXPECT_THAT(s.errorHint, testing::Not(HasSubstr("ModuleList")));
}

TEST(UnitSets, AModelNeedsARoot) {
  EXPECT_EQ(solve(Problem()).error, "the model has no root module");
}

TEST(UnitSets, VerifyFindsWhatASolverCouldGetWrong) {
  Problem p = decoder(1);
  Solution s = solve(p);
  Solution twice = s, missing = s, empty = s, wild = s;
  twice.units.push_back(twice.units[0]);
  EXPECT_THAT(verify(p, twice), HasSubstr("is in 2 units"));
  missing.units.pop_back();
  EXPECT_THAT(verify(p, missing), HasSubstr("is in 0 units"));
  empty.units[0].parameters.clear();
  EXPECT_THAT(verify(p, empty), HasSubstr("is empty"));
  wild.units[0].parameters[0] = 99;
  EXPECT_THAT(verify(p, wild), HasSubstr("names parameter 99"));
}

/// Whatever is asked for, each parameter is in exactly one unit, or there is an
/// error; and the answer does not change.
TEST(UnitSets, RandomRequestsPartitionTheParameters) {
  std::mt19937 random(1);
  auto pick = [&](int n) { return static_cast<int>(random() % n); };
  const std::vector<std::string> classes = {"Layer", "Mlp",       "Linear",
                                            "Model", "Embedding", "RMSNorm"};
  int good = 0;
  for (int round = 0; round < 500; ++round) {
    Problem p = decoder(1 + pick(4), pick(2));
    p.fsdpVersion = pick(3);
    p.policy = static_cast<Policy>(pick(3));
    p.minParams = pick(1500);
    if (pick(2)) {
      p.classes.emplace();
      for (int i = pick(3); i >= 0; --i)
        p.classes->push_back(classes[pick(static_cast<int>(classes.size()))]);
    }
    if (pick(4) == 0)
      p.ignoredModules = pick(2) ? ".*norm" : "model\\.layers\\.0";
    Solution s = solve(p);
    if (!s.error.empty())
      continue;
    ++good;
    ASSERT_EQ(verify(p, s), "") << "round " << round;
    EXPECT_EQ(names(s), names(solve(p)));
    for (size_t u = 1; u < s.units.size(); ++u)
      EXPECT_LT(s.units[u - 1].parameters[0], s.units[u].parameters[0]);
  }
  EXPECT_GT(good, 250);
}

} // namespace
