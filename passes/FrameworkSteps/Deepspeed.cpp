//===- Deepspeed.cpp - ZeRO stages 0 to 3, with offload -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// DeepSpeed's optimizers with the defaults of the configuration that
// Accelerate builds (runtime/zero/stage_1_and_2.py, stage3.py,
// partitioned_param_coordinator.py, zero/config.py): a 16-bit model with fp32
// copies in the optimizer's partitions; gradients leave through buckets; stage
// 3 gathers each module's parameters when it runs, holds some ahead and never
// releases small parameters (ZeroBuffers). MiCS is a mesh of copies; what
// ZeRO++ adds is in DeepspeedPlus.h.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/DeepspeedPlus.h"
#include "passes/FrameworkSteps/StepRun.h"

namespace accel {
namespace {

class DeepspeedRun : public StepRun {
public:
  using StepRun::StepRun;

protected:
  static constexpr int reduced = 0;

  int stage() const { return candidate.zeroStage; }
  int64_t ranks() const { return layout.shards.ranks; }
  bool foldsBackward() const override { return stage() == 3; }

  struct Sizes {
    int64_t shard = 0;     // parameters, compute dtype, of this rank
    int64_t full = 0;      // compute dtype
    int64_t persists = 0;  // of `full`: small parameters, stage 3
    int64_t gradients = 0; // trainable, compute dtype
  };

  void allocatePersistent() override {
    const StepDtypes &dtypes = candidate.dtypes;
    const int64_t item = plan::itemSize(dtypes.compute);
    sizes.assign(layout.units.size(), Sizes());
    plus = DeepspeedPlus(layout, candidate);
    hasSecondary = false;
    largestGroup = 0;
    int64_t trainable = 0, group = 0;
    for (size_t p = 0; p < model.parameters.size(); ++p) {
      const StepParameter &parameter = model.parameters[p];
      Sizes &s = sizes[candidate.unitOf[p]];
      const int64_t numel = parameter.storedNumel();
      // Only floating-point tensors are converted.
      const int64_t held =
          parameter.quantized() ? plan::itemSize(parameter.dtype) : item;
      s.full += layout.round(numel * held);
      s.shard += (numel + ranks() - 1) / ranks() * held;
      if (numel <= candidate.zero.persistenceThreshold)
        s.persists += layout.round(numel * held);
      else
        plus.addGathered(candidate.unitOf[p], parameter, held);
      if (parameter.trainable) {
        s.gradients += layout.round(numel * item);
        trainable += numel;
        largest = std::max(largest, numel);
        plus.addGradient(candidate.unitOf[p], parameter);
        // A group is closed by the parameter that fills it.
        group += (numel + ranks() - 1) / ranks();
        largestGroup = std::max(largestGroup, group);
        if (group >= candidate.zero.subGroup)
          group = 0;
      }
    }
    for (const Sizes &s : sizes)
      if (stage() == 3)
        engine.alloc(Holding::Parameters,
                     s.persists + (candidate.offloadParameters ? 0 : s.shard));
      else
        engine.alloc(Holding::Parameters, s.full);
    if (gathers())
      holdSecondary(plus.frozenSecondary());
    partition = stage() == 0 ? trainable : (trainable + ranks() - 1) / ranks();
    int64_t states = 0;
    stateBytes = 0;
    for (const plan::StateRule &state : candidate.update->states) {
      const int64_t bytes =
          plan::OptimizerRule::elements(state, {partition}, partition) *
          plan::itemSize(plan::OptimizerRule::dtypeOf(state, dtypes.state));
      states += layout.round(bytes);
      stateBytes += bytes;
    }
    const int64_t master =
        candidate.holdsMasterCopy() ? layout.round(partition * 4) : 0;
    if (candidate.offloadOptimizer || candidate.offloadParameters) {
      hostBytes += states + master + partition * 4; // and its gradients
      for (const Sizes &s : sizes)
        if (candidate.offloadParameters)
          hostBytes += s.shard;
    } else {
      // The fp32 copy of what is updated at a time is that of a copy
      // (clone().float()), whose block serves again.
      if (candidate.holdsMasterCopy())
        engine.transient(Holding::Optimizer,
                         layout.round(updatedAtOnce() * item));
      engine.alloc(Holding::Optimizer, states + master);
      // The states are made by an update with gradients of zeros
      // (initialize_optimizer_states), whose blocks serve again.
      if (candidate.holdsMasterCopy())
        engine.transient(Holding::Gradients, layout.round(updatedAtOnce() * 4));
    }
    // Contiguous buffers that gradients are copied to. Their size is the
    // option's, however small the model (torch.empty(reduce_bucket_size)).
    // Stages 1 and 2 make them for each backward.
    buckets = stage() == 0 ? 0 : stage() < 3 && candidate.zero.overlap ? 2 : 1;
    bucketBytes = layout.round(candidate.zero.reduceBucket * item);
    if (stage() == 3)
      allocateBuckets();
    // Stage 0 reduces flat copies of at most that size.
    bucket = std::min(candidate.zero.reduceBucket, trainable) * item;
    // The partition of the gradients lives on in stages 2 and 3.
    if (stage() == 3 && !candidate.offloadOptimizer &&
        !candidate.offloadParameters)
      engine.alloc(Holding::Gradients, layout.round(partition * item));
  }

