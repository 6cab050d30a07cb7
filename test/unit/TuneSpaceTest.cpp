//===- TuneSpaceTest.cpp - What may be chosen -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/Exact.h"
#include "test/unit/TuneFixture.h"

#include <gtest/gtest.h>

#include <set>

using namespace accel;
using namespace accel::tune;

namespace {

Space makeSpace(const StepModel &model, int64_t ranks) {
  Space space;
  space.base = tinyCandidate(model, ranks);
  space.meshes = {space.base.mesh};
  space.splits = {{1, 1}};
  addModel(space, model, true, true);
  EXPECT_TRUE(locate(space, model));
  return space;
}

TEST(TuneSpace, ConfiguredPointIsTheConfiguration) {
  std::mt19937 random(1);
  StepModel model = tinyModel(5, 3, random);
  Space space = makeSpace(model, 4);
  Candidate same = expand(space, model, space.configured);
  EXPECT_EQ(same.unitOf, space.base.unitOf);
  EXPECT_EQ(same.reshardAfterForward, space.base.reshardAfterForward);
  EXPECT_EQ(same.variants, space.base.variants);
  EXPECT_EQ(same.shards().ranks, 4);
  EXPECT_EQ(countPoints(space, 100), 1) << "nothing is open";
}

TEST(TuneSpace, WrapOptionsAreHalvesAndGroups) {
  std::mt19937 random(1);
  StepModel model = tinyModel(5, 2, random);
  Space space = makeSpace(model, 4);
  ASSERT_EQ(space.wraps.size(), 4u); // configured = a layer, half, 2, 4
  EXPECT_EQ(space.wraps[0].name, "a layer");
  EXPECT_EQ(space.wraps[1].name, "half a layer");
  EXPECT_EQ(space.wraps[1].units, 2 + 2 * 5);
  EXPECT_EQ(space.wraps[2].name, "2 layers");
  EXPECT_EQ(space.wraps[2].units, 2 + 3);
  EXPECT_DOUBLE_EQ(space.wraps[1].perLayer, 0.5);
  // The largest block of a layer is a unit of its own.
  const StepCall &layer = model.calls[1];
  EXPECT_EQ(space.wraps[1].unitOf[layer.parameters[0]],
            space.wraps[1].unitOf[layer.parameters[1]]);
  EXPECT_NE(space.wraps[1].unitOf[layer.parameters[1]],
            space.wraps[1].unitOf[layer.parameters[2]]);
  // The head stays gathered whatever the layers do.
  for (const WrapOption &wrap : space.wraps)
    EXPECT_FALSE(wrap.reshard[wrap.unitOf.back()]) << wrap.name;
}

/// A flat parameter of FSDP1 has one dtype: layers with a frozen block in 16
/// bits are no units, their blocks are.
TEST(TuneSpace, UnitsOfFsdp1HaveOneDtype) {
  std::mt19937 random(1);
  StepModel model = tinyModel(5, 2, random);
  for (const StepCall &call : model.calls)
    if (call.layer) {
      StepParameter &largest = model.parameters[call.parameters[2]];
      largest.trainable = false;
      largest.dtype = plan::DType::BF16;
    }
  for (FrameworkKind kind : {FrameworkKind::Fsdp1, FrameworkKind::Fsdp2}) {
    Space space;
    space.base = tinyCandidate(model, 4);
    space.base.executor = kind;
    addModel(space, model, true, true);
    ASSERT_EQ(space.wraps.size(), kind == FrameworkKind::Fsdp1 ? 2u : 4u);
    EXPECT_EQ(space.wraps[1].name, "half a layer");
  }
}

TEST(TuneSpace, KeptLayersAreWholeUnits) {
  std::mt19937 random(1);
  StepModel model = tinyModel(5, 2, random);
  Space space = makeSpace(model, 4);
  space.state(Knob::Reshard).open = space.state(Knob::Wrap).open = true;
  Point point = space.configured;
  point[Knob::Wrap] = 2; // {0, 1} {2, 3} {4}
  EXPECT_EQ(space.values(Knob::Reshard, point), (std::vector<int>{0, 1, 3, 5}));
  point[Knob::Reshard] = 3;
  EXPECT_EQ(space.problem(point), "");
  Candidate c = expand(space, model, point);
  std::vector<bool> kept;
  for (int l = 1; l <= 5; ++l)
    kept.push_back(
        !c.reshardAfterForward[c.unitOf[model.calls[l].parameters[0]]]);
  EXPECT_EQ(kept, (std::vector<bool>{false, false, true, true, true}));
  point[Knob::Reshard] = 2;
  EXPECT_EQ(space.problem(point), "a unit cannot stay gathered in part");
  space.uniformReshard = true;
  EXPECT_EQ(space.values(Knob::Reshard, point), (std::vector<int>{0, 5}));
  // Keeping every layer keeps the embedding, as one YAML key does.
  point[Knob::Reshard] = 5;
  c = expand(space, model, point);
  EXPECT_EQ(std::set<bool>(c.reshardAfterForward.begin(),
                           c.reshardAfterForward.end()),
            std::set<bool>{false});
}

TEST(TuneSpace, MostRecomputedLayersComeFirst) {
  std::mt19937 random(1);
  StepModel model = tinyModel(4, 3, random);
  Space space = makeSpace(model, 2);
  space.state(Knob::Checkpoint).open = true;
  Point point = space.configured;
  int offset = space.groups[1].offset;
  point.counts[offset] = 1;
  point.counts[offset + 1] = 1;
  point.counts[offset + 2] = 2;
  Candidate c = expand(space, model, point);
  EXPECT_EQ(c.variants, (std::vector<int>{0, 2, 2, 1, 0, 0}));
  point.counts[offset] = 2;
  EXPECT_NE(space.problem(point), "");
  EXPECT_EQ(countPoints(space, 100), 15) << "4 layers, 3 variants: C(6, 2)";
  space.uniformCheckpoint = true;
  EXPECT_EQ(countPoints(space, 100), 3);
}

TEST(TuneSpace, CountsThatNothingAllowsAreNotEnumerated) {
  std::mt19937 random(1);
  StepModel model = tinyModel(48, 10, random);
  Space space = makeSpace(model, 2);
  space.state(Knob::Checkpoint).open = true;
  // 2e8 ways to spread the layers over nine variants, of which the last takes
  // none.
  space.groups[1].allowed.back() = false;
  for (size_t v = 2; v < space.groups[1].variants.size(); ++v)
    space.groups[1].allowed[v] = false;
  EXPECT_EQ(countPoints(space, 100), 49);
}

TEST(TuneSpace, OffloadAsksForRecomputation) {
  std::mt19937 random(1);
  StepModel model = tinyModel(3, 2, random);
  Space space = makeSpace(model, 2);
  space.state(Knob::Checkpoint).open = true;
  space.state(Knob::ActivationOffload).open = true;
  EXPECT_EQ(countPoints(space, 100), 4 + 1);
  space.offloadNeedsFull = false;
  EXPECT_EQ(countPoints(space, 100), 4 * 4);
}

TEST(TuneSpace, ALayoutThatNoKnobSaysIsRefused) {
  std::mt19937 random(1);
  StepModel model = tinyModel(4, 2, random);
  Space space;
  space.base = tinyCandidate(model, 2);
  space.base.reshardAfterForward[1] = false; // the first layer alone
  space.meshes = {space.base.mesh};
  space.splits = {{1, 1}};
  addModel(space, model, true, true);
  EXPECT_FALSE(locate(space, model));
}

TEST(TuneSpace, SplitsKeepTheSamples) {
  auto splits = splitsOf({4, 6}, 5);
  ASSERT_EQ(splits.size(), 5u);
  EXPECT_EQ(splits[0].microBatch, 4);
  for (const SplitOption &s : splits)
    EXPECT_EQ(s.microBatch * s.accumulation, 24);
  EXPECT_EQ(splitsOf({1, 1}, 5).size(), 1u);
}

TEST(TuneSpace, MeshesAreWholeNodesOrPartsOfOne) {
  auto of = [](int64_t ranks) {
    plan::Mesh mesh = plan::Mesh::dataParallel();
    mesh.resize("dp_shard", ranks);
    return meshesOf(mesh, 8);
  };
  auto meshes = of(16384);
  EXPECT_EQ(meshes.size(), 14u); // 2, 4, 8, ... 16384
  EXPECT_EQ(meshes[0].mesh.size("dp_shard"), 16384);
  for (const MeshOption &option : meshes)
    EXPECT_EQ(option.mesh.ranks(), 16384);
  for (const MeshOption &option : of(24))
    EXPECT_NE(option.mesh.size("dp_shard"), 12);
  EXPECT_EQ(of(1000000)[0].mesh.size("dp_shard"), 1000000);
}

} // namespace
