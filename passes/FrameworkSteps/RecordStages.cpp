//===- RecordStages.cpp - Tensors of a stage's rank, one by one -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Megatron.h"
#include "passes/FrameworkSteps/StageModel.h"

namespace accel {

bool recordsStages(const Candidate &candidate) {
  return isPipelined(candidate) && candidate.executor == FrameworkKind::Fsdp2 &&
         candidate.megatron.chunks == 1;
}

struct StageRecording::Run {
  Run(const StepModel &model, const Target &target, const Candidate &candidate,
      const StageRank &rank)
      : stage(model, candidate, rank.calls), layout(stage.model, target) {
    TorchStage sizes = {candidate.torchVersion, candidate.accumulation,
                        rank.microBatches,      stage.sentBytes,
                        stage.receivedBytes,    0};
    if (rank.last)
      sizes.logits =
          model.kinds[model.calls[rank.calls.second - 1].kind].logitsBytes;
    // Until 2.14 what is received lies in buffers that stay.
    if (!atLeast(sizes.torch, "2.15"))
      for (int value : stage.received)
        stage.model.values[value].bytes = 0;
    layout.prepare(stage.candidate, RankClass::First);
    layout.listParts(RankClass::First);
    engine.reset(/*folding=*/false);
    recorder.defersStates = true;
    engine.recorder = &recorder;
    steps = recordFsdp2Stage(layout, engine, rank.order, sizes);
  }

  StageModel stage;
  StepLayout layout;
  Engine engine;
  Recorder recorder;
  std::unique_ptr<StageSteps> steps;
};

StageRecording::StageRecording(const StepModel &model, const Target &target,
                               const Candidate &candidate)
    : run(std::make_unique<Run>(model, target, candidate,
                                busiestRank(model, target, candidate))) {}
StageRecording::~StageRecording() = default;

void StageRecording::step() { run->steps->recordStep(); }

Recorder &StageRecording::recorder() { return run->recorder; }

} // namespace accel
