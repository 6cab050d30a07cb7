//===- StateKeysTest.cpp - Weights and states by their keys ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/StateKeys.h"
#include "frontends/Checkpoint/WeightKeys.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::checkpoint;

namespace {

using Keys = std::vector<std::string>;
using Names = std::vector<std::string>;

/// A file with two weights "embed" of 3 and "l.weight" of 2x3 where a layout
/// puts them, and what else it has.
struct Layout {
  explicit Layout(PartFormat format = PartFormat::TorchDcp,
                  const char *path = ".") {
    part.format = format;
    part.path = path;
  }
  Layout &add(Keys path, std::vector<int64_t> shape) {
    Tensor tensor;
    tensor.name = joinKeys(path);
    tensor.path = std::move(path);
    tensor.dtype = "float32";
    tensor.bytes = 4;
    for (int64_t size : shape)
      tensor.bytes *= size;
    tensor.shape = std::move(shape);
    part.tensors.push_back(std::move(tensor));
    return *this;
  }
  Layout &model(const Keys &around, const std::string &prefix = "") {
    Keys embed = around, weight = around;
    embed.push_back(prefix + "embed");
    weight.push_back(prefix + "l.weight");
    return add(embed, {3}).add(weight, {2, 3});
  }
  /// Of AdamW, by names or numbers.
  Layout &states(const Keys &around, bool numbers = false) {
    for (bool first : {true, false})
      for (const char *kind : {"exp_avg", "exp_avg_sq", "step"}) {
        Keys path = around;
        path.insert(path.end(), {"state",
                                 numbers ? (first ? "0" : "1")
                                         : (first ? "embed" : "l.weight"),
                                 kind});
        add(path, kind == std::string("step") ? std::vector<int64_t>{}
                  : first                     ? std::vector<int64_t>{3}
                                              : std::vector<int64_t>{2, 3});
      }
    return *this;
  }
  /// The same as torch joins them.
  Layout &joined(const Keys &around, const std::string &prefix = "") {
    for (bool first : {true, false})
      for (const char *kind : {"exp_avg", "exp_avg_sq", "step"}) {
        Keys path = around;
        path.push_back(prefix + "state." + (first ? "embed." : "l.weight.") +
                       kind);
        add(path, kind == std::string("step") ? std::vector<int64_t>{}
                  : first                     ? std::vector<int64_t>{3}
                                              : std::vector<int64_t>{2, 3});
      }
    return *this;
  }
  Layout &groups(Keys path) {
    part.groups.push_back(std::move(path));
    return *this;
  }
  Layout &rates(const Keys &around, const std::string &prefix = "") {
    for (const char *name : {"embed", "l.weight"}) {
      Keys path = around;
      path.push_back(prefix + "param_groups." + name + ".lr");
      groups(std::move(path));
    }
    return *this;
  }

