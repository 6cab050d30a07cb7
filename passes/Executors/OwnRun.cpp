//===- OwnRun.cpp - accel-run ---------------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The schedule that lower-to-schedule, hoist-gathers and sink-awaits make, in
// the same order of allocations, so that its peak is runtime/plan/Timeline's.
//
//===----------------------------------------------------------------------===//
#include "passes/Executors/StepRun.h"

#include <deque>

namespace accel {
namespace {

class OwnRun : public StepRun {
public:
  using StepRun::StepRun;

protected:
  /// Flat buffers (Export/BuildSkeleton.cpp).
  struct Flat {
    int64_t padded = 0, shard = 0; // elements
    int64_t gathered = 0, gradient = 0, receive = 0, shardGradient = 0;
    bool trainable = false;
    Picoseconds update = 0;
  };

  bool sharded() const { return candidate.shardRanks > 1; }
  bool replicated() const { return candidate.replicateRanks > 1; }
  bool readsShard() const {
    return !sharded() && candidate.recipe.compute == candidate.recipe.storage;
  }
  bool writesShard() const {
    return !sharded() && candidate.recipe.reduce == candidate.recipe.storage;
  }
  bool receives() const { return sharded() && model.device == "cpu"; }
  bool updatesInline() const { return !candidate.clipGradients; }

  int reachForward() const override { return candidate.forwardPrefetch + 1; }
  int reachBackward() const override { return candidate.backwardPrefetch + 1; }
  /// Reductions in two parts are held back in a queue that grows.
  bool foldsBackward() const override { return !replicated(); }
  /// Gradients are written into flat buffers.
  bool gradientsStay() const override { return true; }

  void allocatePersistent() override {
    const DtypeRecipe &r = candidate.recipe;
    const int64_t smallest =
        std::min({plan::itemSize(r.storage), plan::itemSize(r.compute),
                  plan::itemSize(r.reduce)});
    const int64_t align = plan::alignmentBytes / smallest;
    flats.assign(layout.units.size(), Flat());
    for (size_t p = 0; p < model.parameters.size(); ++p) {
      Flat &flat = flats[candidate.unitOf[p]];
      flat.padded += (model.parameters[p].numel() + align - 1) / align * align;
      flat.trainable |= model.parameters[p].trainable;
    }
    for (Flat &flat : flats) {
      const int64_t chunk = 64 * candidate.shardRanks;
      flat.padded = (flat.padded + chunk - 1) / chunk * chunk;
      flat.shard = flat.padded / candidate.shardRanks;
      flat.gathered = bytes(flat.padded, r.compute);
      flat.gradient = bytes(flat.padded, r.reduce);
      flat.receive = bytes(flat.padded - flat.shard, r.reduce);
      flat.shardGradient = bytes(flat.shard, r.storage);
      engine.alloc(Holding::Parameters, bytes(flat.shard, r.storage));
      if (!flat.trainable)
        continue;
      int64_t states = 0;
      for (const plan::StateRule &state : candidate.update->states)
        states +=
            bytes(flat.shard, plan::OptimizerRule::dtypeOf(state, r.state));
      engine.alloc(Holding::Optimizer, states);
      const auto parameters = static_cast<double>(bytes(flat.shard, r.storage));
      const plan::UpdateCost &cost = candidate.update->ownCost(model.device);
      flat.update =
          layout.copyTime((cost.parameters + cost.gradients) * parameters +
                          cost.states * static_cast<double>(states));
    }
  }
  int64_t bytes(int64_t numel, plan::DType dtype) const {
    return plan::alignedBytes(numel * plan::itemSize(dtype));
  }

  //===--------------------------------------------------------------------===//
  // Gathering
  //===--------------------------------------------------------------------===//

  bool readInBackward(int call, int u) const {
    const StepCall &c = model.calls[call];
    const std::vector<bool> &reads = layout.variant(call).backwardReads;
    for (size_t i = 0; i < c.parameters.size(); ++i)
      if (candidate.unitOf[c.parameters[i]] == u && i < reads.size() &&
          reads[i])
        return true;
    return false;
  }

