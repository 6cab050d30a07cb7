//===- Fsdp1.cpp - torch.distributed.fsdp.FullyShardedDataParallel --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// FlatParameters (torch/distributed/fsdp/_flat_param.py, _runtime_utils.py):
// a unit's parameters are one flat tensor, and what is gathered is computed
// with, so nothing is copied out. Freed flat tensors were used on two streams
// (record_stream): the allocator counts them as free at once but cannot give
// them away before the device has passed, which the limit of two all-gathers
// in flight bounds.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StepRun.h"

namespace accel {
namespace {

class Fsdp1Run : public StepRun {
public:
  using StepRun::StepRun;

  /// The root's next forward resets them, and so does reading a state dict
  /// (_root_pre_forward and _common_pre_state_dict_hook of
  /// torch/distributed/fsdp).
  int64_t passingGradients() const override {
    int64_t bytes = 0;
    if (!candidate.offloadParameters)
      for (const Flat &flat : flats)
        bytes += flat.kept;
    return bytes;
  }

protected:
  static constexpr int reduced = 0; // all that the reductions did
  static constexpr int freed = 1;   // the computation that a freed unit ended

  /// Flat, padded to the ranks alone.
  struct Flat {
    int64_t stored = 0, lowPrecision = 0, unsharded = 0, gradient = 0;
    int64_t shardReduced = 0, shardGradient = 0, states = 0;
    int64_t kept = 0; // the gradient that the update reads
  };

  void allocatePersistent() override {
    const ParameterDtypes dtypes = layout.dtypes();
    const std::vector<const StepParameter *> first = firstParameters();
    flats.resize(layout.units.size());
    const std::vector<int64_t> trainedOnRank = trainedParts();
    std::vector<bool> read(flats.size(), false); // by a call
    for (size_t p = 0; p < model.parameters.size(); ++p)
      if (layout.isRead(static_cast<int>(p)))
        read[candidate.unitOf[p]] = true;
    for (size_t u = 0; u < flats.size(); ++u) {
      Flat &flat = flats[u];
      const int64_t ranks = layout.shards.ranks;
      const int64_t shard = (layout.units[u].numel + ranks - 1) / ranks;
      auto bytes = [&](int64_t numel, plan::DType dtype) {
        return layout.round(numel * plan::itemSize(dtype));
      };
      if (!first[u])
        continue;
      const StepParameter &one = *first[u];
      const plan::DType compute = dtypes.compute(one),
                        reduce = dtypes.reduce(one),
                        gradient = dtypes.gradient(one);
      flat.stored = bytes(shard, dtypes.storage(one));
      // NO_SHARD computes with the flat parameter itself, or with a copy in
      // low precision.
      const bool copied = compute != dtypes.storage(one);
      if (sharded() || copied)
        flat.unsharded = bytes(shard * ranks, compute);
      if (sharded() && copied)
        flat.lowPrecision = bytes(shard, compute);
      // All of a flat parameter has a gradient where a part has.
      if (one.trainable && read[u]) {
        flat.gradient = bytes(shard * ranks, compute);
        // Of NO_SHARD the gradient itself is reduced.
        if (sharded() || reduce != compute)
          flat.shardReduced = bytes(shard, reduce);
        if (reduce != gradient)
          flat.shardGradient = bytes(shard, gradient);
        const int64_t trained = trainedOnRank[u] < 0 ? shard : trainedOnRank[u];
        for (const plan::StateRule &state : candidate.update->states)
          flat.states +=
              bytes(plan::OptimizerRule::elements(state, {trained}, trained),
                    plan::OptimizerRule::dtypeOf(state, dtypes.state(one)));
        flat.kept = flat.shardGradient  ? flat.shardGradient
                    : flat.shardReduced ? flat.shardReduced
                                        : flat.gradient;
      }
      if (candidate.offloadParameters) {
        hostBytes += flat.stored + flat.states + flat.kept;
        continue;
      }
      if (candidate.update->habits.paged)
        pagedBytes += flat.states;
      else
        engine.alloc(Holding::Optimizer, flat.states);
      const RecordingPause firstStep(engine); // has none yet
      engine.alloc(Holding::Gradients, flat.kept, keptPool(flat));
    }
    if (!candidate.offloadParameters) {
      std::vector<int64_t> stored;
      for (const Flat &flat : flats)
        stored.push_back(flat.stored);
      allocateShards(stored);
    }
    if (hasSecond())
      for (size_t u = 0; u < flats.size(); ++u)
        if (staysGathered(static_cast<int>(u)))
          engine.alloc(Holding::Gathered, flats[u].unsharded, Pool::Gather);
  }

