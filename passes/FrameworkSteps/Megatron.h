//===- Megatron.h - Megatron-Core's steps -----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Weights in 16 bits, gradients in one buffer beside them to which matmuls add
// (gradient_accumulation_fusion), fp32 copies and states of the optimizer, each
// data-parallel rank a part of them with the distributed optimizer
// (megatron/core/distributed/param_and_grad_buffer.py,
// core/optimizer/distrib_optimizer.py). Context-parallel ranks hold the same
// parameters and reduce gradients with the data-parallel ones.
//
// A pipeline's ranks have consecutive layers, or chunks of them in turns
// (core/pipeline_parallel/schedules.py). Each stage's micro-batch is evaluated
// alone, and the schedule says when it runs and how many are in flight.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_MEGATRON_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_MEGATRON_H

#include "passes/Cost/CollectiveCost.h"
#include "passes/FrameworkSteps/StageRun.h"
#include "passes/FrameworkSteps/StepTrace.h"
#include "passes/PipelineSchedules/Simulate.h"

namespace accel {

/// Of parameters, or bytes of them: those of experts are other ranks' concern.
struct Elements {
  double dense = 0, experts = 0;
  double sum() const { return dense + experts; }
  Elements operator*(double each) const {
    return {dense * each, experts * each};
  }
  Elements &operator+=(const Elements &other) {
    dense += other.dense;
    experts += other.experts;
    return *this;
  }
};

/// Bytes and seconds of what a rank does with its parameters, whatever it
/// computes with them.
struct MegatronParameters {
  MegatronParameters(const StepLayout &layout, const Candidate &candidate);

  /// Who reduces gradients: data-parallel and context-parallel ranks.
  plan::AxisGroup ranks;
  /// The same of experts: the ranks of a stage that have the same ones.
  plan::AxisGroup expertRanks;
  int64_t parameterBytes = 0, gradientBytes = 0; // of the whole buffers
  /// Tensors that Transformer Engine returns to autograd as gradients of
  /// weights whose gradients are in the buffer: one for each shape of a layer's
  /// weights, kept (get_dummy_wgrad,
  /// transformer_engine/pytorch/module/base.py).
  int64_t placeholderBytes = 0;
  int64_t stateBytes = 0; // fp32 copies and states, of this rank
  /// What the update holds for a moment: gradients in fp32, and temporaries.
  int64_t updateBytes = 0;
  Picoseconds reduce = 0; // of all gradients at once
  Picoseconds gather =
      0; // of all parameters; 0 without a distributed optimizer
  /// With clipping. Of an optimizer on the host only what the device does.
  Picoseconds update = 0;
  /// Gradients go to the host, are applied there, and parameters come back, one
  /// after the other (HybridDeviceOptimizer of
  /// megatron/core/optimizer/cpu_offloading).
  Picoseconds toHost = 0, onHost = 0, fromHost = 0;

  /// One collective of so many of the gradients' bytes.
  Picoseconds reduceTime(const Elements &bytes) const;
  Picoseconds gatherTime(const Elements &bytes) const;
  void runUpdate(Engine &engine) const;
  Picoseconds wholeUpdate() const {
    return update + toHost + onHost + fromHost;
  }

private:
  Picoseconds timeOf(Collective kind, const Elements &bytes) const;

  const StepLayout &layout;
  const Candidate &candidate;
};

class MegatronRun final : public StepRun {
public:
  MegatronRun(const StepLayout &layout, Engine &engine);

  /// A stage's: nothing is reduced and nothing updated.
  MicroBatchCost runOne();
  const MegatronParameters &parameters() const { return held; }

protected:
  void allocatePersistent() override;
  void beginForward() override;
  void beforeForwardCall(int call) override;
  void beforeForward(const Block &) override {}
  void afterForward(const Block &) override {}
  void endForward() override;
  void beforeBackward(const Block &) override {}
  void afterBackward(const Block &) override {}
  void gradientsReady(int call) override;
  void endBackward() override;
  void update() override;
  bool gradientsStay() const override { return true; }
  bool addsGradientsInMatmuls() const override { return true; }
  bool foldsBackward() const override { return !overlapsGradients(); }
  int reachForward() const override {
    return overlapsParameters() ? 1 << 20 : 0;
  }

private:
  bool overlapsGradients() const {
    return !stage && candidate.megatron.overlapsGradients && held.reduce > 0;
  }
  bool overlapsParameters() const {
    return !stage && candidate.megatron.overlapsParameters && held.gather > 0;
  }
  Elements trainedElements(int call) const;

  MegatronParameters held;
  bool stage = false;
  MicroBatchCost cost;
  Elements waiting; // bytes of gradients that fill no bucket yet
};

/// A step under Megatron's own FSDP (MegatronFsdp.cpp).
std::unique_ptr<StepRun> makeMegatronFsdpRun(const StepLayout &layout,
                                             Engine &engine);

/// The candidate has stages that are evaluated one by one; accel-run's programs
/// know theirs.
inline bool isPipelined(const Candidate &candidate) {
  return (candidate.executor == FrameworkKind::Megatron ||
          candidate.executor == FrameworkKind::Fsdp2) &&
         candidate.stages() > 1;
}

/// The layers that each stage has, in the order of the pipeline, as the first
/// call and one past the last; empty where they cannot be divided. The last
/// stage has `lastLayers` where that is not 0, and the others an equal number.
std::vector<std::pair<int, int>> stagesOf(const StepModel &model, int stages,
                                          int lastLayers = 0);
/// Of the candidate: Megatron's, or torchtitan's under FSDP2.
std::vector<std::pair<int, int>> stagesOf(const StepModel &model,
                                          const Candidate &candidate);

/// Why a pipelined candidate cannot be run, and which numbers fit; or "".
std::string verifyPipeline(const StepModel &model, const Candidate &candidate);

/// A candidate with more than one stage: the rank that holds most, and the step
/// of all.
StepPrediction evaluatePipeline(const StepModel &model, const Target &target,
                                const Candidate &candidate, bool detail);
/// When each rank of it computes what, and what it holds at most.
pipeline::SimulatedStep simulateStages(const StepModel &model,
                                       const Target &target,
                                       const Candidate &candidate);
/// The same step, of the rank that holds most.
StepTrace tracePipeline(const StepModel &model, const Target &target,
                        const Candidate &candidate);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_MEGATRON_H
