//===- Fsdp2.cpp - torch.distributed.fsdp.fully_shard ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What torch 2.15's _fully_shard holds and when (_fsdp_param_group.py,
// _fsdp_collectives.py): all-gathers into an output of their own, copied out
// into the parameters; in the forward the output of one unit is deferred until
// the next unit is copied out; in the backward it is released at once and the
// next unit is gathered during the computation; reduce-scatters read a copy of
// the gradients, of which one is in flight before the computation waits.
//
// A stage of torchtitan's pipeline is gathered once a step and not resharded;
// its gradients are added up unsharded, and reduced when the last micro-batch's
// backward has ended (run_post_backward of
// torch/distributed/pipelining/stage.py).
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StageRun.h"

#include <algorithm>
#include <utility>

namespace accel {
namespace {

class Fsdp2Run : public StepRun, public StageSteps {
public:
  using StepRun::StepRun;
  Fsdp2Run(const StepLayout &layout, Engine &engine,
           const std::vector<StagePart> &order, const TorchStage &sizes)
      : StepRun(layout, engine), order(order), beside(*engine.recorder, sizes),
        stage(true), recorded(true) {
    frames.resize(static_cast<size_t>(sizes.recorded));
    gradientsOf.resize(layout.units.size());
    begin();
  }

  void recordStep() override {
    beside.beginStep();
    for (const StagePart &part : order) {
      const auto count = static_cast<int>(frames.size());
      microBatch = {part.microBatch == 0, part.microBatch + 1 == count};
      exchange(frames[part.microBatch]);
      if (part.forward) {
        runForward();
        beside.afterForward(part.microBatch);
      } else {
        if (part.microBatch == count / 2)
          beside.leaveOthers();
        beside.beforeBackward();
        runBackward();
        beside.afterBackward(part.microBatch);
      }
      exchange(frames[part.microBatch]);
    }
    endStage();
    beside.joinOutputs();
    engine.recorder->makeStates();
    runOptimizer(candidate.offloadParameters);
    if (!candidate.offloadParameters)
      freeGradients();
    beside.endStep();
    warm = true;
    engine.recorder->endStep();
  }

  StageCost runStage() {
    stage = true;
    begin();
    step();
    StageCost result;
    result.micro = cost;
    result.held = held;
    result.held.updateTime = optimizerTime();
    result.held.recompute = recomputeTime();
    return result;
  }

protected:
  // Events of the engine.
  static constexpr int gate = 0;       // gathers start after it
  static constexpr int deferred = 1;   // the copy-out of the deferred unit
  static constexpr int scattered = 2;  // the reduce-scatter in flight
  static constexpr int reduced = 3;    // all that the last reduction did
  static constexpr int allReduced = 4; // the all-reduce in flight

  void allocatePersistent() override {
    if (!candidate.offloadParameters)
      allocateShards();
    for (size_t u = 0; u < layout.units.size(); ++u) {
      const UnitSizes &unit = layout.units[u];
      if (candidate.offloadParameters) {
        hostBytes += unit.shardStored + unit.stateBytes;
        hostBytes +=
            unit.shardGradient ? unit.shardGradient : unit.reduceOutput;
        continue;
      }
      allocateStates(static_cast<int>(u));
    }
    if (stage)
      holdStage();
  }

  //===--- A stage of a pipeline ------------------------------------------===//

