//===- Deepspeed.cpp - What DeepSpeed's ZeRO does with a job --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/Framework.h"

#include <algorithm>

namespace accel::frameworks {
namespace {

/// ZeRO partitions over all ranks and gathers by module.
class Deepspeed final : public Framework {
public:
  FrameworkKind kind() const override { return FrameworkKind::Deepspeed; }
  bool unshards() const override { return true; }
  bool unitsByModule() const override { return true; }
  /// ZeRO++ gathers within neighbouring ranks what all ranks shard; MiCS shards
  /// over neighbouring ranks and replicates over the rest (utils/groups.py,
  /// zero/mics_utils.py). Ranks that share sequences shard parameters too
  /// (_get_sequence_data_parallel_group), and have no such groups here.
  plan::Mesh meshOf(const plan::Mesh &asked,
                    const RankGroups &groups) const override {
    plan::Mesh mesh = asked.onto("dp_shard");
    const int64_t ranks = mesh.ranks();
    if (const int64_t sequence = asked.size("sp"); sequence > 1) {
      mesh.resize("dp_shard", ranks / sequence);
      mesh.resize("sp", sequence);
      return mesh;
    }
    const int64_t secondary = std::min(groups.secondary, ranks);
    if (groups.shard > 0 && ranks % groups.shard == 0)
      return mesh.sharded(groups.shard);
    if (secondary > 1 && ranks % secondary == 0) {
      mesh.resize("dp_shard", ranks / secondary);
      mesh.resize(plan::secondaryAxis, secondary);
    }
    return mesh;
  }
  /// Only stage 3 reads them, and gradients are quantised between machines
  /// (__avg_scatter_grads of zero/stage3.py).
  Choice<ZeroPlus> zeroPlus(const ZeroPlus &asked, int64_t stage,
                            const plan::Mesh &mesh,
                            int64_t ranksPerNode) const override {
    if (stage != 3)
      return {{}, "ZeRO++ and MiCS are read in stage 3 alone"};
    ZeroPlus plus = asked;
    const plan::AxisGroup group =
        mesh.group(mesh.set(plan::AxisRole::Shard), ranksPerNode);
    plus.groups.secondary = mesh.size(plan::secondaryAxis);
    plus.quantizedGradients &= group.ranks > group.inNode;
    if (plus.quantizedGradients != asked.quantizedGradients)
      return {plus, "all ranks are on one machine, where gradients are reduced "
                    "as they are"};
    return {plus, ""};
  }
  /// The model itself is converted to 16 bits; the optimizer holds fp32 copies
  /// (runtime/bf16_optimizer.py, zero/stage_1_and_2.py), those of partitions
  /// beside a model in fp32 too (Candidate::holdsMasterCopy).
  Precision precision(const PrecisionAsked &asked, plan::DType storage,
                      const Versions &) const override {
    Precision p;
    p.compute = asked.param ? *asked.param : asked.mixed.value_or(storage);
    p.masterCopy = asked.masterCopies;
    p.storage = p.reduce = p.compute;
    p.gradient = p.masterCopy ? plan::DType::F32 : p.compute;
    p.state = plan::DType::F32;
    p.output = asked.output.value_or(p.compute);
    p.autocast = asked.autocast;
    return p;
  }
  Choice<AccumulationMode> accumulation(const Versions &) const override {
    return {
        AccumulationMode::KeepUnsharded,
        "DeepSpeed's engine counts micro-batches and reduces by ZeRO stage"};
  }
};

} // namespace

const Framework &deepspeed() {
  static const Deepspeed object;
  return object;
}

} // namespace accel::frameworks