  /// NO_SHARD in one dtype reduces the gradient that autograd left.
  static bool inPlace(const Flat &flat) {
    return !flat.shardReduced && !flat.shardGradient;
  }
  /// Autograd runs a backward on the stream of its forward, and views of the
  /// flat parameter are made on the stream that gathers it (_unshard of
  /// torch/distributed/fsdp/_runtime_utils.py).
  static constexpr Pool flatGradientPool = Pool::Gather;
  static Pool keptPool(const Flat &flat) {
    return inPlace(flat) ? flatGradientPool : Pool::Reduce;
  }
  void freeKept(const Flat &flat) {
    engine.free(Holding::Gradients, flat.kept, keptPool(flat));
  }

  void freeLastGradients() {
    std::optional<RecordingPause> firstStep;
    if (!warm)
      firstStep.emplace(engine);
    for (const Flat &flat : flats)
      freeKept(flat);
  }

  /// What decides the dtypes of each flat parameter, which are uniform: its
  /// first trained parameter, or the first; null where it has none.
  std::vector<const StepParameter *> firstParameters() const {
    std::vector<const StepParameter *> result(layout.units.size(), nullptr);
    for (size_t p = 0; p < model.parameters.size(); ++p) {
      const StepParameter *&first = result[candidate.unitOf[p]];
      if (!first || (!first->trainable && model.parameters[p].trainable))
        first = &model.parameters[p];
    }
    return result;
  }

  /// With original parameters, the optimizer has states for what is trained:
  /// here the most elements of a flat parameter that the first or the last rank
  /// holds of it; -1: all.
  std::vector<int64_t> trainedParts() const {
    struct Flattened {
      int64_t at = 0, first = 0, last = 0;
    };
    std::vector<Flattened> flattened(layout.units.size());
    std::vector<int64_t> result(layout.units.size(), -1);
    for (size_t p = 0; p < model.parameters.size(); ++p) {
      const int u = candidate.unitOf[p];
      if (layout.units[u].trainablePadded == layout.units[u].paddedNumel)
        continue;
      const int64_t ranks = layout.shards.ranks;
      const int64_t shard = (layout.units[u].numel + ranks - 1) / ranks;
      Flattened &flat = flattened[u];
      const int64_t end = flat.at + model.parameters[p].storedNumel();
      if (model.parameters[p].trainable) {
        flat.first += std::max<int64_t>(0, std::min(end, shard) - flat.at);
        flat.last +=
            std::max<int64_t>(0, end - std::max(flat.at, shard * (ranks - 1)));
      }
      flat.at = end;
      result[u] = std::max(flat.first, flat.last);
    }
    return result;
  }

  bool sharded() const { return layout.shards.ranks > 1; }
  int reachForward() const override { return candidate.forwardPrefetch + 1; }
  int reachBackward() const override { return candidate.backwardPrefetch + 1; }

  void start(int u) {
    const Flat &flat = flats[u];
    const UnitTimes &t = layout.times[u];
    Picoseconds after = 0;
    // limit_all_gathers: the CPU waits until the last unit but one is freed.
    if (records())
      engine.recorder->settle(1);
    if (candidate.offloadParameters) {
      engine.alloc(Holding::Buffers, flat.stored, Pool::Gather);
      after = engine.run(Lane::CopyIn, t.hostIn, 0);
    }
    engine.alloc(Holding::Buffers, flat.lowPrecision, Pool::Gather);
    const Picoseconds cast =
        engine.run(Lane::CopyIn,
                   flat.lowPrecision ? layout.copyTime(static_cast<double>(
                                           flat.stored + flat.lowPrecision))
                                     : 0,
                   after);
    engine.alloc(Holding::Gathered, flat.unsharded, Pool::Gather);
    // The two units before this one may still be in use on the device.
    engine.retainUntilEvent(Pool::Gather, flat.unsharded);
    // The CPU waits until the unit before the last was freed.
    engine.push(engine.transfer(Lane::Gather, Wire::Shard, t.gather,
                                std::max(cast, engine.event(freed)),
                                static_cast<double>(flat.unsharded)));
    if (candidate.offloadParameters)
      engine.free(Holding::Buffers, flat.stored, Pool::Gather);
    engine.free(Holding::Buffers, flat.lowPrecision, Pool::Gather);
  }