  /// The sum over units of what they hold; all of it but `held` is there
  /// before the micro-batch.
  void holdStage() {
    int64_t gatherPool = 0; // two units' at most
    for (size_t u = 0; u < layout.units.size(); ++u) {
      const UnitSizes &unit = layout.units[u];
      const UnitTimes &t = layout.times[u];
      held.parameters += unit.shardStored;
      held.states += unit.stateBytes;
      held.gathered += unit.unsharded;
      held.accumulated += unit.heldGradients;
      held.gather += t.copyIn + t.gather + t.copyOut;
      held.reduce += t.reduceCopy + t.reduce + t.allReduce + t.castGradient;
      held.update +=
          unit.shardGradient ? unit.shardGradient : unit.reduceOutput;
      held.pools += unit.reduceOutput;
      gatherPool = std::max(gatherPool, 2 * (unit.cast + unit.gatherOutput));
    }
    held.pools += gatherPool;
    atStart = engine.total();
  }
  bool gradientsStay() const override {
    return stage ? addsInPlace && !(recorded && microBatch.first)
                 : StepRun::gradientsStay();
  }
  /// The parts that are sums of all micro-batches are told one by one.
  bool gathersNow() const { return !stage || (recorded && microBatch.first); }
  /// Added to what micro-batches before left.
  void accumulate(int u) {
    if (addsInPlace)
      return;
    const UnitSizes &unit = layout.units[u];
    if (recorded && microBatch.first) {
      castGradientsOf(u, unit.gradients, unit.heldGradients);
      gradientsOf[u] = takeGradientsOf(u);
      return;
    }
    engine.compute(layout.copyTime(
        static_cast<double>(unit.gradients + 2 * unit.heldGradients)));
    freeGradientsOf(u, unit.gradients);
  }
  /// run_post_backward: unit by unit is resharded and reduced.
  void endStage() {
    microBatch = {true, true}; // one reduction a step
    for (size_t i = 0; i < layout.units.size(); ++i) {
      const int u = static_cast<int>(i);
      engine.free(Holding::Gathered, layout.units[u].unsharded);
      putGradientsOf(u, gradientsOf[u]);
      gradientsOf[u].clear();
      if (layout.units[u].trainablePadded > 0)
        reduce(u, layout.units[u].heldGradients);
    }
    endReductions();
  }
  void noteForward() {
    cost.forward = engine.clock(Lane::Compute);
    cost.frameBytes = engine.total() - atStart;
    cost.forwardPeakBytes = engine.peak().total - atStart;
    cost.frame = engine.levels();
  }
  void noteBackward() {
    cost.backward = engine.clock(Lane::Compute) - cost.forward;
    cost.peakBytes = engine.peak().total - atStart;
    cost.peak = engine.peak().level;
    cost.place = engine.peak().place;
    for (auto *levels : {&cost.frame, &cost.peak}) {
      (*levels)[static_cast<int>(Holding::Parameters)] -= held.parameters;
      (*levels)[static_cast<int>(Holding::Optimizer)] -=
          candidate.offloadOptimizer ? 0 : held.states;
    }
  }

  bool distributed() const { return layout.shards.ranks > 1; }
  /// Of a module whose mesh has one rank nothing is exchanged: whole experts.
  bool distributed(int u) const { return layout.units[u].ranks > 1; }
  /// Prefetching beyond the implicit one is by lists of modules.
  bool explicitForward() const { return candidate.forwardPrefetch > 1; }
  int reachForward() const override {
    return explicitForward() ? candidate.forwardPrefetch + 1 : 0;
  }
  /// The root's hook is on the loss itself.
  bool hooksLogits() const override {
    const int last = static_cast<int>(model.calls.size()) - 1;
    for (int u : layout.closes[last])
      if (u != candidate.rootUnit)
        return true;
    return false;
  }
  int reachBackward() const override { return candidate.backwardPrefetch + 1; }

  //===--------------------------------------------------------------------===//
  // Gathering
  //===--------------------------------------------------------------------===//

  void startGather(int u) {
    const UnitSizes &unit = layout.units[u];
    const UnitTimes &t = layout.times[u];
    if (!distributed(u)) {
      engine.push(engine.event(gate));
      return;
    }
    Picoseconds after = engine.event(gate);
    if (candidate.offloadParameters) {
      engine.alloc(Holding::Buffers, unit.shardStored, Pool::Gather,
                   partsOf(u, &UnitParts::stored));
      after = engine.run(Lane::CopyIn, t.hostIn, after);
    }
    engine.alloc(Holding::Buffers, unit.cast, Pool::Gather);
    if (candidate.offloadParameters)
      engine.free(Holding::Buffers, unit.shardStored, Pool::Gather);
    engine.alloc(Holding::Gathered, unit.ownOutput(), Pool::Gather);
    engine.free(Holding::Buffers, unit.cast, Pool::Gather);
    const Picoseconds filled = engine.run(Lane::CopyIn, t.copyIn, after);
    engine.push(engine.transfer(Lane::Gather, Wire::Shard, t.gather, filled,
                                static_cast<double>(unit.gatherOutput)));
  }

  void freeDeferred() {
    if (deferredBytes == 0)
      return;
    engine.free(Holding::Gathered, deferredBytes, Pool::Gather);
    deferredBytes = 0;
    engine.event(gate) = std::max(engine.event(gate), engine.event(deferred));
  }

