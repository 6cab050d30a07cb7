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
#include "passes/Executors/StepRun.h"

namespace accel {
namespace {

class Fsdp1Run : public StepRun {
public:
  using StepRun::StepRun;

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
    const DtypeRecipe &recipe = candidate.recipe;
    flats.resize(layout.units.size());
    const std::vector<Frozen> frozen = frozenParts();
    for (size_t u = 0; u < flats.size(); ++u) {
      Flat &flat = flats[u];
      const int64_t ranks = layout.shards.ranks;
      const int64_t shard = (layout.units[u].numel + ranks - 1) / ranks;
      auto bytes = [&](int64_t numel, plan::DType dtype) {
        return layout.round(numel * plan::itemSize(dtype));
      };
      const bool trainable = layout.units[u].trainablePadded > 0;
      flat.stored = bytes(shard, trainable ? recipe.storage : frozen[u].dtype);
      // NO_SHARD computes with the flat parameter itself, or with a copy in
      // low precision.
      const bool copied = recipe.compute != recipe.storage;
      if (sharded() || copied)
        flat.unsharded = bytes(shard * ranks, recipe.compute);
      if (sharded() && copied)
        flat.lowPrecision = bytes(shard, recipe.compute);
      if (trainable) {
        flat.gradient = bytes(shard * ranks, recipe.compute);
        // Of NO_SHARD the gradient itself is reduced.
        if (sharded() || recipe.reduce != recipe.compute)
          flat.shardReduced = bytes(shard, recipe.reduce);
        if (recipe.reduce != recipe.gradient)
          flat.shardGradient = bytes(shard, recipe.gradient);
        const int64_t trained =
            frozen[u].trained < 0 ? shard : frozen[u].trained;
        for (const plan::StateRule &state : candidate.update->states)
          flat.states +=
              bytes(plan::OptimizerRule::elements(state, {trained}, trained),
                    plan::OptimizerRule::dtypeOf(state, recipe.state));
        flat.kept = flat.shardGradient  ? flat.shardGradient
                    : flat.shardReduced ? flat.shardReduced
                                        : flat.gradient;
      }
      if (candidate.offloadParameters) {
        hostBytes += flat.stored + flat.states + flat.kept;
        continue;
      }
      engine.alloc(Holding::Parameters, flat.stored);
      engine.alloc(Holding::Optimizer, flat.states);
      const Unrecorded firstStep(engine); // has none yet
      engine.alloc(Holding::Gradients, flat.kept, keptPool(flat));
    }
  }

  /// NO_SHARD in one dtype reduces the gradient that autograd left.
  static bool inPlace(const Flat &flat) {
    return !flat.shardReduced && !flat.shardGradient;
  }
  static Pool keptPool(const Flat &flat) {
    return inPlace(flat) ? Pool::Compute : Pool::Reduce;
  }
  void freeKept(const Flat &flat) {
    engine.free(Holding::Gradients, flat.kept, keptPool(flat));
  }

  void freeLastGradients() {
    std::optional<Unrecorded> firstStep;
    if (!warm)
      firstStep.emplace(engine);
    for (const Flat &flat : flats)
      freeKept(flat);
  }

  /// What freezing changes in a flat parameter.
  struct Frozen {
    plan::DType dtype = plan::DType::F32; // of one that needs no gradient
    int64_t trained = -1; // elements with states on a rank; -1: all
  };

