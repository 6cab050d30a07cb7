//===- Fsdp1.cpp - What FSDP1 does with a job -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/Framework.h"

namespace accel::frameworks {
namespace {

/// torch's FullyShardedDataParallel as Accelerate's prepare_model wraps it.
class Fsdp1 final : public Framework {
public:
  FrameworkKind kind() const override { return FrameworkKind::Fsdp1; }
  bool unshards() const override { return true; }

  Precision precision(const PrecisionAsked &asked, plan::DType storage,
                      const Versions &) const override {
    Precision p;
    p.storage = p.gradient = p.state = storage;
    p.compute = asked.param.value_or(storage);
    p.reduce = asked.reduce.value_or(p.compute);
    p.autocast = asked.autocast;
    // Accelerate's convert_outputs_to_fp32 around the autocast forward.
    p.output =
        asked.autocast ? plan::DType::F32 : asked.output.value_or(p.compute);
    return p;
  }
  std::optional<Choice<PrefetchDepth>> prefetch() const override {
    return Choice<PrefetchDepth>{{0, 1},
                                 "FSDP1 gathers the next unit ahead in "
                                 "the backward alone"};
  }
};

} // namespace

const Framework &fsdp1() {
  static const Fsdp1 object;
  return object;
}

} // namespace accel::frameworks
