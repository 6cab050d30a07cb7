//===- Megatron.cpp - Megatron-Core's steps without a pipeline ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Megatron.h"

#include "passes/Cost/CollectiveCost.h"

namespace accel {

/// Elements of the matrices of the layer that has most. Transformer Engine's
/// layers have one weight for queries, keys and values and one for gate and up,
/// so that no two weights of a layer have one shape.
static int64_t largestLayer(const StepModel &model) {
  int64_t most = 0;
  for (const StepCall &call : model.calls) {
    int64_t elements = 0;
    for (int p : call.parameters)
      if (const StepParameter &parameter = model.parameters[p];
          parameter.trainable && parameter.shape.size() > 1)
        elements += parameter.numel();
    if (call.layer)
      most = std::max(most, elements);
  }
  return most;
}

/// The weights of a layer's matmuls, which fp8 recipes hold in 8 bits; the
/// router's stay in 16.
static std::vector<bool> linearWeights(const StepModel &model) {
  std::vector<bool> linear(model.parameters.size(), false);
  for (const StepCall &call : model.calls)
    for (int p : call.parameters)
      if (const StepParameter &parameter = model.parameters[p];
          call.layer && parameter.shape.size() > 1)
        linear[p] = !parameter.fqn.ends_with(".gate.weight");
  return linear;
}

/// The ranks of a stage that have the same experts: neighbours share a layer's.
static plan::AxisGroup sameExperts(const Candidate &candidate) {
  const int64_t sharing =
      candidate.megatron.experts * candidate.megatron.expertTensor;
  const int64_t ranks = std::max<int64_t>(1, candidate.mesh.ranks() /
                                                 candidate.stages() / sharing);
  return {ranks,
          std::clamp<int64_t>(candidate.ranksPerNode / sharing, 1, ranks)};
}

MegatronParameters::MegatronParameters(const StepLayout &layout,
                                       const Candidate &candidate)
    : layout(layout), candidate(candidate) {
  const StepDtypes &dtypes = candidate.dtypes;
  plan::AxisSet both = candidate.mesh.set(plan::AxisRole::Replicate);
  const plan::AxisSet shards = candidate.mesh.set(plan::AxisRole::Shard);
  for (size_t axis = 0; axis < candidate.mesh.axes.size(); ++axis)
    if (shards.contains(axis))
      both.add(axis);
  ranks = candidate.mesh.group(both, candidate.ranksPerNode);
  expertRanks = sameExperts(candidate);
  const int64_t compute = plan::itemSize(dtypes.compute);
  const int64_t gradient = plan::itemSize(dtypes.gradient);
  const std::vector<bool> linear = linearWeights(layout.model);
  const double eightBits = candidate.megatron.narrowWeightBytes;
  Elements trained;
  Elements held;
  double gathered = 0, gatheredExperts = 0;
  for (size_t p = 0; p < layout.model.parameters.size(); ++p) {
    const StepParameter &parameter = layout.model.parameters[p];
    const auto elements = static_cast<double>(parameter.numel());
    const bool narrow = eightBits > 0 && linear[p];
    (parameter.expert ? held.experts : held.dense) +=
        elements * (narrow ? eightBits : static_cast<double>(compute));
    if (!parameter.trainable)
      continue;
    (parameter.expert ? trained.experts : trained.dense) += elements;
    (parameter.expert ? gatheredExperts : gathered) +=
        elements * (narrow ? 1.0 : static_cast<double>(compute));
  }
  const bool sharded = candidate.megatron.shardsParameters;
  auto own = [&](const Elements &all) {
    return sharded ? all.dense / static_cast<double>(ranks.ranks) +
                         all.experts / static_cast<double>(expertRanks.ranks)
                   : all.sum();
  };
  parameterBytes = layout.round(static_cast<int64_t>(own(held)));
  gradientBytes = layout.round(static_cast<int64_t>(own(trained)) * gradient);
  if (candidate.megatron.transformerEngine && !sharded)
    placeholderBytes = layout.round(largestLayer(layout.model) * compute);
  const bool distributed = candidate.megatron.distributedOptimizer;
  auto part = [&](double elements, const plan::AxisGroup &owners) {
    const int64_t of = distributed ? owners.ranks : 1;
    return (static_cast<int64_t>(elements) + of - 1) / of;
  };
  const int64_t updated =
      part(trained.dense, ranks) + part(trained.experts, expertRanks);
  int64_t states = 0;
  for (const plan::StateRule &state : candidate.update->states)
    states += plan::OptimizerRule::elements(state, {updated}, updated) *
              plan::itemSize(plan::OptimizerRule::dtypeOf(state, dtypes.state));
  stateBytes = layout.round(states) +
               (dtypes.masterCopy ? layout.round(updated * 4) : 0);
  // The fp32 copies have fp32 gradients.
  if (dtypes.masterCopy && dtypes.gradient != plan::DType::F32)
    updateBytes = layout.round(updated * 4);
  reduce = reduceTime({trained.dense * static_cast<double>(gradient),
                       trained.experts * static_cast<double>(gradient)});
  if (distributed && !sharded)
    gather = gatherTime({gathered, gatheredExperts});
  const auto elements = static_cast<double>(updated);
  if (candidate.clipGradients) // their norm, and a product
    update += layout.copyTime(3 * elements * static_cast<double>(gradient));
  if (candidate.offloadOptimizer) {
    // Both copies are fp32: the device converts. The host's kernel is fused.
    toHost = fromHost = layout.hostTime(4 * elements);
    const plan::UpdateCost cost;
    const double moved = (cost.parameters + cost.gradients) * 4 * elements +
                         cost.states * static_cast<double>(states);
    if (const double rate = layout.target.host.updateBytesPerSecond; rate > 0)
      onHost = toPicoseconds(moved / rate);
  } else {
    update += layout.updateTime(4 * elements, 4 * elements,
                                static_cast<double>(states));
  }
  if (dtypes.masterCopy) // 16 bits again
    update += layout.copyTime(elements * static_cast<double>(4 + compute));
}

Picoseconds MegatronParameters::timeOf(Collective kind,
                                       const Elements &bytes) const {
  return toPicoseconds(
      collectiveSeconds(layout.target, kind, ranks, bytes.dense) +
      (bytes.experts > 0
           ? collectiveSeconds(layout.target, kind, expertRanks, bytes.experts)
           : 0));
}

Picoseconds MegatronParameters::reduceTime(const Elements &bytes) const {
  return timeOf(candidate.megatron.distributedOptimizer
                    ? Collective::ReduceScatter
                    : Collective::AllReduce,
                bytes);
}

Picoseconds MegatronParameters::gatherTime(const Elements &bytes) const {
  return timeOf(Collective::AllGather, bytes);
}

void MegatronParameters::runUpdate(Engine &engine) const {
  engine.compute(update);
  if (!candidate.offloadOptimizer)
    return;
  engine.overhead(toHost, Cause::HostOut);
  engine.overhead(onHost, Cause::HostUpdate);
  engine.overhead(fromHost, Cause::HostIn);
}

MegatronRun::MegatronRun(const StepLayout &layout, Engine &engine)
    : StepRun(layout, engine), held(layout, *layout.candidate) {}

void MegatronRun::allocatePersistent() {
  engine.alloc(Holding::Parameters, held.parameterBytes);
  engine.alloc(Holding::Gradients, held.gradientBytes + held.placeholderBytes);
  if (candidate.offloadOptimizer)
    hostBytes += held.stateBytes;
  else
    engine.alloc(Holding::Optimizer, held.stateBytes);
}

Elements MegatronRun::trainedElements(int call) const {
  Elements elements;
  for (int p : model.calls[call].parameters)
    if (const StepParameter &parameter = model.parameters[p];
        parameter.trainable && layout.firstUser[p] == call)
      (parameter.expert ? elements.experts : elements.dense) +=
          static_cast<double>(parameter.numel());
  return elements;
}

/// Buckets have 40 million elements, and as many million as there are ranks
/// (core/distributed/distributed_data_parallel.py).
static double bucketElements(const plan::AxisGroup &ranks) {
  return std::max(4e7, 1e6 * static_cast<double>(ranks.ranks));
}

/// The buckets of parameters come one after the other, each when its first
/// module has to wait for it at the latest.
void MegatronRun::beginForward() {
  if (!overlapsParameters() || !microBatch.first)
    return;
  const auto item =
      static_cast<double>(plan::itemSize(candidate.dtypes.compute));
  Elements bucket;
  std::vector<Elements> bytes;
  for (int c = 0; c < static_cast<int>(model.calls.size()); ++c) {
    bucket += trainedElements(c);
    const bool full = bucket.sum() >= bucketElements(held.ranks);
    bytes.push_back(full ? bucket * item : Elements());
    if (full)
      bucket = {};
  }
  if (!bytes.empty())
    bytes.back() += bucket * item;
  // A module's parameters are there with the bucket that they end in.
  for (const Elements &b : bytes) {
    if (b.sum() > 0)
      engine.event(1) = engine.transfer(Lane::Gather, Wire::Replicate,
                                        held.gatherTime(b), 0, b.sum());
    engine.push(engine.event(1));
  }
}

void MegatronRun::beforeForwardCall(int) {
  if (overlapsParameters() && microBatch.first && engine.hasPending())
    engine.wait(engine.pop(), Cause::Gather);
}

void MegatronRun::endForward() {
  if (!stage)
    return;
  cost.forward = engine.clock(Lane::Compute);
  cost.frameBytes = engine.total() - persistent;
  cost.forwardPeakBytes = engine.peak().total - persistent;
  cost.frame = engine.levels();
}

void MegatronRun::gradientsReady(int call) {
  // Matmuls read what was added up so far, and write it in its own dtype.
  const Elements elements = trainedElements(call);
  const auto item =
      static_cast<double>(plan::itemSize(candidate.dtypes.gradient));
  const auto usual =
      static_cast<double>(plan::itemSize(candidate.dtypes.compute));
  engine.compute(
      layout.copyTime(elements.sum() * std::max(0.0, 2 * item - usual)));
  if (!overlapsGradients() || !microBatch.last)
    return;
  waiting += elements * item;
  if (waiting.sum() >= bucketElements(held.ranks) * item) {
    engine.event(0) =
        engine.transfer(Lane::Reduce, Wire::Replicate, held.reduceTime(waiting),
                        engine.clock(Lane::Compute), waiting.sum());
    waiting = {};
  }
}

void MegatronRun::endBackward() {
  if (stage) {
    cost.backward = engine.clock(Lane::Compute) - cost.forward;
    return;
  }
  if (!microBatch.last || held.reduce == 0)
    return;
  if (!overlapsGradients())
    engine.event(0) = engine.transfer(Lane::Reduce, Wire::Replicate,
                                      held.reduce, engine.clock(Lane::Compute),
                                      static_cast<double>(held.gradientBytes));
  else if (waiting.sum() > 0)
    engine.event(0) =
        engine.transfer(Lane::Reduce, Wire::Replicate, held.reduceTime(waiting),
                        engine.clock(Lane::Compute), waiting.sum());
  waiting = {};
  engine.wait(engine.event(0), Cause::Reduce);
}

void MegatronRun::update() {
  if (stage)
    return;
  engine.transient(Holding::Gradients, held.updateBytes);
  held.runUpdate(engine);
  if (held.gather > 0 && !candidate.megatron.overlapsParameters)
    engine.wait(engine.transfer(Lane::Gather, Wire::Replicate, held.gather,
                                engine.clock(Lane::Compute),
                                static_cast<double>(held.parameterBytes)),
                Cause::Gather);
}

MicroBatchCost MegatronRun::runOne() {
  stage = true;
  begin();
  step();
  cost.peakBytes = engine.peak().total - persistent;
  cost.peak = engine.peak().level;
  cost.place = engine.peak().place;
  // What stays is the rank's, once for all its chunks.
  for (auto *levels : {&cost.frame, &cost.peak})
    for (auto [kind, bytes] :
         {std::pair(Holding::Parameters, held.parameterBytes),
          std::pair(Holding::Gradients,
                    held.gradientBytes + held.placeholderBytes),
          std::pair(Holding::Optimizer,
                    candidate.offloadOptimizer ? 0 : held.stateBytes)})
      (*levels)[static_cast<int>(kind)] -= bytes;
  return cost;
}

StageCost runMegatronStage(const StepLayout &layout, Engine &engine) {
  MegatronRun run(layout, engine);
  StageCost cost;
  cost.micro = run.runOne();
  const MegatronParameters &p = run.parameters();
  cost.held.parameters = p.parameterBytes;
  cost.held.gradients = p.gradientBytes;
  cost.held.states = p.stateBytes;
  cost.held.update = p.updateBytes;
  cost.held.reduce = p.reduce;
  cost.held.gather = p.gather;
  cost.held.updateTime = p.wholeUpdate();
  cost.held.placeholders = p.placeholderBytes;
  cost.held.recompute = run.recomputeTime();
  return cost;
}

std::unique_ptr<StepRun> makeMegatronRun(const StepLayout &layout,
                                         Engine &engine) {
  if (layout.candidate->megatron.shardsParameters)
    return makeMegatronFsdpRun(layout, engine);
  return std::make_unique<MegatronRun>(layout, engine);
}

} // namespace accel
