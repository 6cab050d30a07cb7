//===- StepRun.h - One step, issued to the engine ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What all executors have in common: activations and their gradients, the
// micro-batches of a step, and runs of equal blocks. An executor adds what it
// does around blocks and calls.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXECUTORS_STEPRUN_H
#define ACCEL_PASSES_EXECUTORS_STEPRUN_H

#include "passes/Executors/StepLayout.h"

#include <memory>

namespace accel {

class StepRun {
public:
  StepRun(const StepLayout &layout, Engine &engine)
      : layout(layout), model(layout.model), candidate(*layout.candidate),
        engine(engine) {}
  virtual ~StepRun() = default;

  /// The whole optimizer step.
  void run();
  /// Bytes that stay from step to step.
  int64_t persistentBytes() const { return persistent; }
  /// Of the device; what the host does is exposed.
  Picoseconds optimizerTime() const { return optimizer; }
  Picoseconds recomputeTime() const { return recomputed; }

  /// Bytes of a rank's host memory.
  int64_t hostBytes = 0;

protected:
  /// Parameters, states and buffers that are there before the step.
  virtual void allocatePersistent() = 0;
  virtual void beginForward() {}
  /// Around the calls [begin, end) of `block`.
  virtual void beforeForward(const Block &block) = 0;
  virtual void afterForward(const Block &block) = 0;
  virtual void endForward() {}
  virtual void beforeBackward(const Block &block) = 0;
  virtual void afterBackward(const Block &block) = 0;
  virtual void endBackward() {}
  /// After a call's backward: its parameters have their gradients.
  virtual void gradientsReady(int call) { (void)call; }
  virtual void update() = 0;
  /// Blocks whose work reaches this far ahead into the next ones; those at the
  /// end of a run of equal blocks are not folded.
  virtual int reachForward() const { return 0; }
  virtual int reachBackward() const { return 0; }
  /// What the executor does before the head's backward waits for the gradient
  /// of the logits.
  virtual bool hooksLogits() const { return false; }
  virtual bool foldsBackward() const { return true; }
  /// The micro-batch's gradients are reduced.
  bool reduces() const {
    return candidate.reduceEachMicroBatch || microBatch.last;
  }
  /// Parameters have unsharded gradients of earlier micro-batches.
  bool accumulates() const {
    return !candidate.reduceEachMicroBatch && !microBatch.first;
  }
  /// Gradients stay where autograd leaves them and are added to later.
  virtual bool gradientsStay() const { return accumulates(); }

  struct MicroBatch {
    bool first = true, last = true;
  } microBatch;

  Holding holdingOf(int call) const {
    return layout.kind(call).loss ? Holding::Logits : Holding::Activations;
  }
  /// Clipping and torch's AdamW over every unit's shard; `onHost`: all of it
  /// lives there. With `offloadOptimizer` gradients go to the host and
  /// parameters come back.
  void runOptimizer(bool onHost);
  /// The CPU-side of saving a checkpointed call's input on the host.
  int64_t offloadedBytes(int call) const;

  const StepLayout &layout;
  const StepModel &model;
  const Candidate &candidate;
  Engine &engine;
  int64_t persistent = 0;
  Picoseconds optimizer = 0, recomputed = 0;

private:
  void runMicroBatch();
  int64_t returnOutputs();
  void forwardBlock(const Block &block);
  void backwardBlock(const Block &block);
  void forwardCall(int call);
  void backwardCall(int call);
  bool staysOnDevice(int call, int value) const;
  int64_t besideLogits(int call) const;

  int64_t copiesHeld = 0; // autocast's copies of parameters
};

std::unique_ptr<StepRun> makeFsdp2Run(const StepLayout &, Engine &);
std::unique_ptr<StepRun> makeFsdp1Run(const StepLayout &, Engine &);
std::unique_ptr<StepRun> makeDdpRun(const StepLayout &, Engine &);
std::unique_ptr<StepRun> makeDeepspeedRun(const StepLayout &, Engine &);
std::unique_ptr<StepRun> makeOwnRun(const StepLayout &, Engine &);

} // namespace accel

#endif // ACCEL_PASSES_EXECUTORS_STEPRUN_H