  /// With original parameters, the optimizer has states for what is trained:
  /// here the most that the first or the last rank holds of it.
  std::vector<Frozen> frozenParts() const {
    struct Flattened {
      int64_t at = 0, first = 0, last = 0;
    };
    std::vector<Flattened> flattened(layout.units.size());
    std::vector<Frozen> result(layout.units.size());
    for (size_t p = 0; p < model.parameters.size(); ++p) {
      const int u = candidate.unitOf[p];
      if (layout.units[u].trainablePadded == layout.units[u].paddedNumel)
        continue;
      const int64_t ranks = layout.shards.ranks;
      const int64_t shard = (layout.units[u].numel + ranks - 1) / ranks;
      Flattened &flat = flattened[u];
      const int64_t end = flat.at + model.parameters[p].numel();
      result[u].dtype = model.parameters[p].dtype;
      if (model.parameters[p].trainable) {
        flat.first += std::max<int64_t>(0, std::min(end, shard) - flat.at);
        flat.last +=
            std::max<int64_t>(0, end - std::max(flat.at, shard * (ranks - 1)));
      }
      flat.at = end;
      result[u].trained = std::max(flat.first, flat.last);
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
    engine.lingers(Pool::Gather, flat.unsharded);
    // The CPU waits until the unit before the last was freed.
    engine.push(engine.transfer(Lane::Gather, Wire::Shard, t.gather,
                                std::max(cast, engine.event(freed))));
    if (candidate.offloadParameters)
      engine.free(Holding::Buffers, flat.stored, Pool::Gather);
    engine.free(Holding::Buffers, flat.lowPrecision, Pool::Gather);
  }

  void gather(int u, bool forward, int depth) {
    if (!engine.hasPending())
      start(u);
    engine.wait(engine.pop(), Cause::Gather);
    const std::vector<int> &order = layout.gatherOrder;
    for (int i = static_cast<int>(engine.pending()) + 1; i <= depth; ++i) {
      const int next = forward ? position[u] + i : position[u] - i;
      if (next < 0 || next >= static_cast<int>(order.size()) ||
          (!forward && !candidate.reshardAfterForward[order[next]]))
        return;
      start(order[next]);
    }
  }

  void release(int u) {
    engine.park(Holding::Gathered, flats[u].unsharded, Pool::Gather);
    if (records())
      engine.recorder->mark();
    engine.event(freed) = engine.event(freedBefore);
    engine.event(freedBefore) = engine.clock(Lane::Compute);
  }

  void beginForward() override {
    position.assign(layout.units.size(), -1);
    for (size_t i = 0; i < layout.gatherOrder.size(); ++i)
      position[layout.gatherOrder[i]] = static_cast<int>(i);
    // zero_grad() frees the original parameters' views alone; the flat gradient
    // stays until the root's next forward (use_orig_params, the default:
    // _reset_flat_param_grad_info_if_needed).
    if (microBatch.first && !candidate.offloadParameters)
      freeLastGradients();
    open(0, true);
  }
  void open(int call, bool root) {
    if (model.calls.empty())
      return;
    for (int u : layout.opens[call])
      if ((u == candidate.rootUnit) == root)
        gather(u, true, candidate.forwardPrefetch);
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
      for (int u : layout.closes[c])
        if (candidate.reshardAfterForward[u])
          gather(u, false, candidate.backwardPrefetch);
  }
  void afterBackward(const Block &block) override {
    for (int c = block.end - 1; c >= block.begin; --c)
      for (int u : layout.opens[c])
        if (u != candidate.rootUnit)
          postBackward(u);
  }

  void postBackward(int u) {
    const Flat &flat = flats[u];
    const UnitSizes &unit = layout.units[u];
    // The views of the flat parameter: their gradients become one tensor.
    const bool first = !accumulates();
    if (first) {
      engine.alloc(Holding::Gradients, flat.gradient);
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
                                       engine.clock(Lane::Compute));
    if (!inPlace(flat)) {
      engine.park(Holding::Gradients, flat.gradient);
      engine.lingers(Pool::Compute, flat.gradient);
    }
    if (layout.replicas.ranks > 1)
      done = engine.transfer(Lane::Reduce, Wire::Replicate, t.allReduce, done);
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
  }

  void update() override { runOptimizer(candidate.offloadParameters); }

  static constexpr int freedBefore = 2;
  std::vector<Flat> flats;
  std::vector<int> position;
};

} // namespace

std::unique_ptr<StepRun> makeFsdp1Run(const StepLayout &layout,
                                      Engine &engine) {
  return std::make_unique<Fsdp1Run>(layout, engine);
}

} // namespace accel
