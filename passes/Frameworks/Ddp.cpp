//===- Ddp.cpp - What DDP and a single process do with a job --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/Framework.h"

namespace accel::frameworks {
namespace {

/// Every rank holds all parameters. Precision is torch.autocast's.
class Replicated : public Framework {
public:
  bool castsByAutocast() const override { return true; }
  plan::Mesh meshOf(const plan::Mesh &asked,
                    const RankGroups &) const override {
    return asked.onto("dp_replicate");
  }
  Precision precision(const PrecisionAsked &asked, plan::DType storage,
                      const Versions &) const override {
    Precision p;
    p.storage = p.reduce = p.gradient = p.state = storage;
    p.autocast = asked.autocast;
    p.compute = asked.param                     ? *asked.param
                : asked.autocast && asked.mixed ? *asked.mixed
                                                : storage;
    // Accelerate's convert_outputs_to_fp32 around the autocast forward.
    p.output =
        asked.autocast ? plan::DType::F32 : asked.output.value_or(p.compute);
    return p;
  }
};

class Ddp final : public Replicated {
public:
  FrameworkKind kind() const override { return FrameworkKind::Ddp; }
};

class Single final : public Replicated {
public:
  FrameworkKind kind() const override { return FrameworkKind::Single; }
  Choice<AccumulationMode> accumulation(const Versions &) const override {
    return {AccumulationMode::KeepUnsharded,
            "one process: gradients add up where they are"};
  }
};

} // namespace

const Framework &ddp() {
  static const Ddp object;
  return object;
}

const Framework &single() {
  static const Single object;
  return object;
}

} // namespace accel::frameworks
