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
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_STEPRUN_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_STEPRUN_H

#include "passes/FrameworkSteps/StepLayout.h"

#include <memory>
#include <set>
#include <utility>

namespace accel {

class StepRun {
public:
  StepRun(const StepLayout &layout, Engine &engine)
      : layout(layout), model(layout.model), candidate(*layout.candidate),
        engine(engine) {}
  virtual ~StepRun() = default;

  /// What is there before the first step.
  void begin();
  /// One optimizer step; may be repeated.
  void step() {
    computeGradients();
    updateWeights();
  }
  /// Its two halves.
  void computeGradients();
  void updateWeights();
  /// A forward without gradients, of the trained weights, whose loss is of
  /// logits in so many parts.
  void evaluate(int64_t lossParts);
  /// Bytes of gradients that are there between steps, and that whatever comes
  /// next frees first.
  virtual int64_t passingGradients() const { return 0; }
  /// Bytes that stay from step to step.
  int64_t persistentBytes() const { return persistent; }
  /// Of the device; what the host does is exposed.
  Picoseconds optimizerTime() const { return optimizer; }
  Picoseconds recomputeTime() const { return recomputed; }

  /// Bytes of a rank's host memory.
  int64_t hostBytes = 0, diskBytes = 0, pagedBytes = 0;

protected:
  /// Parameters, states and buffers that are there before the step.
  virtual void allocatePersistent() = 0;
  virtual void beginForward() {}
  /// Around the calls [begin, end) of `block`.
  virtual void beforeForward(const Block &block) = 0;
  virtual void afterForward(const Block &block) = 0;
  virtual void endForward() {}
  /// The same around a forward of frozen weights (ReferenceForward.cpp).
  virtual void beginReference() {}
  virtual void beforeReference(const Block &block) { beforeForward(block); }
  virtual void afterReference(const Block &block) { afterForward(block); }
  virtual void endReference() { endForward(); }
  virtual void beginBackward() {}
  virtual void beforeBackward(const Block &block) = 0;
  virtual void afterBackward(const Block &block) = 0;
  virtual void endBackward() {}
  /// Around each call.
  virtual void beforeForwardCall(int call) { (void)call; }
  virtual void afterForwardCall(int call) { (void)call; }
  virtual void beforeBackwardCall(int call) { (void)call; }
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
  /// Matmuls add gradients up where they stay: none is a tensor of its own.
  virtual bool addsGradientsInMatmuls() const { return false; }

  struct MicroBatch {
    bool first = true, last = true;
  } microBatch;

  Holding holdingOf(int call) const {
    return layout.kind(call).loss ? Holding::Logits : Holding::Activations;
  }
  /// A second model is there.
  bool hasSecond() const {
    return candidate.preference.reference == PreferenceStep::Reference::Second;
  }
  /// Whose weights the forward at hand runs, where it is not the trained one.
  PreferenceStep::Reference running = PreferenceStep::Reference::None;
  bool runsSecond() const {
    return running == PreferenceStep::Reference::Second;
  }
  /// A second model as this rank holds it, and as it is gathered whole.
  struct ReferenceSizes {
    int64_t held = 0, cast = 0, whole = 0;
  };
  ReferenceSizes referenceSizes() const;
  /// The unit is still gathered from the forward that is trained.
  bool staysGathered(int unit) const {
    return !candidate.reshardAfterForward[unit];
  }

  //===--- A micro-batch in two parts -------------------------------------===//

  void runForward();
  void runBackward();
  /// What a micro-batch keeps from its forward to its backward, where others
  /// run in between.
  struct Frame {
    std::vector<std::vector<int>> own;             // StepRun::Tensors
    std::vector<int> value, valueGradient, copies; // the same
    size_t played = 0;
    int64_t outputs = 0;
  };
  /// Changes the frame at hand for another one, which may be new.
  void exchange(Frame &frame);

  /// Clipping and the optimizer over every unit's shard; `onHost`: all of it
  /// lives there. With `offloadOptimizer` gradients go to the host and
  /// parameters come back.
  void runOptimizer(bool onHost);
  /// The tensors of lists of temporaries, of `bytes` in all: one of each
  /// gradient in each list, and what is left in one.
  std::vector<int64_t> partsOfLists(int64_t bytes) const;
  /// What a call keeps for its backward beside values.
  int64_t savedBytes(int call) const;
  /// The CPU-side of saving a checkpointed call's input on the host.
  int64_t offloadedBytes(int call) const;

  //===--- Where tensors lie (CudaGraphs.cpp) -----------------------------===//

  /// Of what the call makes; -1: of nobody's.
  Pool poolOf(int call) const;
  Pool poolOfValue(int value) const {
    return poolOf(model.values[value].producer);
  }
  Pool poolOfGradient(int value) const {
    return poolOf(layout.firstGradient[value]);
  }
  GraphCopies copiesOf(int call) const;
  /// Frees the gradients of a unit, of `bytes`, that autograd left.
  void freeFresh(int unit, int64_t bytes);

