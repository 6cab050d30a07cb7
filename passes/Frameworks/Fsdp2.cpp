//===- Fsdp2.cpp - What FSDP2 does with a job -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/Framework.h"

namespace accel::frameworks {
namespace {

/// Accelerate's fsdp2_prepare_model (utils/fsdp_utils.py, 1.12 to 1.15) around
/// torch's fully_shard.
class Fsdp2 final : public Framework {
public:
  FrameworkKind kind() const override { return FrameworkKind::Fsdp2; }
  bool unshards() const override { return true; }
  bool gathersFp8() const override { return true; }

  Precision precision(const PrecisionAsked &asked, plan::DType storage,
                      const Versions &versions) const override {
    Precision p;
    p.storage = p.gradient = p.state = storage;
    p.autocast = asked.autocast;
    // transformers' own sharding: shards are gathered, and gradients reduced,
    // in the dtype of the shards.
    if (asked.autocast && !asked.param) {
      p.compute = asked.mixed.value_or(storage);
      p.reduce = asked.reduce.value_or(storage);
      p.output = asked.output.value_or(storage);
      return p;
    }
    p.compute = asked.param.value_or(storage);
    // From torch 2.15 a policy without reduce_dtype reduces in the gradient
    // dtype of the parameter, which is the original one.
    p.reduce = asked.reduce.value_or(
        atLeast(versions.torch, "2.15") ? p.storage : p.compute);
    p.output = asked.output.value_or(p.compute);
    return p;
  }
  std::optional<Choice<PrefetchDepth>> prefetch() const override {
    return Choice<PrefetchDepth>{
        {}, "FSDP2 gathers the next unit while this one computes"};
  }
  /// FSDP2's modules have no no_sync, which accumulate() looks for before 1.11.
  Choice<AccumulationMode>
  accumulation(const Versions &versions) const override {
    if (!atLeast(versions.accelerate, "1.11"))
      return {AccumulationMode::ReduceEach,
              "accelerate before 1.11 reduces every micro-batch under FSDP2"};
    return Framework::accumulation(versions);
  }
  /// Until 1.7 and from 1.15 on around each layer.
  bool checkpointsChildren(const Versions &versions) const override {
    return atLeast(versions.accelerate, "1.8") &&
           !atLeast(versions.accelerate, "1.15");
  }
};

} // namespace

const Framework &fsdp2() {
  static const Fsdp2 object;
  return object;
}

} // namespace accel::frameworks