  void finishGather(int u, bool forward) {
    const UnitSizes &unit = layout.units[u];
    if (forward)
      freeDeferred();
    engine.wait(engine.pop(), Cause::Gather);
    if (!distributed(u)) {
      // The shard itself is cast and copied.
      engine.transient(Holding::Gathered, unit.cast + unit.unsharded);
      if (candidate.offloadParameters)
        engine.overhead(layout.times[u].hostIn, Cause::HostIn);
    }
    engine.alloc(Holding::Gathered, unit.unsharded - unit.stays, Pool::Compute,
                 partsOf(u, &UnitParts::unsharded));
    if (unit.stays > 0 && !std::exchange(stays[u], 1))
      engine.alloc(Holding::Gathered, unit.stays, Pool::Compute,
                   partsOf(u, &UnitParts::stays));
    engine.overhead(layout.times[u].copyOut, Cause::Gather);
    if (forward && distributed(u)) {
      deferredBytes = unit.ownOutput();
      engine.event(deferred) = engine.clock(Lane::Compute);
    } else {
      engine.free(Holding::Gathered, unit.ownOutput(), Pool::Gather);
      engine.event(gate) =
          std::max(engine.event(gate), engine.clock(Lane::Compute));
    }
  }

  /// Gathers `u`, unless a prefetch did, and what comes after it in `order`.
  void gather(int u, bool forward, int depth) {
    if (!engine.hasPending())
      startGather(u);
    finishGather(u, forward);
    const std::vector<int> &order = layout.gatherOrder;
    const int count = static_cast<int>(order.size());
    const int self = position[u];
    int pending = static_cast<int>(engine.pending());
    for (int i = pending + 1; i <= depth; ++i) {
      const int next = forward ? self + i : self - i;
      if (next < 0 || next >= count ||
          (!forward && !gathersInBackward(order[next])))
        return;
      startGather(order[next]);
    }
  }

  bool gathersInBackward(int u) const {
    return candidate.reshardAfterForward[u];
  }

  void placeUnits() {
    position.assign(layout.units.size(), -1);
    for (size_t i = 0; i < layout.gatherOrder.size(); ++i)
      position[layout.gatherOrder[i]] = static_cast<int>(i);
  }

  void beginForward() override {
    if (!gathersNow())
      return;
    placeUnits();
    // No gather of a step starts before the last step's update.
    engine.event(gate) =
        std::max(engine.event(gate), engine.clock(Lane::Compute));
    forwardUnits(0, true);
  }

  /// Opens the root, which comes before everything else.
  void forwardUnits(int call, bool root, bool reference = false) {
    if (model.calls.empty())
      return;
    for (int u : layout.opens[call])
      if ((u == candidate.rootUnit) == root && !(reference && staysGathered(u)))
        gather(u, true,
               explicitForward() && !reference ? candidate.forwardPrefetch : 0);
  }

  //===--- A forward of frozen weights ------------------------------------===//

  /// TRL shards a second model as one unit (prepare_fsdp of
  /// trl/models/utils.py), so that it is gathered whole; the output of the
  /// collective lives until the root's forward has run.
  void beginReference() override {
    placeUnits();
    if (!runsSecond())
      return forwardUnits(0, true, /*reference=*/true);
    const ReferenceSizes sizes = referenceSizes();
    if (candidate.offloadParameters)
      engine.alloc(Holding::Buffers, sizes.held, Pool::Gather);
    engine.alloc(Holding::Buffers, sizes.cast, Pool::Gather);
    if (candidate.offloadParameters)
      engine.free(Holding::Buffers, sizes.held, Pool::Gather);
    if (distributed())
      engine.alloc(Holding::Gathered, sizes.whole, Pool::Gather);
    engine.free(Holding::Buffers, sizes.cast, Pool::Gather);
    Picoseconds filled = engine.clock(Lane::Compute);
    if (candidate.offloadParameters)
      filled =
          engine.run(Lane::CopyIn,
                     layout.hostTime(static_cast<double>(sizes.held)), filled);
    const double share = static_cast<double>(sizes.whole) /
                         static_cast<double>(layout.shards.ranks);
    filled = engine.run(Lane::CopyIn, layout.copyTime(2 * share), filled);
    if (distributed())
      filled =
          engine.transfer(Lane::Gather, Wire::Shard,
                          toPicoseconds(collectiveSeconds(
                              layout.target, Collective::AllGather,
                              layout.shards, static_cast<double>(sizes.whole))),
                          filled, static_cast<double>(sizes.whole));
    engine.wait(filled, Cause::Gather);
    engine.alloc(Holding::Gathered, sizes.whole);
    engine.overhead(layout.copyTime(2 * static_cast<double>(sizes.whole)),
                    Cause::Gather);
  }
  void beforeReference(const Block &block) override {
    if (!runsSecond())
      for (int c = block.begin; c < block.end; ++c)
        forwardUnits(c, false, /*reference=*/true);
  }
  void afterReference(const Block &block) override {
    if (!runsSecond())
      afterForward(block);
  }
  void endReference() override {
    if (!runsSecond())
      return freeDeferred();
    const int64_t whole = referenceSizes().whole;
    if (distributed())
      engine.free(Holding::Gathered, whole, Pool::Gather);
    engine.free(Holding::Gathered, whole);
  }