  void allocateBuckets() {
    for (int i = 0; i < buckets; ++i)
      engine.alloc(Holding::Buffers, bucketBytes);
  }

  bool gathers() const { return stage() == 3 && ranks() > 1; }
  int reachForward() const override { return gathers() ? 2 : 0; }
  int reachBackward() const override { return gathers() ? 2 : 0; }

  int64_t gatheredBytes(int u) const {
    return sizes[u].full - sizes[u].persists;
  }

  /// Until the first trained forward of a step has left second copies.
  bool gathersFromAll() const { return !hasSecondary; }
  void holdSecondary(int64_t bytes) {
    if (candidate.offloadParameters)
      hostBytes += bytes;
    else if (bytes)
      engine.alloc(Holding::Parameters, bytes);
  }

  void start(int u) {
    const UnitTimes &t = layout.times[u];
    Picoseconds after = 0;
    if (candidate.offloadParameters)
      after = engine.run(Lane::CopyIn, t.hostIn, engine.clock(Lane::Compute));
    engine.alloc(Holding::Gathered,
                 plus.quantizesWeights() ? plus.wireBytes(u) : gatheredBytes(u),
                 Pool::Gather);
    const double bytes =
        plus.quantizesWeights()
            ? static_cast<double>(plus.wireBytes(u))
            : static_cast<double>(layout.units[u].gatherOutput);
    engine.push(engine.transfer(
        Lane::Gather, Wire::Shard,
        plus.changesGather() ? plus.gatherTime(u, gathersFromAll(), bytes)
                             : t.gather,
        after, bytes));
  }

  void gather(int u, bool forward) {
    if (!gathers())
      return;
    if (!engine.hasPending())
      start(u);
    engine.wait(engine.pop(), Cause::Gather);
    if (plus.quantizesWeights()) {
      engine.alloc(Holding::Gathered, gatheredBytes(u), Pool::Gather);
      engine.free(Holding::Gathered, plus.wireBytes(u), Pool::Gather);
      engine.overhead(layout.copyTime(static_cast<double>(plus.wireBytes(u)) +
                                      static_cast<double>(gatheredBytes(u))),
                      Cause::Gather);
    }
    // The next modules, up to the prefetch bucket: a whole unit where it fits,
    // else its first parameters, which start its gather.
    const int next = position[u] + (forward ? 1 : -1);
    if (next >= 0 && next < static_cast<int>(layout.gatherOrder.size()) &&
        candidate.zero.prefetchBucket > 0)
      start(layout.gatherOrder[next]);
  }
  void release(int u) {
    if (gathers())
      engine.free(Holding::Gathered, gatheredBytes(u), Pool::Gather);
  }

