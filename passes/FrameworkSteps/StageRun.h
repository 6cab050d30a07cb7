//===- StageRun.h - One stage of a pipeline, by itself ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What a stage's micro-batch takes alone, and what its rank holds and does once
// a step. The schedule says when micro-batches run and how many are in flight
// (Pipeline.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_STAGERUN_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_STAGERUN_H

#include "passes/FrameworkSteps/StepRun.h"

namespace accel {

/// What one micro-batch takes, alone, beside what stays from step to step.
struct MicroBatchCost {
  Picoseconds forward = 0, backward = 0;
  int64_t frameBytes = 0; // from the forward to the backward
  int64_t forwardPeakBytes = 0, peakBytes = 0;
  std::array<int64_t, numHoldings> frame{}, peak{}; // sum to the two
  Place place;                                      // of the peak
};

/// What a rank holds for a stage, and does once a step.
struct StageHeld {
  int64_t parameters = 0, gradients = 0, states = 0;
  /// Tensors that a rank's chunks share (MegatronParameters::placeholderBytes).
  int64_t placeholders = 0;
  /// FSDP2: parameters from the first forward to the last backward, and
  /// gradients from the first backward on.
  int64_t gathered = 0, accumulated = 0;
  /// Buffers of the model and tensors that micro-batches are received into, and
  /// what the last stage keeps of each for the caller of the schedule.
  int64_t buffers = 0, returned = 0;
  /// What each forward and each backward leaves until the next step, and what
  /// the last backward leaves until the next one has ended.
  int64_t keptByForward = 0, keptByBackward = 0, lastGradient = 0;
  /// Outputs that are on their way while the next micro-batch's forward runs.
  int64_t sending = 0;
  /// Of other streams than the computation's, which the allocator keeps apart.
  int64_t pools = 0;
  int64_t update = 0; // what the update holds for a moment
  int64_t sentBytes = 0, receivedBytes = 0;
  Picoseconds reduce = 0, gather = 0, updateTime = 0;
  Picoseconds recompute = 0; // of one micro-batch
  Picoseconds exchange = 0;  // of one, Cause::Exchange
};

struct StageCost {
  MicroBatchCost micro;
  StageHeld held;
};

/// Adds what torch's PipelineStage and Schedule1F1B hold beside the tensors of
/// a micro-batch, in release `torch`; `logits`: bytes of a micro-batch, 0 for a
/// stage that is not the last. `stage` was run with gradients of what it sends
/// of no bytes.
void holdAsTorch(StageCost &stage, const std::string &torch,
                 int64_t microBatches, int64_t logits);

/// What torch's stage holds beside the tensors of a micro-batch.
struct TorchStage {
  std::string torch; // its release
  int64_t microBatches = 1;
  int64_t recorded = 1; // of them, one by one: others are like the middle one
  int64_t sent = 0, received = 0, logits = 0; // bytes of a micro-batch
};

/// The same as tensors, one by one, in the order of a rank's parts.
class TorchStageTensors {
public:
  TorchStageTensors() = default;
  TorchStageTensors(Recorder &recorder, const TorchStage &sizes)
      : recorder(&recorder), sizes(sizes),
        outputs(static_cast<size_t>(sizes.recorded), -1), logits(outputs) {}

  void beginStep();
  void afterForward(int microBatch);
  void beforeBackward();
  void afterBackward(int microBatch);
  /// What micro-batches that are not recorded leave.
  void leaveOthers();
  /// The last stage's, behind the last backward; they go with `endStep`.
  void joinOutputs();
  void endStep();

private:
  void keep(int64_t bytes) {
    untilNextStep.push_back(recorder->make(bytes, Pool::Compute));
  }
  void drop(std::vector<int> &tensors);

  Recorder *recorder = nullptr;
  TorchStage sizes;
  std::vector<int> outputs, logits; // by micro-batch
  std::vector<int> untilNextStep, returned;
  int sending = -1, arrived = -1, lastGradient = -1, joined = -1;
  bool started = false;
};

/// A forward or a backward of a rank's order.
struct StagePart {
  bool forward = true;
  int microBatch = 0;
};

/// Steps of a stage's rank for Engine::recorder, with all micro-batches in
/// their order: units are gathered in the first forward, and each is reduced
/// behind the last backward.
class StageSteps {
public:
  virtual ~StageSteps() = default;
  virtual void recordStep() = 0;
};
std::unique_ptr<StageSteps>
recordFsdp2Stage(const StepLayout &layout, Engine &engine,
                 const std::vector<StagePart> &order, const TorchStage &sizes);

/// A rank of a pipeline with one stage on each.
struct StageRank {
  std::pair<int, int> calls; // the first of its stage, and one past the last
  bool last = false;         // the stage has the loss
  /// With no more micro-batches than it takes to fill the pipeline, go on for
  /// a while and empty it.
  std::vector<StagePart> order;
  int microBatches = 0; // in the order
};
/// That which holds most, as `evaluatePipeline` says.
StageRank busiestRank(const StepModel &model, const Target &target,
                      const Candidate &candidate);

/// Its steps, tensor by tensor.
class StageRecording {
public:
  StageRecording(const StepModel &model, const Target &target,
                 const Candidate &candidate);
  ~StageRecording();
  void step();
  Recorder &recorder();

private:
  struct Run;
  std::unique_ptr<Run> run;
};
/// Stages of torchtitan, one on each rank.
bool recordsStages(const Candidate &candidate);

/// Of a layout and an engine that were made for the stage.
StageCost runMegatronStage(const StepLayout &layout, Engine &engine);
StageCost runFsdp2Stage(const StepLayout &layout, Engine &engine);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_STAGERUN_H