  void beforeForward(const Block &block) override {
    if (!gathersNow())
      return;
    for (int c = block.begin; c < block.end; ++c)
      forwardUnits(c, false);
  }

  void afterForward(const Block &block) override {
    if (stage)
      return;
    for (int c = block.begin; c < block.end; ++c)
      for (int u : layout.closes[c])
        if (candidate.reshardAfterForward[u])
          reshard(u);
  }

  void endForward() override {
    if (stage && !recorded)
      return noteForward();
    freeDeferred();
  }

  //===--------------------------------------------------------------------===//
  // Backward
  //===--------------------------------------------------------------------===//

  void beforeBackward(const Block &block) override {
    if (stage)
      return;
    for (int c = block.end - 1; c >= block.begin; --c)
      for (size_t i = layout.closes[c].size(); i-- > 0;) {
        const int u = layout.closes[c][i];
        if (gathersInBackward(u))
          gather(u, false, candidate.backwardPrefetch);
        else
          prefetchOnly(u);
      }
  }

  /// A unit that was kept still gathers the one before it.
  void prefetchOnly(int u) {
    const int next = position[u] - 1;
    if (candidate.backwardPrefetch > 0 && next >= 0 && !engine.hasPending() &&
        gathersInBackward(layout.gatherOrder[next]))
      startGather(layout.gatherOrder[next]);
  }

  void afterBackward(const Block &block) override {
    for (int c = block.end - 1; c >= block.begin; --c)
      // Experts that are sharded apart end before the rest of their layer.
      for (bool apart : {true, false})
        for (int u : layout.opens[c])
          if (u != candidate.rootUnit && isApart(u) == apart)
            postBackward(u);
  }

  bool isApart(int u) const { return layout.isApart(layout.units[u]); }

  void postBackward(int u) {
    const UnitSizes &unit = layout.units[u];
    if (stage)
      return accumulate(u);
    if (!reduces()) {
      keepGradients(u);
      reshard(u);
      return;
    }
    reshard(u);
    if (unit.trainablePadded > 0 && unit.stays == 0)
      reduce(u, accumulates() ? unit.heldGradients : unit.gradients);
  }

  void reshard(int u) {
    engine.free(Holding::Gathered,
                layout.units[u].unsharded - layout.units[u].stays);
  }

  /// _root_post_backward_final_callback: what no hook resharded, in the order
  /// of the modules.
  void reshardWhatStayed() {
    for (size_t u = 0; u < stays.size(); ++u) {
      const UnitSizes &unit = layout.units[u];
      if (!std::exchange(stays[u], 0))
        continue;
      engine.free(Holding::Gathered, unit.stays);
      if (reduces() && unit.trainablePadded > 0)
        reduce(static_cast<int>(u),
               accumulates() ? unit.heldGradients : unit.gradients);
    }
  }

  /// Without synchronization gradients stay unsharded, in the dtype of the
  /// reduction.
  void keepGradients(int u) {
    const UnitSizes &unit = layout.units[u];
    if (!microBatch.first || unit.gradients == unit.heldGradients)
      return;
    castGradientsOf(u, unit.gradients, unit.heldGradients);
    engine.overhead(layout.copyTime(static_cast<double>(unit.gradients +
                                                        unit.heldGradients)),
                    Cause::Reduce);
  }

  /// Gradients of so many bytes.
  void reduce(int u, int64_t gradients) {
    const UnitSizes &unit = layout.units[u];
    const UnitTimes &t = layout.times[u];
    // One reduce-scatter's input may be in flight.
    if (inFlight > 0) {
      engine.wait(engine.event(scattered), Cause::Reduce);
      engine.free(Holding::Buffers, inFlight);
    }
    engine.alloc(Holding::Buffers, unit.reduceInput);
    engine.overhead(t.reduceCopy, Cause::Reduce);
    freeGradientsOf(u, gradients);
    inFlight = unit.reduceInput;
    engine.alloc(Holding::Gradients, unit.reduceOutput, Pool::Reduce);
    // foreach_reduce divides by a factor that is not the ranks of the mesh.
    if (isApart(u) && !distributed(u))
      engine.transient(Holding::Buffers, unit.reduceInput);
    Picoseconds done = engine.transfer(Lane::Reduce, Wire::Shard, t.reduce,
                                       engine.clock(Lane::Compute),
                                       static_cast<double>(unit.reduceInput));
    engine.event(scattered) = done;
    Lane last = Lane::Reduce;
    if (layout.replicas.ranks > 1) {
      last = Lane::AllReduce;
      done = engine.transfer(last, Wire::Replicate, t.allReduce, done,
                             static_cast<double>(unit.reduceOutput));
    }
    finishReduction(unit, t, last, done);
  }