  void beginForward() override {
    position.assign(layout.units.size(), -1);
    for (size_t i = 0; i < layout.gatherOrder.size(); ++i)
      position[layout.gatherOrder[i]] = static_cast<int>(i);
    if (candidate.rootUnit >= 0)
      gather(candidate.rootUnit, true);
  }
  /// A second model is partitioned as the first in stage 3, else whole
  /// (prepare_deepspeed of trl/models/utils.py).
  void beginReference() override { beginForward(); }
  void beforeForward(const Block &block) override {
    for (int c = block.begin; c < block.end; ++c)
      for (int u : layout.opens[c])
        if (u != candidate.rootUnit)
          gather(u, true);
  }
  void afterForward(const Block &block) override {
    for (int c = block.begin; c < block.end; ++c)
      for (int u : layout.closes[c]) {
        release(u);
        if (gathers() && gathersFromAll() && trainedForward())
          holdSecondary(plus.secondary(u));
      }
  }
  bool trainedForward() const {
    return running == PreferenceStep::Reference::None && plus.hasSecondary();
  }
  void endForward() override { hasSecondary |= trainedForward(); }
  void beforeBackward(const Block &block) override {
    for (int c = block.end - 1; c >= block.begin; --c)
      for (size_t i = layout.closes[c].size(); i-- > 0;)
        gather(layout.closes[c][i], false);
  }

  /// ZeROOptimizer.backward makes the buffers of stages 1 and 2, and
  /// independent_gradient_partition_epilogue drops them.
  void beginBackward() override {
    if (stage() < 3)
      allocateBuckets();
    copied = 0;
    copiedPartition = false;
  }

  /// Stage 1 without the last micro-batch, and stage 0, keep them.
  bool gradientsStay() const override {
    return stage() <= 1 && !microBatch.first;
  }

  void afterBackward(const Block &block) override {
    for (int c = block.end - 1; c >= block.begin; --c)
      for (int u : layout.opens[c]) {
        release(u);
        if (stage() >= 2 && !gradientsAtEnd())
          reduce(u);
      }
  }

  /// The backward of one graph hands out all gradients when it ends; hooks of
  /// stage 3 cut the graph.
  bool gradientsAtEnd() const {
    return candidate.compiledWhole && stage() == 2;
  }

  /// Gradients move into the bucket; a full bucket is reduced to its owners.
  void reduce(int u) {
    if (sizes[u].gradients == 0)
      return;
    const auto bytes = static_cast<double>(sizes[u].gradients);
    engine.overhead(layout.copyTime(2 * bytes), Cause::Reduce);
    freeGradientsOf(u, layout.units[u].gradients);
    Picoseconds done = engine.transfer(
        Lane::Reduce, Wire::Shard,
        toPicoseconds(collectiveSeconds(
            layout.target, Collective::ReduceScatter, layout.shards,
            bytes - plus.quantizedGradients(u))),
        engine.clock(Lane::Compute), bytes - plus.quantizedGradients(u));
    if (plus.quantizedGradients(u) > 0) {
      engine.transient(Holding::Buffers, plus.quantizedBuffers(u),
                       Pool::Reduce);
      engine.overhead(layout.copyTime(1.5 * plus.quantizedGradients(u)),
                      Cause::Reduce);
      done = engine.transfer(Lane::Reduce, Wire::Shard, plus.exchangeTime(u),
                             done, plus.quantizedGradients(u) / 4);
    }
    const auto own = bytes / static_cast<double>(ranks());
    // MiCS: the copies of this shard are averaged.
    if (stage() == 3 && layout.replicas.ranks > 1 && microBatch.last)
      done = engine.transfer(
          Lane::Reduce, Wire::Replicate,
          toPicoseconds(collectiveSeconds(layout.target, Collective::AllReduce,
                                          layout.replicas, own)),
          done, own);
    if (candidate.offloadOptimizer || candidate.offloadParameters)
      done = engine.run(Lane::HostOut, layout.hostTime(own), done);
    else if (keepsPartition()) {
      copied += sizes[u].gradients / plan::itemSize(candidate.dtypes.compute);
      if (copied > candidate.zero.reduceBucket)
        holdPartition();
    }
    engine.event(reduced) = std::max(engine.event(reduced), done);
  }

  /// The first bucket that is reduced makes room for all gradients that this
  /// rank keeps (copy_grads_in_partition).
  void holdPartition() {
    if (copiedPartition)
      return;
    copiedPartition = true;
    ++partitions;
    engine.alloc(Holding::Gradients, partitionBytes(), Pool::Reduce);
  }
  /// The gradients that a rank keeps in stage 2.
  int64_t partitionBytes() const {
    return layout.round(partition * plan::itemSize(candidate.dtypes.compute));
  }