  void gather(int u, bool forward, int depth, bool reference = false) {
    if (!engine.hasPending())
      start(u);
    engine.wait(engine.pop(), Cause::Gather);
    // What is prefetched next began its forward next, or ended it before.
    const std::vector<int> &order = forward ? begun : layout.gatherOrder;
    for (int i = static_cast<int>(engine.pending()) + 1; i <= depth; ++i) {
      const int next = forward ? placeBegun[u] + i : position[u] - i;
      if (next < 0 || next >= static_cast<int>(order.size()) ||
          ((!forward || reference) && staysGathered(order[next])))
        return;
      start(order[next]);
    }
  }

  void release(int u) {
    engine.deferFree(Holding::Gathered, flats[u].unsharded, Pool::Gather);
    if (records())
      engine.recorder->mark();
    engine.event(freed) = engine.event(freedBefore);
    engine.event(freedBefore) = engine.clock(Lane::Compute);
  }

  void placeUnits() {
    begun.clear();
    for (bool root : {true, false})
      for (const std::vector<int> &units : layout.opens)
        for (int u : units)
          if ((u == candidate.rootUnit) == root)
            begun.push_back(u);
    position.assign(layout.units.size(), -1);
    placeBegun = position;
    for (size_t i = 0; i < begun.size(); ++i) {
      placeBegun[begun[i]] = static_cast<int>(i);
      position[layout.gatherOrder[i]] = static_cast<int>(i);
    }
  }

  void beginForward() override {
    placeUnits();
    // zero_grad() frees the original parameters' views alone; the flat gradient
    // stays until the root's next forward (use_orig_params, the default:
    // _reset_flat_param_grad_info_if_needed).
    if (microBatch.first && !candidate.offloadParameters)
      freeLastGradients();
    open(0, true);
  }
  void open(int call, bool root, bool reference = false) {
    if (model.calls.empty())
      return;
    for (int u : layout.opens[call])
      if ((u == candidate.rootUnit) == root && !(reference && staysGathered(u)))
        gather(u, true, candidate.forwardPrefetch, reference);
  }

  //===--- A forward of frozen weights ------------------------------------===//

  /// A second model is wrapped as the first (prepare_fsdp of
  /// trl/models/utils.py). Its root and other units that are not resharded
  /// after a forward stay gathered for good, as no backward reshards them
  /// (_post_forward_reshard); they are counted among what is held.
  void beginReference() override {
    placeUnits();
    open(0, true, /*reference=*/true);
  }
  void beforeReference(const Block &block) override {
    for (int c = block.begin; c < block.end; ++c)
      open(c, false, /*reference=*/true);
  }
  void beforeForward(const Block &block) override {
    for (int c = block.begin; c < block.end; ++c)
      open(c, false);
  }
  void afterForward(const Block &block) override {
    for (int c = block.begin; c < block.end; ++c)
      for (int u : layout.closes[c])
        if (candidate.reshardAfterForward[u])
          release(u);
  }

  void beforeBackward(const Block &block) override {
    for (int c = block.end - 1; c >= block.begin; --c)
      for (size_t i = layout.closes[c].size(); i-- > 0;)
        if (const int u = layout.closes[c][i];
            u != candidate.rootUnit || candidate.reshardAfterForward[u])
          gatherAgain(u, /*inner=*/false);
        else if (sharded())
          prefetchOfRoot();
  }

  /// The root stays gathered after a forward. Its hook is on the model's
  /// outputs, the loss among them: before the backward of the loss it makes the
  /// root's shard in the dtype of the compute once more, for nothing, and
  /// gathers the unit whose forward ended before (_pre_backward_hook, _unshard
  /// and _prefetch_handle of torch/distributed/fsdp/_runtime_utils.py).
  void prefetchOfRoot() {
    const Flat &root = flats[candidate.rootUnit];
    engine.alloc(Holding::Buffers, root.lowPrecision, Pool::Gather);
    engine.free(Holding::Buffers, root.lowPrecision, Pool::Gather);
    const std::vector<int> &order = layout.gatherOrder;
    if (candidate.backwardPrefetch == 0 || engine.hasPending())
      return;
    for (size_t i = order.size(); i-- > 0;)
      if (order[i] != candidate.rootUnit && !staysGathered(order[i]))
        return start(order[i]);
  }
  /// A unit inside of another one is gathered where the backward of its own
  /// module begins. The first of a layer's is the last to come, and it is the
  /// one that prefetches the layer below.
  void gatherAgain(int u, bool inner) {
    if (candidate.reshardAfterForward[u] && layout.isInner(u) == inner)
      gather(u, false, candidate.backwardPrefetch);
  }
  void afterBackward(const Block &block) override {
    for (int c = block.end - 1; c >= block.begin; --c) {
      for (size_t i = layout.closes[c].size(); i-- > 0;)
        gatherAgain(layout.closes[c][i], /*inner=*/true);
      for (int u : layout.opens[c])
        if (u != candidate.rootUnit)
          postBackward(u);
      keepHooked(c);
    }
  }