  /// Casts to the gradient's dtype, adds to what is there, or copies to the
  /// host.
  void finishReduction(const UnitSizes &unit, const UnitTimes &t, Lane last,
                       Picoseconds done) {
    const bool hybrid = layout.replicas.ranks > 1;
    const Pool pool = hybrid ? Pool::AllReduce : Pool::Reduce;
    int64_t result = unit.reduceOutput;
    Pool resultPool = Pool::Reduce;
    if (unit.shardGradient) {
      engine.alloc(Holding::Gradients, unit.shardGradient, pool);
      done = engine.run(last, t.castGradient, done);
      // Held until this unit's next reduction where it was all-reduced.
      if (!hybrid)
        engine.free(Holding::Gradients, unit.reduceOutput, Pool::Reduce);
      result = unit.shardGradient;
      resultPool = pool;
    }
    if (candidate.offloadParameters) {
      done = engine.run(last, t.hostOut, done);
      engine.free(Holding::Gradients, result, resultPool);
    } else if (candidate.reduceEachMicroBatch && !microBatch.first) {
      done = engine.run(last, t.add, done);
      engine.free(Holding::Gradients, result, resultPool);
    }
    engine.event(reduced) = std::max(engine.event(reduced), done);
  }

  void endBackward() override {
    if (candidate.rootUnit >= 0)
      postBackward(candidate.rootUnit);
    if (stage)
      return recorded ? void() : noteBackward();
    reshardWhatStayed();
    endReductions();
  }

  void endReductions() {
    engine.wait(engine.event(reduced), Cause::Reduce);
    engine.free(Holding::Buffers, inFlight);
    inFlight = 0;
    if (layout.replicas.ranks > 1 && reduces())
      for (const UnitSizes &unit : layout.units)
        if (unit.shardGradient)
          engine.free(Holding::Gradients, unit.reduceOutput, Pool::Reduce);
  }

  //===--------------------------------------------------------------------===//
  // Update
  //===--------------------------------------------------------------------===//

  void update() override {
    runOptimizer(candidate.offloadParameters);
    if (!candidate.offloadParameters && !stage)
      freeGradients();
  }

  void freeGradients() {
    const bool hybrid = layout.replicas.ranks > 1;
    for (const UnitSizes &unit : layout.units)
      engine.free(Holding::Gradients,
                  unit.shardGradient ? unit.shardGradient : unit.reduceOutput,
                  hybrid && unit.shardGradient ? Pool::AllReduce
                                               : Pool::Reduce);
  }

  std::vector<int> position; // by unit, in gatherOrder
  std::vector<char> stays = std::vector<char>(layout.units.size()); // by unit
  int64_t deferredBytes = 0, inFlight = 0;
  // Of a stage that is recorded (StageSteps).
  std::vector<StagePart> order;
  TorchStageTensors beside;
  std::vector<Frame> frames;                 // by micro-batch
  std::vector<std::vector<int>> gradientsOf; // by unit, added up
  bool stage = false;
  bool recorded = false;
  StageHeld held;
  /// Autograd adds to what is there, each gradient by itself, where FSDP2 does
  /// not cast between them (to_accumulated_grad_if_needed).
  const bool addsInPlace = std::all_of(
      layout.units.begin(), layout.units.end(), [](const UnitSizes &unit) {
        return unit.gradients == unit.heldGradients;
      });
  MicroBatchCost cost;
  int64_t atStart = 0;
};

} // namespace

StageCost runFsdp2Stage(const StepLayout &layout, Engine &engine) {
  return Fsdp2Run(layout, engine).runStage();
}

std::unique_ptr<StageSteps>
recordFsdp2Stage(const StepLayout &layout, Engine &engine,
                 const std::vector<StagePart> &order, const TorchStage &sizes) {
  return std::make_unique<Fsdp2Run>(layout, engine, order, sizes);
}

std::unique_ptr<StepRun> makeFsdp2Run(const StepLayout &layout,
                                      Engine &engine) {
  return std::make_unique<Fsdp2Run>(layout, engine);
}

} // namespace accel
