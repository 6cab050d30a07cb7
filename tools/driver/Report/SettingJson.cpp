//===- SettingJson.cpp - A point of the search, for programs --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Report/SettingJson.h"

namespace accel {

using Json = nlohmann::ordered_json;
using tune::Knob;

namespace {

/// Of all that a call of the segment holds for its backward.
double heldBytes(const SegmentVariant &variant) {
  return static_cast<double>(variant.savedBytes + variant.savedInputBytes);
}

Json checkpointing(const tune::Space &space, const StepModel &model,
                   const tune::Point &point) {
  Json result = Json::array();
  for (size_t g = 0; g < space.groups.size(); ++g) {
    const tune::LayerGroup &group = space.groups[g];
    const auto &variants =
        model.kinds[static_cast<size_t>(group.kind)].variants;
    double all = 0; // what autograd holds
    for (const SegmentVariant &variant : variants)
      if (variant.name == "none")
        all = heldBytes(variant);
    for (size_t v = 0; v < group.variants.size(); ++v) {
      int calls = space.count(point, static_cast<int>(g), static_cast<int>(v));
      if (!calls)
        continue;
      const SegmentVariant &variant =
          variants[static_cast<size_t>(group.variants[v])];
      Json share = nullptr; // no time is known
      if (variant.forwardSeconds > 0)
        share = variant.recomputeSeconds / variant.forwardSeconds;
      result.push_back({{"of", group.name},
                        {"calls", calls},
                        {"way", group.names[v]},
                        {"saved_share", all > 0 ? heldBytes(variant) / all : 1},
                        {"recompute_share", share}});
    }
  }
  return result;
}

} // namespace

Json settingJson(const tune::Space &space, const StepModel &model,
                 const tune::Point &point) {
  auto at = [&](Knob knob) { return static_cast<size_t>(point[knob]); };
  const tune::MeshOption &option = space.mesh(point);
  const plan::Mesh &mesh = option.mesh;
  const tune::SplitOption &split = space.splits[at(Knob::Split)];
  Json result = {{"mesh",
                  {{"shard", mesh.ranks(plan::AxisRole::Shard)},
                   {"replicate", mesh.ranks(plan::AxisRole::Replicate)}}},
                 {"micro_batch", split.microBatch},
                 {"accumulation_steps", space.accumulationOf(point)},
                 {"wrap", space.wraps[at(Knob::Wrap)].name},
                 {"precision", space.precisions[at(Knob::Precision)].name},
                 {"layers_kept_gathered", point[Knob::Reshard]},
                 {"forward_prefetch", point[Knob::ForwardPrefetch]},
                 {"backward_prefetch", point[Knob::BackwardPrefetch]},
                 {"checkpointing", checkpointing(space, model, point)},
                 {"keep_gradients_unsharded", point[Knob::Accumulation] != 0},
                 {"parameter_offload", point[Knob::ParameterOffload] != 0},
                 {"optimizer_offload", point[Knob::OptimizerOffload] != 0},
                 {"activation_offload_layers", point[Knob::ActivationOffload]}};
  if (option.whole()) {
    for (const char *axis : {"tp", "cp", "pp"})
      result["mesh"][axis] = mesh.size(axis);
    result["mesh"]["sequence_parallel"] = option.sequence;
  }
  if (space.base.executor == FrameworkKind::AccelRun)
    result["await_reductions"] = point[Knob::Reductions];
  if (!space.buckets.empty())
    result["bucket_bytes"] = space.buckets[at(Knob::Bucket)];
  if (!space.lossChunks.empty())
    result["loss_chunks"] = space.base.executor == FrameworkKind::AccelRun
                                ? space.modelChunks(point)
                                : tune::expand(space, model, point).lossChunks;
  if (!space.optimizers.empty())
    result["optimizer"] = space.optimizers[at(Knob::Optimizer)].name;
  if (!space.zeroStages.empty())
    result["zero_stage"] = space.zeroStages[at(Knob::ZeroStage)];
  return result;
}

} // namespace accel
