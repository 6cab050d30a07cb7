//===- Deepspeed.cpp - What DeepSpeed's ZeRO does with a job --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/Framework.h"

namespace accel::frameworks {
namespace {

/// ZeRO partitions over all ranks and gathers by module.
class Deepspeed final : public Framework {
public:
  FrameworkKind kind() const override { return FrameworkKind::Deepspeed; }
  bool unshards() const override { return true; }
  bool unitsByModule() const override { return true; }
  plan::Mesh meshOf(const plan::Mesh &asked) const override {
    return asked.onto("dp_shard");
  }
  /// The model itself is converted to 16 bits; the optimizer holds fp32 copies
  /// (runtime/bf16_optimizer.py, zero/stage_1_and_2.py).
  Precision precision(const PrecisionAsked &asked, plan::DType storage,
                      const Versions &) const override {
    Precision p;
    p.compute = asked.param ? *asked.param : asked.mixed.value_or(storage);
    p.masterCopy = p.compute != plan::DType::F32 && asked.masterCopies;
    p.storage = p.reduce = p.compute;
    p.gradient = p.masterCopy ? plan::DType::F32 : p.compute;
    p.state = plan::DType::F32;
    p.output = asked.output.value_or(p.compute);
    p.autocast = asked.autocast;
    return p;
  }
  Choice<AccumulationMode> accumulation() const override {
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