  /// Inputs of checkpointed layers are leaves for the units that shard them.
  bool leafInputs() const {
    return candidate.reentrantCheckpoints && candidate.checkpointsUnits;
  }
  /// A unit without trained parameters reshards by a hook on its inputs, and
  /// the hook holds them (torch/autograd/graph.py, register_multi_grad_hook:
  /// the closure has their gradient accumulators, which have the leaves). Of a
  /// layer that a reentrant checkpoint calls the input is a leaf with a
  /// gradient: both stay until the end of the backward, where FSDP removes the
  /// hooks (_finalize_params).
  bool hooksLeaves(int call) const {
    if (!leafInputs() || layout.variant(call).name != "full")
      return false;
    for (int u : layout.opens[call])
      if (u != candidate.rootUnit && layout.units[u].trainablePadded == 0)
        return true;
    return false;
  }
  void keepHooked(int call) {
    auto keep = [&](int64_t bytes) {
      engine.alloc(Holding::Activations, bytes);
      hooked.push_back(bytes);
    };
    // The gradient of what the call returns was the leaf's of the next one.
    for (int value : model.calls[call].outputs)
      if (const int next = layout.firstGradient[value];
          next >= 0 && hooksLeaves(next))
        keep(model.values[value].gradientBytes);
    if (hooksLeaves(call))
      for (int i : layout.kind(call).inputGradients)
        keep(model.values[model.calls[call].inputs[i]].bytes);
  }
  /// What hooks hold is counted call by call.
  bool foldsBackward() const override { return !leafInputs(); }

  void postBackward(int u) {
    const Flat &flat = flats[u];
    const UnitSizes &unit = layout.units[u];
    // The views of the flat parameter: their gradients become one tensor.
    const bool first = !accumulates();
    if (first) {
      engine.alloc(Holding::Gradients, flat.gradient, flatGradientPool);
      engine.overhead(layout.copyTime(2 * static_cast<double>(flat.gradient)),
                      Cause::Reduce);
      freeGradientsOf(u, unit.gradients);
    }
    release(u);
    if (!reduces() || flat.gradient == 0)
      return;
    const UnitTimes &t = layout.times[u];
    engine.alloc(Holding::Gradients, flat.shardReduced, Pool::Reduce);
    Picoseconds done = engine.transfer(Lane::Reduce, Wire::Shard, t.reduce,
                                       engine.clock(Lane::Compute),
                                       static_cast<double>(flat.gradient));
    if (!inPlace(flat)) {
      engine.deferFree(Holding::Gradients, flat.gradient, flatGradientPool);
      engine.retainUntilEvent(flatGradientPool, flat.gradient);
    }
    if (layout.replicas.ranks > 1)
      done = engine.transfer(Lane::Reduce, Wire::Replicate, t.allReduce, done,
                             static_cast<double>(flat.shardReduced));
    if (flat.shardGradient) {
      engine.alloc(Holding::Gradients, flat.shardGradient, Pool::Reduce);
      done = engine.run(Lane::Reduce, t.castGradient, done);
      engine.free(Holding::Gradients, flat.shardReduced, Pool::Reduce);
    }
    if (candidate.offloadParameters) {
      done = engine.run(Lane::Reduce, t.hostOut, done);
      freeKept(flat);
    } else if (candidate.reduceEachMicroBatch && !microBatch.first) {
      done = engine.run(Lane::Reduce, t.add, done);
      freeKept(flat);
    }
    engine.event(reduced) = std::max(engine.event(reduced), done);
  }

  void endBackward() override {
    if (candidate.rootUnit >= 0)
      postBackward(candidate.rootUnit);
    engine.wait(engine.event(reduced), Cause::Reduce);
    for (int64_t bytes : hooked)
      engine.free(Holding::Activations, bytes);
    hooked.clear();
  }

  void update() override { runOptimizer(candidate.offloadParameters); }

  static constexpr int freedBefore = 2;
  std::vector<Flat> flats;
  std::vector<int> position;   // by unit, in gatherOrder
  std::vector<int> begun;      // units by the beginning of their forward
  std::vector<int> placeBegun; // by unit, in `begun`
  std::vector<int64_t> hooked; // tensors that hooks keep, in bytes
};

} // namespace

std::unique_ptr<StepRun> makeFsdp1Run(const StepLayout &layout,
                                      Engine &engine) {
  return std::make_unique<Fsdp1Run>(layout, engine);
}

} // namespace accel
