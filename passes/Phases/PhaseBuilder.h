//===- PhaseBuilder.h - The phases of one job -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PHASES_PHASEBUILDER_H
#define ACCEL_PASSES_PHASES_PHASEBUILDER_H

#include "passes/FrameworkSteps/OutsideSteps.h"
#include "passes/FrameworkSteps/ParameterDtypes.h"
#include "passes/Phases/JobPhases.h"

#include <algorithm>

namespace accel {

/// A shard of a checkpoint (save_pretrained's max_shard_size), before and from
/// transformers 5 on.
constexpr int64_t oldShardBytes = 5'000'000'000, newShardBytes = 50'000'000'000;

class PhaseBuilder {
public:
  PhaseBuilder(const StepModel &model, const Target &target,
               const Candidate &candidate, const StepPrediction &step,
               const PhaseInputs &inputs)
      : model(model), target(target), candidate(candidate), step(step),
        in(inputs), first(firstStep(model, target, candidate)),
        dtypes(candidate) {
    if (first)
      this->step.persistentBytes -= first->passingBytes;
    measure();
  }

  std::vector<JobPhase> run();

private:
  bool deepspeed() const {
    return candidate.executor == FrameworkKind::Deepspeed;
  }
  bool fsdp() const {
    return candidate.executor == FrameworkKind::Fsdp1 ||
           candidate.executor == FrameworkKind::Fsdp2;
  }
  bool replicated() const {
    return candidate.executor == FrameworkKind::Single ||
           candidate.executor == FrameworkKind::Ddp;
  }
  int64_t ranks() const {
    return candidate.shards().ranks * candidate.replicas().ranks;
  }
  int64_t shards() const {
    return deepspeed() || fsdp()
               ? std::max<int64_t>(candidate.shards().ranks, 1)
               : 1;
  }
  int64_t base() const; // a process
  int64_t fileBytes(int64_t of) const;
  int64_t shardBytes() const;
  int64_t largestPiece() const;

  void measure();
  void add(PhaseKind kind, int64_t device, int64_t host, int64_t others,
           std::string why, int64_t serial = 0);
  void move(PhaseKind kind, int64_t storage, int64_t copied);

  void moveCheckpoints(int64_t loaded);

  void start();
  void load();
  void loadFsdp(int64_t whole, int64_t kept);
  void loadQuantized();
  void loadSplit(int64_t kept);
  void loadZero3(int64_t whole, int64_t file, int64_t kept);
  bool rankZeroReads() const;
  int64_t beside() const;
  int64_t statesOnDevice() const;
  bool readsWholeStateDict() const;
  int64_t readAhead() const;
  std::string besideWhole() const;
  void steps();

  // Evaluation.cpp
  struct Evaluated;
  void eval();
  int64_t evalBatch() const;
  int64_t logitsInEval(int64_t batch) const;
  int64_t forwardInEval(int64_t batch, int64_t parts) const;
  bool comparesInEval() const;
  int64_t activationsInEval(int64_t batch, int64_t parts) const;
  void evalKeeps(const Evaluated &e, const KeptLogits &kept,
                 const std::string &batch);
  int64_t weightsInEval(int64_t item) const;
  int64_t gatheredInEval(int64_t item) const;

  // Checkpoints.cpp
  void save();
  void saveState();
  void saveAdapter();
  void resume();
  void resumeCheckpoint();
  void resumeShards();
  void resumeFull();
  void resumeDeepspeed();
  void resumeReplicated();
  void afterBase(JobPhase &resumed) const;
  void mergeAdapted();
  void stop(PhaseKind kind, const char *why);
  const char *partitionText() const;
  std::string afterIt(const char *states) const;
  const char *whyNotMerged() const;
  const char *whyNotResumed() const;
  bool savesStates() const;
  int64_t savedStates() const;
  int64_t partition() const;
  int64_t copiedPartition() const;
  int64_t copiedShards() const;
  int64_t writtenBytes() const;
  int64_t shardOf(int64_t bytes) const;
  int64_t offloaded() const;
  int64_t offloadedBefore() const;

  const StepModel &model;
  const Target &target;
  const Candidate &candidate;
  StepPrediction step; // without gradients that what comes after it frees
  const PhaseInputs &in;
  const std::optional<FirstStep> first;
  ParameterDtypes dtypes;
  std::vector<JobPhase> phases;
  /// Of whole tensors, which gathering a state and merging make of their parts.
  int64_t loadedBytes = 0, checkpointBytes = 0, storedBytes = 0;
  int64_t trainedBytes = 0, wholeStateBytes = 0;
  /// Of what the ranks that compute one sample have of them.
  int64_t ownLoadedBytes = 0, ownStoredBytes = 0, ownTrainedBytes = 0;
  int64_t stateBytes = 0;
  int64_t trainedNumel = 0;
  int64_t largest = 0, largestStored = 0, largestTrained = 0;
  int64_t largestState = 0;
  /// As loaded: the largest weight that an adapter adds to, and the largest
  /// that is quantised.
  int64_t largestAdapted = 0, largestQuantized = 0;
  int64_t largestUnit = 0; // of parts
  int64_t expertBytes = 0; // as they are loaded
  /// Of parameters that accelerate turns into fp32 on the host, before FSDP2
  /// shards them; in fp32.
  int64_t upcastBytes = 0;
  bool quantized = false, adapted = false;
  bool split = false; // tensor parallelism splits some parameter
};

} // namespace accel

#endif // ACCEL_PASSES_PHASES_PHASEBUILDER_H