  void endBackward() override {
    if (gradientsAtEnd())
      for (size_t c = layout.opens.size(); c-- > 0;)
        for (int u : layout.opens[c])
          reduce(u);
    if (keepsPartition()) {
      holdPartition();
      // Those of later micro-batches are added to the first one's.
      if (!microBatch.first)
        freePartition();
    }
    for (int i = 0; stage() < 3 && i < buckets; ++i)
      engine.free(Holding::Buffers, bucketBytes);
    if (stage() <= 1 && microBatch.last && ranks() > 1) {
      double bytes = 0;
      for (const Sizes &s : sizes)
        bytes += static_cast<double>(s.gradients);
      const Collective kind =
          stage() == 0 ? Collective::AllReduce : Collective::ReduceScatter;
      if (stage() == 0)
        engine.transient(Holding::Buffers, layout.round(bucket));
      engine.event(reduced) =
          engine.transfer(Lane::Reduce, Wire::Shard,
                          toPicoseconds(collectiveSeconds(
                              layout.target, kind, layout.shards, bytes)),
                          engine.clock(Lane::Compute), bytes);
    }
    engine.wait(engine.event(reduced), Cause::Reduce);
  }

  void update() override {
    const StepDtypes &dtypes = candidate.dtypes;
    const int64_t item = plan::itemSize(dtypes.compute);
    const bool onHost =
        candidate.offloadOptimizer || candidate.offloadParameters;
    // What is updated is flattened; stages 1 and 2 free it before the update.
    const bool flattens =
        candidate.holdsMasterCopy() && !onHost && stage() >= 1;
    const bool frees = flattens && stage() <= 2;
    const auto own = static_cast<double>(partition);
    const int64_t gradients =
        candidate.holdsMasterCopy() ? layout.round(updatedAtOnce() * 4) : 0;
    if (onHost) {
      const double rate = layout.target.host.updateBytesPerSecond;
      if (rate > 0)
        engine.overhead(
            toPicoseconds((12 * own + 2 * static_cast<double>(stateBytes)) /
                          rate),
            Cause::HostUpdate);
      engine.overhead(layout.hostTime(own * static_cast<double>(item)),
                      Cause::HostIn);
    } else {
      checkOverflow();
      // The norm is that of copies in fp64, a gradient at a time
      // (get_grad_norm_direct).
      if (stage() >= 1)
        engine.transient(Holding::Gradients, layout.round(largestPiece() * 8));
      // The gradients of what is updated at a time are flattened, then
      // converted to fp32, which copies what has 16 bits.
      const int64_t flat =
          flattens ? layout.round(updatedAtOnce() * item) : int64_t{0};
      const bool converts = dtypes.compute != plan::DType::F32;
      engine.alloc(Holding::Gradients, flat);
      if (converts) {
        engine.alloc(Holding::Gradients, gradients);
        engine.free(Holding::Gradients, flat);
      }
      if (frees)
        freeGradients();
      if (candidate.clipGradients)
        engine.compute(layout.copyTime(12 * own));
      if (const int64_t bytes = temporaryBytes())
        engine.transient(Holding::Optimizer, bytes);
      engine.compute(
          layout.updateTime(4 * own, 4 * own, static_cast<double>(stateBytes)));
      engine.compute(layout.copyTime((4.0 + static_cast<double>(item)) * own));
      engine.free(Holding::Gradients, gradients);
    }
    if (!frees)
      freeGradients();
    dropSecondary();
    if (ranks() > 1 && (stage() == 1 || stage() == 2)) {
      double bytes = 0;
      for (const Sizes &s : sizes)
        bytes += static_cast<double>(s.full);
      engine.wait(engine.transfer(Lane::Gather, Wire::Shard,
                                  toPicoseconds(collectiveSeconds(
                                      layout.target, Collective::AllGather,
                                      layout.shards, bytes)),
                                  engine.clock(Lane::Compute), bytes),
                  Cause::Gather);
    }
  }

  /// The update made second copies stale (invalidate_secondary_tensor).
  void dropSecondary() {
    if (!hasSecondary)
      return;
    for (size_t u = 0; u < sizes.size(); ++u)
      if (!candidate.offloadParameters)
        engine.free(Holding::Parameters, plus.secondary(static_cast<int>(u)));
    hasSecondary = false;
  }

