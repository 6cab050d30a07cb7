//===- ParamGroupsTest.cpp - param_groups of a saved optimizer ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/ConvertedStates.h"
#include "frontends/Checkpoint/NumberedStates.h"
#include "runtime/plan/OptimizerOfStates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace accel;
using namespace accel::checkpoint;

namespace {

plan::Optimizer planned() {
  plan::Optimizer optimizer;
  optimizer.name = "adamw";
  optimizer.groups = {{1e-3, 0.1}, {5e-4, 0.0}};
  return optimizer;
}

ParamGroup saved() {
  ParamGroup group;
  group.params = {"w"};
  group.values = {{"lr", {2e-4}},
                  {"initial_lr", {1e-3}},
                  {"betas", {0.9, 0.999}},
                  {"eps", {1e-8}},
                  {"weight_decay", {0.1}},
                  {"amsgrad", {0}},
                  {"decoupled_weight_decay", {1}}};
  return group;
}

std::string refusal(const ParamGroup &group) {
  DiagnosticEngine diagnostics;
  return checkUpdates({group}, "optimizer.bin", diagnostics)
             ? ""
             : diagnostics.all().front().message;
}

TEST(ParamGroups, RatesAreThoseBeforeASchedule) {
  EXPECT_TRUE(replacedBy(saved(), planned(), 0).empty());
  const auto replaced = replacedBy(saved(), planned(), 1);
  ASSERT_EQ(replaced.size(), 2u);
  EXPECT_EQ(replaced[0], (Replaced{"lr", "0.001", "0.0005"}));
  EXPECT_EQ(replaced[1], (Replaced{"weight_decay", "0.1", "0.0"}));
  ParamGroup group = saved();
  group.values["betas"] = {0.8, 0.999};
  EXPECT_EQ(replacedBy(group, planned(), 0).at(0),
            (Replaced{"betas", "[0.8,0.999]", "[0.9,0.999]"}));
  group.values["lr"] = {-std::numeric_limits<double>::infinity()};
  group.values.erase("initial_lr");
  group.values["betas"] = {std::nan(""), 0.999};
  const auto odd = replacedBy(group, planned(), 0);
  ASSERT_EQ(odd.size(), 2u);
  EXPECT_EQ(odd[0].saved, "-inf");
  EXPECT_EQ(odd[1].saved, "[nan,0.999]");
}

TEST(ParamGroups, MuonAndTheAdamwBesideItHaveAnEpsEach) {
  plan::Optimizer muon;
  muon.name = "muon";
  muon.groups = {{1e-3, 0.1}};
  ParamGroup matrices;
  matrices.params = {"w"};
  matrices.values = {{"lr", {1e-3}},       {"weight_decay", {0.1}},
                     {"momentum", {0.95}}, {"nesterov", {1}},
                     {"ns_steps", {5}},    {"eps", {1e-7}}};
  ParamGroup rest = saved();
  EXPECT_TRUE(replacedBy(matrices, muon, 0).empty());
  EXPECT_TRUE(replacedBy(rest, muon, 0).empty());
  matrices.values["eps"] = {1e-8};
  rest.values["eps"] = {1e-7};
  using All = std::vector<Replaced>;
  EXPECT_EQ(replacedBy(matrices, muon, 0), (All{{"eps", "1e-08", "1e-07"}}));
  EXPECT_EQ(replacedBy(rest, muon, 0), (All{{"adamw_eps", "1e-07", "1e-08"}}));
  rest.values["eps"] = {1e-8};
  rest.values["betas"] = {0.8, 0.999};
  EXPECT_EQ(replacedBy(rest, muon, 0),
            (All{{"betas", "[0.8,0.999]", "[0.9,0.999]"}}));
}

TEST(ParamGroups, UpdatesThatNoPlanHas) {
  EXPECT_EQ(refusal(saved()), "");
  ParamGroup group = saved();
  group.values["amsgrad"] = {1};
  EXPECT_NE(refusal(group).find("amsgrad set"), std::string::npos);
  group = saved();
  group.values["decoupled_weight_decay"] = {0};
  EXPECT_NE(refusal(group).find("weight decay of Adam"), std::string::npos);
  group.values["weight_decay"] = {0}; // then it is AdamW
  EXPECT_EQ(refusal(group), "");
  for (const char *flag : {"caution", "corrected_weight_decay"}) {
    group = saved();
    group.values[flag] = {0};
    EXPECT_EQ(refusal(group), "");
    group.values[flag] = {1};
    EXPECT_NE(refusal(group).find(std::string(flag) + " set"),
              std::string::npos);
  }
  for (const char *flag : {"bias_correction", "correct_bias"}) {
    group = saved();
    group.values[flag] = {1};
    EXPECT_EQ(refusal(group), "");
    group.values[flag] = {0};
    EXPECT_NE(refusal(group).find(flag), std::string::npos);
  }
}

TEST(ParamGroups, NamesTellLambFromAdamwAndLarsFromSgd) {
  auto reports = [](std::set<std::string> names) {
    DiagnosticEngine diagnostics;
    checkScaled(names, "optimizer.bin", diagnostics);
    return diagnostics.all().empty() ? "" : diagnostics.all().front().message;
  };
  EXPECT_EQ(reports(saved().hyperparameters()), "");
  // apex' FusedAdam has once had max_grad_norm.
  EXPECT_EQ(reports({"lr", "bias_correction", "max_grad_norm"}), "");
  for (const char *name :
       {"grad_averaging", "trust_clip", "trust_coeff", "trust_coefficient",
        "always_adapt", "max_coeff", "min_coeff"})
    EXPECT_EQ(reports({"lr", "bias_correction", name}),
              "the optimizer has '" + std::string(name) +
                  "' in its groups (as LAMB and LARS), which is another update "
                  "than any plan's");
}

TEST(ParamGroups, NamesOfTheFileCountAndNotItsOrder) {
  ParamGroup group;
  group.params = {"0", "1", "2"};
  group.names = {"v", "module.k._orig_mod.weight", "module.own"};
  DiagnosticEngine diagnostics;
  auto names = [&](const std::vector<ParamGroup> &groups) {
    return namesOfNumbers(
        {}, {}, groups, nullptr,
        [](const std::string &name) { return name == "module.own"; },
        diagnostics);
  };
  using Names = std::map<std::string, std::string>;
  EXPECT_EQ(names({group}),
            (Names{{"0", "v"}, {"1", "k.weight"}, {"2", "module.own"}}));
  EXPECT_TRUE(diagnostics.all().empty());
  group.names[2] = "v";
  EXPECT_FALSE(names({group}));
  EXPECT_EQ(diagnostics.all().back().code, "invalid-checkpoint");
  group.names.clear(); // then a plan has to say them
  EXPECT_FALSE(names({group}));
  EXPECT_EQ(diagnostics.all().back().code, "not-supported");
}

TEST(ParamGroups, OptimizersOfStates) {
  auto name = [](const std::set<std::string> &states) {
    const auto *found = plan::optimizerOf(states);
    return std::string(found ? found->name : "");
  };
  EXPECT_EQ(name({"exp_avg"}), "lion");
  EXPECT_EQ(name({"exp_avg", "exp_avg_sq"}), "adamw");
  EXPECT_EQ(name({"momentum_buffer"}), "sgd");
  EXPECT_EQ(name({"sum"}), "");
  EXPECT_EQ(name({"square_avg", "momentum_buffer"}), "");
  EXPECT_EQ(name({}), "");
}

TEST(ParamGroups, HyperparametersTellMuonFromSgd) {
  const std::set<std::string> momentum = {"momentum_buffer"};
  EXPECT_EQ(optimizerOfGroups(momentum, {"lr", "ns_steps"}), "muon");
  EXPECT_EQ(optimizerOfGroups(momentum, {"lr", "dampening"}), "sgd");
  EXPECT_EQ(optimizerOfGroups(momentum, {"lr"}), "");
  EXPECT_EQ(optimizerOfGroups({"exp_avg"}, {"dampening"}), "");
  plan::Plan plan;
  std::string code; // of what is reported last
  auto name = [&](const std::set<std::string> &told, bool matrices,
                  const char *planned) {
    plan.job.optimizer.name = planned ? planned : "";
    DiagnosticEngine diagnostics;
    const auto *found =
        optimizerOfStates(momentum, told, matrices, planned ? &plan : nullptr,
                          "state", diagnostics);
    code = diagnostics.all().empty() ? "" : diagnostics.all().back().code;
    return std::string(found ? found->name : "");
  };
  EXPECT_EQ(name({}, true, "muon"), "muon");
  EXPECT_EQ(name({}, true, "sgd"), "sgd");
  EXPECT_EQ(code, "");
  EXPECT_EQ(name({}, true, nullptr), "sgd");
  EXPECT_EQ(code, "ambiguous-states");
  // A plan whose optimizer keeps no such state tells nothing.
  EXPECT_EQ(name({}, true, "adamw"), "sgd");
  EXPECT_EQ(code, "ambiguous-states");
  EXPECT_EQ(name({}, false, nullptr), "sgd"); // Muon takes matrices alone
  EXPECT_EQ(code, "");
  EXPECT_EQ(name({"muon"}, true, "adamw"), "muon");
  EXPECT_EQ(name({"muon"}, true, "sgd"), "");
  EXPECT_EQ(code, "conflicting-arguments");
  EXPECT_EQ(name({"muon", "sgd"}, true, nullptr), "");
  EXPECT_EQ(code, "not-supported");
}

} // namespace
