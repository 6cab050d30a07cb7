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
// 3 gathers each module's parameters when it runs, holds some ahead, keeps what
// is used again soon (DeepspeedTrace.h) and never releases small parameters
// (ZeroBuffers). A step is one behind the first, which has no trace: there
// nothing is gathered ahead, and nothing stays. MiCS is a mesh of copies; what
// ZeRO++ adds is in DeepspeedPlus.h. As release 0.19.8.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/DeepspeedPartitions.h"
#include "passes/FrameworkSteps/DeepspeedPlus.h"
#include "passes/FrameworkSteps/DeepspeedTrace.h"
#include "passes/FrameworkSteps/StepRun.h"

#include <algorithm>
#include <utility>

namespace accel {
namespace {

class DeepspeedRun : public StepRun {
public:
  using StepRun::StepRun;

protected:
  static constexpr int reduced = 0;

  int stage() const { return candidate.zeroStage; }
  int64_t ranks() const { return layout.shards.ranks; }
  bool foldsBackward() const override {
    return stage() == 3 && trace.keptBlocks() < 2;
  }

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
    std::vector<DeepspeedTrace::Unit> traced(sizes.size());
    int64_t trainable = 0, subGroup[2] = {};
    for (size_t p = 0; p < model.parameters.size(); ++p) {
      const StepParameter &parameter = model.parameters[p];
      Sizes &s = sizes[candidate.unitOf[p]];
      const int64_t numel = parameter.storedNumel();
      // Only floating-point tensors are converted.
      const int64_t held =
          parameter.quantized() ? plan::itemSize(parameter.dtype) : item;
      s.full += layout.round(numel * held);
      s.shard += (numel + ranks() - 1) / ranks() * held;
      ++traced[candidate.unitOf[p]].modules;
      if (numel <= candidate.zero.persistenceThreshold) {
        s.persists += layout.round(numel * held);
      } else {
        traced[candidate.unitOf[p]].numel += numel;
        plus.addGathered(candidate.unitOf[p], parameter, held);
      }
      if (parameter.trainable) {
        s.gradients += layout.round(numel * item);
        trainable += numel;
        largest = std::max(largest, numel);
        plus.addGradient(candidate.unitOf[p], parameter);
        const int g = DeepspeedPartitions::groupOf(parameter);
        // A sub-group is closed by the parameter that fills it.
        subGroup[g] += (numel + ranks() - 1) / ranks();
        largestGroup = std::max(largestGroup, subGroup[g]);
        if (subGroup[g] >= candidate.zero.subGroup)
          subGroup[g] = 0;
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
    if (stage() == 1 || stage() == 2) {
      parted = DeepspeedPartitions::of(model, candidate.unitOf, sizes.size(),
                                       ranks());
      partition = parted.elements();
    }
    // What offloaded gradients are added up in
    // (temp_grad_buffer_for_gpu_offload) is there from the start, as large as
    // the largest parameter.
    if (gradientsToHost())
      engine.alloc(Holding::Buffers, layout.round(largest * item));
    if (gathers())
      trace = DeepspeedTrace(layout, candidate, std::move(traced));
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
    if (bucketsThere)
      return;
    bucketsThere = true;
    for (int i = 0; i < buckets; ++i)
      engine.alloc(Holding::Buffers, bucketBytes);
  }

  bool gathers() const { return stage() == 3 && ranks() > 1; }
  int reachForward() const override {
    return gathers() ? std::max(2 + trace.maxAhead(), trace.keptBlocks()) : 0;
  }
  int reachBackward() const override {
    return gathers() ? 2 + trace.maxAhead() : 0;
  }

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

  /// The unit of a step of the trace is gathered, unless it has stayed, and
  /// then what comes.
  void use(int step) {
    const int u = trace.unit(step);
    const bool trained = running == PreferenceStep::Reference::None;
    if (!trace.here(step) || !trained) {
      if (ahead == 0)
        start(u);
      engine.wait(engine.pop(), Cause::Gather);
      if (plus.quantizesWeights()) {
        engine.alloc(Holding::Gathered, gatheredBytes(u), Pool::Gather);
        engine.free(Holding::Gathered, plus.wireBytes(u), Pool::Gather);
        engine.overhead(layout.copyTime(static_cast<double>(plus.wireBytes(u)) +
                                        static_cast<double>(gatheredBytes(u))),
                        Cause::Gather);
      }
    }
    ahead = std::max(0, ahead - 1);
    const int first = step + ahead + 1;
    ahead = trace.lookAhead(step, ahead, trained);
    for (int s = first; s <= step + ahead; ++s)
      if (!trace.here(s) || !trained)
        start(trace.unit(s));
  }
  void release(const DeepspeedTrace::Steps &steps) {
    for (int s = steps.begin; s < steps.end; ++s)
      if (!trace.stays(s) || running != PreferenceStep::Reference::None)
        engine.free(Holding::Gathered, gatheredBytes(trace.unit(s)),
                    Pool::Gather);
  }
  int blockOf(const Block &block) const {
    return static_cast<int>(&block - layout.blocks.data());
  }

  void beginForward() override { ahead = 0; }
  /// A second model is partitioned as the first in stage 3, else whole
  /// (prepare_deepspeed of trl/models/utils.py).
  void beginReference() override { beginForward(); }
  void beforeForward(const Block &block) override {
    if (!gathers())
      return;
    const DeepspeedTrace::Steps &steps = trace.forward(blockOf(block));
    for (int s = steps.begin; s < steps.end; ++s)
      use(s);
  }
  void afterForward(const Block &block) override {
    if (!gathers())
      return;
    release(trace.forward(blockOf(block)));
    for (int c = block.begin; c < block.end; ++c)
      for (int u : layout.closes[c])
        if (gathersFromAll() && trainedForward())
          holdSecondary(plus.secondary(u));
  }
  bool trainedForward() const {
    return running == PreferenceStep::Reference::None && plus.hasSecondary();
  }
  void endForward() override { hasSecondary |= trainedForward(); }
  void beforeBackward(const Block &block) override {
    if (!gathers())
      return;
    const DeepspeedTrace::Steps &steps = trace.backward(blockOf(block));
    for (int s = steps.begin; s < steps.end; ++s)
      use(s);
  }

  void beginBackward() override {
    bucketsThere = stage() == 3;
    copied = 0;
    copiedPartition = false;
  }
  /// The first gradient of a backward makes the buffers of stages 1 and 2
  /// (setup_buckets), and independent_gradient_partition_epilogue drops them.
  void gradientsReady(int call) override {
    if (bucketsThere || gradientsAtEnd())
      return;
    for (int p : model.calls[call].parameters)
      if (layout.firstUser[p] == call && model.parameters[p].trainable)
        return allocateBuckets();
  }

  /// Stage 1 without the last micro-batch, and stage 0, keep them.
  bool gradientsStay() const override {
    return stage() <= 1 && !microBatch.first;
  }

  /// Gradients leave in the backward, for buckets: in stage 1 where
  /// communication overlaps (process_gradients).
  bool reducesInBackward() const {
    return stage() >= 2 ||
           (stage() == 1 && candidate.zero.overlap && microBatch.last);
  }

  void afterBackward(const Block &block) override {
    if (gathers())
      release(trace.backward(blockOf(block)));
    for (int c = block.end - 1; c >= block.begin; --c)
      for (int u : layout.opens[c])
        if (reducesInBackward() && !gradientsAtEnd())
          reduce(u);
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
    if (gradientsToHost() && microBatch.last)
      convertForHost(
          parted.pieces[u],
          bytes / static_cast<double>(plan::itemSize(candidate.dtypes.compute) *
                                      ranks()));
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
      done = engine.run(Lane::HostOut, layout.hostTime(hostBytesOf(own)), done);
    else if (keepsPartition()) {
      copied += sizes[u].gradients / plan::itemSize(candidate.dtypes.compute);
      if (copied > candidate.zero.reduceBucket)
        holdPartition();
    }
    engine.event(reduced) = std::max(engine.event(reduced), done);
  }

  /// Of `bytes` of gradients, what goes to the host: stages 1 and 2 convert
  /// them first.
  double hostBytesOf(double bytes) const {
    return gradientsToHost() ? bytes * 4 /
                                   static_cast<double>(
                                       plan::itemSize(candidate.dtypes.compute))
                             : bytes;
  }
  /// Stages 1 and 2 with the optimizer on the host.
  bool gradientsToHost() const {
    return (stage() == 1 || stage() == 2) && candidate.offloadOptimizer;
  }
  /// Of each gradient that leaves for the host the norm is taken, of a copy in
  /// fp64 (set_norm_for_param_grad_in_gpu), and it goes as fp32
  /// (async_inplace_copy_grad_to_fp32_buffer_from_gpu). One that is larger than
  /// a bucket is a tensor of its own meanwhile; in stage 1 all still are.
  void convertForHost(const DeepspeedPartitions::Piece &piece,
                      double elements) {
    const int64_t item = plan::itemSize(candidate.dtypes.compute);
    const int64_t own = stage() == 2 && piece.of > candidate.zero.reduceBucket
                            ? layout.round(piece.of * item)
                            : int64_t{0};
    engine.alloc(Holding::Gradients, own);
    engine.transient(Holding::Gradients, layout.round(piece.elements * 8));
    engine.free(Holding::Gradients, own);
    engine.overhead(
        layout.copyTime(elements * static_cast<double>(2 * item + 20)),
        Cause::Reduce);
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
  /// The gradients that a rank keeps in stages 1 and 2.
  int64_t partitionBytes() const {
    return layout.round(parted.keptGradients *
                        plan::itemSize(candidate.dtypes.compute));
  }

  void endBackward() override {
    if (stage() < 3)
      allocateBuckets();
    if (gradientsAtEnd())
      for (size_t c = layout.opens.size(); c-- > 0;)
        for (int u : layout.opens[c])
          reduce(u);
    if (keepsPartition()) {
      holdPartition();
      // Those of later micro-batches are added to the first one's.
      if (stage() == 2 && !microBatch.first)
        freePartition();
    }
    // All of stage 1 have passed through the buckets, the largest while the
    // others were there.
    if (stage() == 1 && microBatch.last && !reducesInBackward()) {
      if (gradientsToHost()) {
        const auto own = static_cast<double>(partition);
        convertForHost(parted.largestPiece(), own);
        engine.overhead(layout.hostTime(4 * own), Cause::HostOut);
      }
      freeAllGradients();
    }
    for (int i = 0; stage() < 3 && i < buckets; ++i)
      engine.free(Holding::Buffers, bucketBytes);
    if (stage() <= 1 && !reducesInBackward() && microBatch.last &&
        ranks() > 1) {
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
      // converted to fp32, which copies what has 16 bits. All gradients that
      // a rank keeps are one tensor, which the last group frees.
      const bool converts = dtypes.compute != plan::DType::F32;
      const bool apart =
          frees && parted.groups[0].numel > 0 && parted.groups[1].numel > 0;
      for (int g = 0; g < (apart ? 2 : 1); ++g) {
        const int64_t part =
            apart ? parted.groups[g].partition : updatedAtOnce();
        const int64_t flat = flattens ? layout.round(part * item) : int64_t{0};
        const int64_t wide =
            candidate.holdsMasterCopy() ? layout.round(part * 4) : int64_t{0};
        engine.alloc(Holding::Gradients, flat);
        if (converts) {
          engine.alloc(Holding::Gradients, wide);
          engine.free(Holding::Gradients, flat);
        }
        if (frees && (!apart || g == 1))
          freeGradients();
        if (const int64_t bytes = temporaryBytes(part))
          engine.transient(Holding::Optimizer, bytes);
        engine.free(Holding::Gradients, converts ? wide : flat);
      }
      if (candidate.clipGradients)
        engine.compute(layout.copyTime(12 * own));
      engine.compute(
          layout.updateTime(4 * own, 4 * own, static_cast<double>(stateBytes)));
      engine.compute(layout.copyTime((4.0 + static_cast<double>(item)) * own));
    }
    if (!frees)
      freeGradients();
    dropSecondary();
    if (ranks() > 1 && (stage() == 1 || stage() == 2)) {
      double bytes = 0;
      for (const Sizes &s : sizes)
        bytes += static_cast<double>(s.gradients);
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

  /// What is infinite or not a number is looked for in the largest and the
  /// smallest element of each gradient (has_inf_or_nan): no tensor is made.
  /// Stage 3 looks at fp16's alone.
  void checkOverflow() {
    const plan::DType compute = candidate.dtypes.compute;
    if (stage() == 0 || compute == plan::DType::F32 ||
        (stage() == 3 && compute != plan::DType::F16))
      return;
    engine.compute(layout.copyTime(4 * static_cast<double>(partition)));
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
  int64_t temporaryBytes(int64_t part) const {
    const int64_t bytes = layout.round(part * 4);
    const plan::OptimizerRule &rule = *candidate.update;
    int64_t carried = 0;
    return static_cast<int64_t>(rule.cost(candidate.optimizer).lists *
                                static_cast<double>(bytes)) +
           rule.temporaryBytes(candidate.optimizer, {part}, part, bytes, 4,
                               carried);
  }

  /// Stages 1 and 2 keep their part on the device.
  bool keepsPartition() const {
    return (stage() == 2 || (stage() == 1 && microBatch.last)) &&
           partition > 0 && !candidate.offloadOptimizer &&
           !candidate.offloadParameters;
  }

  /// What no longer lives after the update.
  void freeGradients() {
    if (stage() == 0)
      freeAllGradients();
    if (partitions > 0)
      freePartition();
  }
  void freePartition() {
    engine.free(Holding::Gradients, partitionBytes(), Pool::Reduce);
    --partitions;
  }

  std::vector<Sizes> sizes; // by unit
  DeepspeedTrace trace;     // of stage 3
  int ahead = 0; // its steps behind the present one that are gathered, or start
  DeepspeedPartitions parted; // of stages 1 and 2
  bool bucketsThere = false;
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
