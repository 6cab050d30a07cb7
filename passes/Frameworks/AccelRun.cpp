//===- AccelRun.cpp - What accel-run does with a job ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/Framework.h"

namespace accel::frameworks {
namespace {

class AccelRun final : public Framework {
public:
  FrameworkKind kind() const override { return FrameworkKind::AccelRun; }
  bool eager() const override { return false; }
  bool unshards() const override { return true; }

  /// It has no autocast: where Accelerate would enter it, parameters are cast
  /// when they are gathered, as FSDP2 casts them.
  Precision precision(const PrecisionAsked &asked, plan::DType storage,
                      const Versions &) const override {
    Precision p;
    p.storage = p.gradient = p.state = storage;
    p.compute = asked.param                     ? *asked.param
                : asked.autocast && asked.mixed ? *asked.mixed
                                                : storage;
    p.reduce = asked.reduce.value_or(storage);
    p.output = asked.output.value_or(p.compute);
    return p;
  }
  std::optional<Choice<PrefetchDepth>> prefetch() const override {
    return Choice<PrefetchDepth>{
        {}, "the next unit is gathered while this one computes"};
  }
  Choice<AccumulationMode> accumulation(const Versions &) const override {
    return {AccumulationMode::ReduceEach,
            "reducing every micro-batch keeps gradients sharded"};
  }
  Choice<Recompute> recompute() const override {
    return {Recompute::Pointwise, "pointwise operators, norms and views are "
                                  "recomputed, which costs next to nothing"};
  }
  const char *updatesAtEnd() const override { return nullptr; }
  Choice<OptimizerKernel> optimizerKernel(bool) const override {
    return {OptimizerKernel::Fused, "one kernel updates a unit"};
  }
};

} // namespace

const Framework &accelRun() {
  static const AccelRun object;
  return object;
}

} // namespace accel::frameworks