  /// Masks of what is infinite or not a number in 16-bit gradients: stage 3
  /// looks at all of fp16's at once, on the stream of its reductions
  /// (has_overflow); stages 1 and 2 look at one fp32 copy after the other, of
  /// bf16's too (_has_inf_or_nan, check_grad_overflow).
  void checkOverflow() {
    const plan::DType compute = candidate.dtypes.compute;
    if (stage() == 0 || compute == plan::DType::F32)
      return;
    if (stage() == 3) {
      if (compute != plan::DType::F16)
        return;
      const int64_t item = plan::itemSize(compute);
      // |x| lives until it is compared.
      engine.alloc(Holding::Buffers, layout.round(partition * item),
                   Pool::Reduce);
      engine.transient(Holding::Buffers, layout.round(partition), Pool::Reduce);
      engine.free(Holding::Buffers, layout.round(partition * item),
                  Pool::Reduce);
      engine.compute(layout.copyTime(8 * static_cast<double>(partition)));
      return;
    }
    const int64_t piece = largestPiece();
    const int64_t copy = layout.round(piece * 4), mask = layout.round(piece);
    engine.alloc(Holding::Gradients, copy);
    engine.alloc(Holding::Gradients, mask);
    engine.alloc(Holding::Gradients, copy); // |x|, for isinf
    engine.transient(Holding::Gradients, mask);
    for (int64_t bytes : {copy, mask, copy})
      engine.free(Holding::Gradients, bytes);
    engine.compute(layout.copyTime(24 * static_cast<double>(partition)));
  }

  /// The elements of the largest gradient that this rank keeps: its part of
  /// each one in stage 3, of their row in stages 1 and 2.
  int64_t largestPiece() const {
    return stage() == 3 ? (largest + ranks() - 1) / ranks()
                        : std::min(largest, partition);
  }

  /// Of the update of one flat tensor, the partition in f32.
  /// Stage 3 updates groups of parameters one after the other
  /// (_create_fp16_sub_groups).
  int64_t updatedAtOnce() const {
    return stage() == 3 ? std::min(partition, largestGroup) : partition;
  }
  int64_t temporaryBytes() const {
    const int64_t part = updatedAtOnce();
    const int64_t bytes = layout.round(part * 4);
    const plan::OptimizerRule &rule = *candidate.update;
    int64_t carried = 0;
    return static_cast<int64_t>(rule.cost(candidate.optimizer).lists *
                                static_cast<double>(bytes)) +
           rule.temporaryBytes(candidate.optimizer, {part}, part, bytes, 4,
                               carried);
  }

  /// Stage 2 keeps its part on the device.
  bool keepsPartition() const {
    return stage() == 2 && partition > 0 && !candidate.offloadOptimizer &&
           !candidate.offloadParameters;
  }

  /// What no longer lives after the update.
  void freeGradients() {
    if (stage() <= 1)
      freeAllGradients();
    if (partitions > 0)
      freePartition();
  }
  void freePartition() {
    engine.free(Holding::Gradients, partitionBytes(), Pool::Reduce);
    --partitions;
  }

  std::vector<Sizes> sizes; // by unit
  std::vector<int> position;
  DeepspeedPlus plus;
  bool hasSecondary = false;
  int64_t partition = 0, bucket = 0;
  int64_t largest = 0;     // parameter that is trained, elements
  int64_t bucketBytes = 0; // of a buffer that gradients are copied to
  int buckets = 0;         // how many there are
  // Stage 2: gradients that this backward has copied, in elements; whether it
  // has made room for this rank's; how many such parts there are.
  int64_t copied = 0;
  bool copiedPartition = false;
  int partitions = 0;
  int64_t largestGroup = 0; // of sub_group_size, elements of this rank
  int64_t stateBytes = 0; // of the optimizer, without the allocator's rounding
};

} // namespace

std::unique_ptr<StepRun> makeDeepspeedRun(const StepLayout &layout,
                                          Engine &engine) {
  return std::make_unique<DeepspeedRun>(layout, engine);
}

} // namespace accel