  //===--- Where each tensor is recorded (RecordStep.cpp) -----------------===//

  bool records() const { return engine.recorder != nullptr; }
  /// Parts of a unit, for Engine::alloc.
  Recorder::Parts partsOf(int unit,
                          std::vector<int64_t> UnitParts::*list) const {
    return records() ? &(layout.parts[unit].*list) : nullptr;
  }
  /// The unsharded gradients of a unit's parameters are gone: `bytes` of them
  /// are no longer counted.
  void freeGradientsOf(int unit, int64_t bytes);
  /// They become tensors of other sizes, between micro-batches.
  void castGradientsOf(int unit, int64_t from, int64_t to);
  /// All of them.
  void freeAllGradients();
  /// The recorded gradients of a unit's parameters, which are then nobody's,
  /// and back.
  std::vector<int> takeGradientsOf(int unit);
  void putGradientsOf(int unit, const std::vector<int> &recorded);

  //===--- What loading leaves (Loading.cpp) ------------------------------===//

  /// The shards on the device; records them and what loading makes beside them.
  /// `flats`: bytes of the flat parameter's shard by unit, or none: each
  /// parameter is sharded by itself.
  void allocateShards(const std::vector<int64_t> &flats = {});
  /// Before the step: a unit's states, on the device, in pages that go where
  /// there is room, or on the host.
  void allocateStates(int unit);
  /// A step was run before this one.
  bool warm = false;

  const StepLayout &layout;
  const StepModel &model;
  const Candidate &candidate;
  Engine &engine;
  int64_t persistent = 0;
  Picoseconds optimizer = 0, recomputed = 0;

private:
  std::vector<int> loadingOrder() const;
  void recordUnit(int unit, const std::vector<int64_t> &flats);
  void recordBuckets(const std::vector<int64_t> &tensors);
  void recordBroadcasts();
  int64_t wholeBytes(int parameter) const;
  void runMicroBatch();
  int64_t returnOutputs();
  void allocateReference();
  void scoreCompletions();
  void lossForward();
  int64_t referenceForward(PreferenceStep::Reference whose);
  int64_t runWithoutGraph(bool reference);
  void callWithoutGraph(int call, int64_t &copies);
  int64_t logitsBytes() const;
  /// The model's own forward converted its 16-bit logits.
  bool returnsWideLogits() const;
  int64_t logitsItem() const {
    return plan::itemSize(candidate.dtypes.compute);
  }
  int64_t lossLogitsBytes() const;
  /// The loss reads logits of 16 bits.
  bool readsNarrow() const {
    return logitsItem() == 2 && !candidate.dtypes.outputFloat;
  }
  int64_t lossPeak(int call) const;
  bool takesLogProbabilities(int call) const {
    return candidate.preference.logProbabilities && layout.kind(call).loss;
  }
  int64_t forwardPeak(int call) const;
  int64_t backwardPeak(int call) const;
  void forwardBlock(const Block &block);
  void backwardBlock(const Block &block);
  void forwardCall(int call);
  void backwardCall(int call);
  bool staysOnDevice(int call, int value) const;
  int64_t besideLogits(int call) const;

  void freeValue(int value);
  void recordForward(int call, int64_t peak);
  void recordBackward(int call, int64_t peak);
  void recordLoss(int call, int64_t peak);
  void play(int call, const std::vector<StorageEvent> &events, size_t from,
            bool toLossEnd);
  void keepWorkspaces(bool backward, int64_t bytes, Pool pool);
  void placeGradients(int call);
  void dropCopies();
  bool traced(int call) const;
  int parameterOf(int call, size_t gradient) const;
  /// A gradient that the call's backward made: kept, or added to what there is.
  void takeGradient(int call, int parameter, int &tensor);
  struct Tensors {
    std::vector<std::vector<int>> own; // by call and storage
    std::vector<int> value, valueGradient, gradient;
    std::vector<int> waiting; // by parameter: StepLayout::waits
    std::vector<int> copies;  // by call: GraphCopies::held
    size_t played = 0;        // of the loss's backward
    std::set<std::pair<bool, int64_t>> workspaces; // of the backward's, bytes
  } tensors;

  int64_t copiesHeld = 0;     // autocast's copies of parameters
  int64_t outputs = 0;        // of the micro-batch at hand, until its end
  int64_t evaluatedParts = 1; // of the logits in an evaluation
};

/// That of the layout's candidate.
std::unique_ptr<StepRun> makeStepRun(const StepLayout &, Engine &);
std::unique_ptr<StepRun> makeFsdp2Run(const StepLayout &, Engine &);
std::unique_ptr<StepRun> makeFsdp1Run(const StepLayout &, Engine &);
std::unique_ptr<StepRun> makeDdpRun(const StepLayout &, Engine &);
std::unique_ptr<StepRun> makeDeepspeedRun(const StepLayout &, Engine &);
std::unique_ptr<StepRun> makeMegatronRun(const StepLayout &, Engine &);
std::unique_ptr<StepRun> makeAccelRunStep(const StepLayout &, Engine &);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_STEPRUN_H