  Part part;
};

struct Decision {
  Names weights, states, beside, unsure;
};

Decision decide(const Layout &layout) {
  std::vector<Part> parts = {layout.part};
  findStates(parts);
  const WeightKeys keys(parts[0]);
  Decision made;
  for (const Tensor &tensor : parts[0].tensors) {
    const Role role = keys.roleOf(tensor);
    (role == Role::Weight  ? made.weights
     : role == Role::State ? made.states
                           : made.beside)
        .push_back(tensor.name);
    if (tensor.unsure)
      made.unsure.push_back(tensor.name);
  }
  return made;
}

/// The two weights below `around`, all others are states.
void expectModel(const char *what, const Layout &layout,
                 const std::string &around = "", size_t states = 6) {
  SCOPED_TRACE(what);
  const Decision made = decide(layout);
  EXPECT_EQ(made.weights, (Names{around + "embed", around + "l.weight"}));
  EXPECT_EQ(made.states.size(), states);
  EXPECT_EQ(made.beside, Names{});
  EXPECT_EQ(made.unsure, Names{});
}

TEST(StateKeys, LayoutsOfLibraries) {
  const auto torchSave = PartFormat::TorchSave;
  expectModel("transformers", Layout(torchSave).model({}), "", 0);
  expectModel("safetensors", Layout(PartFormat::Safetensors).model({}), "", 0);
  expectModel("Lightning",
              Layout(torchSave)
                  .model({"state_dict"})
                  .states({"optimizer_states"}, true)
                  .groups({"optimizer_states", "param_groups"}),
              "state_dict.");
  expectModel("Composer",
              Layout(torchSave)
                  .model({"state", "model"})
                  .states({"state", "optimizers", "AdamW"}, true)
                  .groups({"state", "optimizers", "AdamW", "param_groups"}),
              "state.model.");
  expectModel("Composer, sharded",
              Layout()
                  .model({"state", "model"})
                  .states({"state", "optimizers", "AdamW"}),
              "state.model.");
  expectModel("Composer, weights alone", Layout().model({"state", "model"}),
              "state.model.", 0);
  expectModel("torchtitan",
              Layout().model({}).joined({"optimizer"}).rates({"optimizer"}));
  expectModel("get_state_dict",
              Layout().model({"model"}).states({"optim"}).groups(
                  {"optim", "param_groups"}),
              "model.");
  expectModel("get_state_dict, joined",
              Layout().model({"model"}).joined({"optim"}).rates({"optim"}),
              "model.");
  expectModel("joined in the model's dictionary",
              Layout().model({}).joined({}).rates({}));
  expectModel(
      "joined by a script",
      Layout().model({}, "model.").joined({}, "optim.").rates({}, "optim."),
      "model.");
  expectModel("joined by a script, tensors alone",
              Layout(torchSave).model({}, "model.").joined({}, "optimizer."),
              "model.");
  expectModel("torch's recipe",
              Layout().model({"app", "model"}).states({"app", "optim"}),
              "app.model.");
  expectModel("deeper",
              Layout().model({"a", "b", "model"}).states({"a", "b", "optim"}),
              "a.b.model.");
  expectModel("any keys", Layout().model({"net"}).states({"opt"}), "net.");
  expectModel("states alone that are not known",
              Layout(torchSave)
                  .model({"model"})
                  .add({"opt", "state", "0", "z"}, {3})
                  .groups({"opt", "param_groups"}),
              "model.", 1);
}

TEST(StateKeys, AnOptimizersOwnFile) {
  // The model lies in another part; nothing but the file's name tells.
  Layout layout(PartFormat::TorchSave, "optimizer.bin");
  layout.add({"state", "0", "z"}, {3});
  EXPECT_EQ(decide(layout).states, Names{"state.0.z"});
}

TEST(StateKeys, ModulesCalledState) {
  // {embed, state.embed.weight}, in every format.
  for (PartFormat format :
       {PartFormat::Safetensors, PartFormat::TorchDcp, PartFormat::TorchSave})
    for (const Keys &around : {Keys{}, Keys{"model"}}) {
      Layout layout(format);
      layout.model(around);
      for (const char *name : {"state.embed.weight", "state.embed.step",
                               "param_groups.embed.weight"}) {
        Keys path = around;
        path.push_back(name);
        layout.add(path, name == std::string("state.embed.step")
                             ? std::vector<int64_t>{}
                             : std::vector<int64_t>{3});
      }
      EXPECT_EQ(decide(layout).weights.size(), 5u);
    }
  // Buffers with an optimizer's words: in safetensors they are the model's.
  Layout stored(PartFormat::Safetensors);
  stored.model({}).add({"state.embed.exp_avg"}, {3});
  EXPECT_EQ(decide(stored).weights.size(), 3u);
  // In another shape than the parameter, and of none.
  Layout other;
  other.model({})
      .add({"state.embed.exp_avg"}, {4})
      .add({"state.net.exp_avg"}, {3})
      .add({"state.counter.step"}, {});
  EXPECT_EQ(decide(other).weights.size(), 5u);
  // Nested by the script.
  Layout nested(PartFormat::TorchSave);
  nested.add({"state", "l1", "weight"}, {3, 3})
      .add({"state", "l1", "step"}, {3});
  EXPECT_EQ(decide(nested).weights.size(), 2u);
}

TEST(StateKeys, WeightsAmongJoinedStates) {
  // A module "state" that is trained, with its own states beside.
  Layout trained;
  trained.model({}).joined({}).rates({});
  trained.add({"state.embed.weight"}, {3})
      .add({"state.state.embed.weight.exp_avg"}, {3})
      .add({"state.state.embed.weight.exp_avg_sq"}, {3})
      .add({"state.state.embed.weight.step"}, {})
      .groups({"param_groups.state.embed.weight.lr"});
  Decision made = decide(trained);
  EXPECT_EQ(made.weights, (Names{"embed", "l.weight", "state.embed.weight"}));
  EXPECT_EQ(made.states.size(), 9u);
  EXPECT_EQ(made.unsure, Names{});
  // A kind that no known optimizer has, among weights: left out, and named.
  Layout unknown;
  unknown.model({}).joined({}).rates({}).add({"state.embed.z"}, {3});
  made = decide(unknown);
  EXPECT_EQ(made.weights.size(), 2u);
  EXPECT_EQ(made.unsure, Names{"state.embed.z"});
  // In an optimizer's own dictionary it needs no name.
  Layout own;
  own.model({"model"}).joined({"o"}).rates({"o"}).add({"o", "state.embed.z"},
                                                      {3});
  expectModel("own dictionary", own, "model.", 7);
  // A tied parameter by another of its names.
  Layout tied;
  tied.model({}).joined({}).rates({});
  for (const char *kind : {"exp_avg", "exp_avg_sq", "step"})
    tied.add({std::string("state.head.weight.") + kind}, {});
  expectModel("tied", tied, "", 9);
}

TEST(StateKeys, ByTheKeyAloneIsNamed) {
  Layout layout(PartFormat::TorchSave);
  layout.model({}).add({"optimizer", "net.weight"}, {3});
  EXPECT_EQ(decide(layout).beside, Names{"optimizer.net.weight"});
}

TEST(StateKeys, NestedStatesKeepTheirNames) {
  // Shampoo's are dictionaries.
  Layout layout;
  layout.model({"model"})
      .add({"optim", "state", "embed", "factor", "0"}, {3, 3})
      .groups({"optim", "param_groups"});
  std::vector<Part> parts = {layout.part};
  findStates(parts);
  EXPECT_EQ(parts[0].tensors.back().path,
            (Keys{"optim", "state", "embed", "factor.0"}));
  EXPECT_EQ(parts[0].tensors.back().optimizer, 1u);
}

TEST(StateKeys, LongKeysTakeNoTime) {
  std::string key;
  for (int i = 0; i < 100000; ++i)
    key += "state.";
  Layout layout;
  layout.model({}).add({key + "exp_avg"}, {3});
  EXPECT_EQ(decide(layout).weights.size(), 3u);
}

} // namespace