  std::vector<int> unitsOf(int call, bool backward) const {
    std::vector<int> result;
    for (int p : model.calls[call].parameters)
      if (!backward || readInBackward(call, candidate.unitOf[p]))
        result.push_back(candidate.unitOf[p]);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  /// The gathers of a micro-batch in order: those of the forward, then those
  /// of units that the backward needs and the forward gave up.
  void beginForward() override {
    engine.alloc(Holding::Buffers, plan::alignmentBytes); // loss_seed
    const size_t count = layout.units.size();
    forwardIndex.assign(count, -1);
    backwardIndex.assign(count, -1);
    lastBackward.assign(count, -1);
    contribution.assign(count, -1);
    sequence.clear();
    const int calls = static_cast<int>(model.calls.size());
    for (int c = 0; c < calls; ++c)
      for (int u : unitsOf(c, false)) {
        if (contribution[u] < 0 && layout.kind(c).parameterGradientBytes > 0)
          contribution[u] = c;
        if (forwardIndex[u] >= 0)
          continue;
        forwardIndex[u] = static_cast<int>(sequence.size());
        sequence.push_back(u);
      }
    forwardCount = static_cast<int>(sequence.size());
    for (int c = calls - 1; c >= 0; --c)
      for (int u : unitsOf(c, true)) {
        lastBackward[u] = c;
        if (!candidate.reshardAfterForward[u] || backwardIndex[u] >= 0)
          continue;
        backwardIndex[u] = static_cast<int>(sequence.size());
        sequence.push_back(u);
      }
    if (readsShard())
      sequence.clear();
  }

  void start(int index, int call) {
    const int u = sequence[index];
    engine.alloc(Holding::Gathered, flats[u].gathered);
    // Given up and wanted again with no call in between: it stays.
    if (index >= forwardCount && layout.units[u].lastCall == call - 1 &&
        !inBackward && candidate.backwardPrefetch > 0)
      return engine.push(engine.clock(Lane::Compute));
    const UnitTimes &t = layout.times[u];
    const Picoseconds filled =
        engine.run(Lane::CopyIn, t.copyIn / 2, engine.clock(Lane::Compute));
    engine.push(engine.transfer(Lane::Gather, Wire::Shard, t.gather, filled));
  }

  void need(int index, int call) {
    if (engine.pending() == 0)
      start(index, call);
    engine.wait(engine.pop(), Cause::Gather);
    current = index;
    for (;;) {
      const int next = index + static_cast<int>(engine.pending()) + 1;
      if (next >= static_cast<int>(sequence.size()))
        return;
      const bool back = next >= forwardCount;
      const int depth =
          back ? candidate.backwardPrefetch : candidate.forwardPrefetch;
      // A unit that the forward still uses is not gathered yet.
      if (next - depth > index ||
          (back && !inBackward &&
           layout.units[sequence[next]].lastCall >= call))
        return;
      start(next, call);
    }
  }

  void beforeForward(const Block &block) override {
    if (sequence.empty())
      return;
    for (int c = block.begin; c < block.end; ++c)
      for (int u : unitsOf(c, false))
        if (layout.units[u].firstCall == c)
          need(forwardIndex[u], c);
  }

  void afterForward(const Block &block) override {
    if (sequence.empty())
      return;
    for (int c = block.begin; c < block.end; ++c)
      for (int u : layout.closes[c])
        if (candidate.reshardAfterForward[u])
          release(u);
  }

  void release(int u) {
    const int again = backwardIndex[u];
    const int started = current + static_cast<int>(engine.pending());
    if (again >= 0 && candidate.backwardPrefetch > 0 &&
        again - candidate.backwardPrefetch <= current && started == again - 1)
      return engine.push(engine.clock(Lane::Compute));
    engine.free(Holding::Gathered, flats[u].gathered);
  }

  void endForward() override {
    inBackward = true;
    if (sequence.empty())
      return;
    for (size_t u = 0; u < flats.size(); ++u)
      if (!candidate.reshardAfterForward[u] && lastBackward[u] < 0 &&
          forwardIndex[u] >= 0)
        engine.free(Holding::Gathered, flats[u].gathered);
  }

  //===--------------------------------------------------------------------===//
  // Backward
  //===--------------------------------------------------------------------===//

  void beforeBackward(const Block &block) override {
    for (int c = block.end - 1; c >= block.begin; --c) {
      for (int u : unitsOf(c, true)) {
        if (sequence.empty() || backwardIndex[u] < 0 || !firstRead(u, c))
          continue;
        need(backwardIndex[u], c);
      }
      for (int u : unitsOf(c, false))
        if (layout.units[u].lastCall == c && contribution[u] >= 0)
          allocateGradient(u);
    }
  }
  /// The backward reads `u` at this call first.
  bool firstRead(int u, int call) const {
    for (int c = layout.units[u].lastCall; c > call; --c)
      if (readInBackward(c, u))
        return false;
    return true;
  }

  bool hasGradientsFromBefore() const {
    return !microBatch.first &&
           (!candidate.reduceEachMicroBatch || writesShard());
  }
  void allocateGradient(int u) {
    if (!hasGradientsFromBefore())
      engine.alloc(Holding::Gradients,
                   writesShard() ? flats[u].shardGradient : flats[u].gradient);
  }

  void afterBackward(const Block &block) override {
    for (int c = block.end - 1; c >= block.begin; --c) {
      if (!sequence.empty())
        for (int u : unitsOf(c, true))
          if (lastBackward[u] == c)
            engine.free(Holding::Gathered, flats[u].gathered);
      for (int u : unitsOf(c, false))
        if (contribution[u] == c)
          reduce(u);
    }
  }

  struct Held {
    int unit;
    bool allReduce; // waits for the all-reduce, else the reduce-scatter
    Picoseconds until;
  };

  void reduce(int u) {
    const bool keep = !candidate.reduceEachMicroBatch;
    const Flat &flat = flats[u];
    if (keep && !microBatch.last)
      return;
    const Picoseconds now = engine.clock(Lane::Compute);
    if (writesShard()) {
      if (!microBatch.last)
        return;
      if (replicated()) {
        flushEach();
        allReduce(u, now);
      } else if (updatesInline()) {
        updateUnit(u);
      }
      return;
    }
    const bool into = microBatch.first || keep;
    if (receives()) {
      flushEach();
      engine.alloc(Holding::Buffers, flat.receive);
    }
    if (into)
      engine.alloc(Holding::Gradients, flat.shardGradient);
    if (!receives())
      flushEach();
    held.push_back(
        {u, false,
         engine.transfer(Lane::Reduce, Wire::Shard, layout.times[u].reduce,
                         engine.clock(Lane::Compute))});
  }

  void allReduce(int u, Picoseconds after) {
    held.push_back({u, true,
                    engine.transfer(Lane::AllReduce, Wire::Replicate,
                                    layout.times[u].allReduce, after)});
  }

  /// As sink-awaits: once each.
  void flushEach() {
    for (size_t n = held.size(); n > 0; --n)
      flushOne();
  }

  void flushOne() {
    if (held.empty())
      return;
    const Held tail = held.front();
    held.pop_front();
    const Flat &flat = flats[tail.unit];
    engine.wait(tail.until, tail.allReduce ? Cause::AllReduce : Cause::Reduce);
    if (!tail.allReduce) {
      if (receives())
        engine.free(Holding::Buffers, flat.receive);
      engine.compute(layout.times[tail.unit].castGradient);
      engine.free(Holding::Gradients, flat.gradient);
      if (replicated() && microBatch.last)
        return allReduce(tail.unit, engine.clock(Lane::Compute));
    }
    if (microBatch.last && updatesInline())
      updateUnit(tail.unit);
  }

  void updateUnit(int u) {
    engine.compute(flats[u].update);
    engine.free(Holding::Gradients, flats[u].shardGradient);
  }

  void endBackward() override {
    while (!held.empty())
      flushOne();
    engine.free(Holding::Buffers, plan::alignmentBytes);
    inBackward = false;
  }

  void update() override {
    if (updatesInline())
      return;
    double gradients = 0;
    for (const Flat &flat : flats)
      gradients += static_cast<double>(flat.shardGradient);
    engine.compute(layout.copyTime(3 * gradients));
    for (size_t u = flats.size(); u-- > 0;)
      if (contribution[u] >= 0)
        updateUnit(static_cast<int>(u));
  }

  std::vector<Flat> flats;
  std::vector<int> sequence; // units, as they are gathered
  int forwardCount = 0, current = 0;
  bool inBackward = false;
  /// By unit: positions in `sequence`, the call whose backward reads it last,
  /// and the call whose backward adds the last gradient; or -1.
  std::vector<int> forwardIndex, backwardIndex, lastBackward, contribution;
  std::deque<Held> held;
};

} // namespace

std::unique_ptr<StepRun> makeOwnRun(const StepLayout &layout, Engine &engine) {
  return std::make_unique<OwnRun>(layout, engine);
}

} // namespace accel
