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
  int64_t trained = 0, frozen = 0;
  for (const StepParameter &parameter : layout.model.parameters)
    (parameter.trainable ? trained : frozen) += parameter.numel();
  const int64_t compute = plan::itemSize(dtypes.compute);
  const int64_t gradient = plan::itemSize(dtypes.gradient);
  parameterBytes = layout.round((trained + frozen) * compute);
  gradientBytes = layout.round(trained * gradient);
  if (candidate.megatron.transformerEngine)
    placeholderBytes = layout.round(largestLayer(layout.model) * compute);
  const bool distributed =
      candidate.megatron.distributedOptimizer && ranks.ranks > 1;
  const int64_t owners = distributed ? ranks.ranks : 1;
  const int64_t own = (trained + owners - 1) / owners;
  int64_t states = 0;
  for (const plan::StateRule &state : candidate.update->states)
    states += plan::OptimizerRule::elements(state, {own}, own) *
              plan::itemSize(plan::OptimizerRule::dtypeOf(state, dtypes.state));
  stateBytes =
      layout.round(states) + (dtypes.masterCopy ? layout.round(own * 4) : 0);
  // The fp32 copies have fp32 gradients.
  if (dtypes.masterCopy && dtypes.gradient != plan::DType::F32)
    updateBytes = layout.round(own * 4);
  reduce = reduceTime(static_cast<double>(trained * gradient));
  if (distributed)
    gather = gatherTime(static_cast<double>(trained * compute));
  const auto elements = static_cast<double>(own);
  if (candidate.clipGradients) // their norm, and a product
    update += layout.copyTime(3 * elements * static_cast<double>(gradient));
  update += layout.updateTime(4 * elements, 4 * elements,
                              static_cast<double>(states));
  if (dtypes.masterCopy) // 16 bits again
    update += layout.copyTime(elements * static_cast<double>(4 + compute));
}

Picoseconds MegatronParameters::reduceTime(double bytes) const {
  return toPicoseconds(collectiveSeconds(layout.target,
                                         candidate.megatron.distributedOptimizer
                                             ? Collective::ReduceScatter
                                             : Collective::AllReduce,
                                         ranks, bytes));
}

Picoseconds MegatronParameters::gatherTime(double bytes) const {
  return toPicoseconds(
      collectiveSeconds(layout.target, Collective::AllGather, ranks, bytes));
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

double MegatronRun::trainedElements(int call) const {
  int64_t elements = 0;
  for (int p : model.calls[call].parameters)
    if (model.parameters[p].trainable && layout.firstUser[p] == call)
      elements += model.parameters[p].numel();
  return static_cast<double>(elements);
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
  double bucket = 0;
  std::vector<double> bytes;
  for (int c = 0; c < static_cast<int>(model.calls.size()); ++c) {
    bucket += trainedElements(c);
    bytes.push_back(bucket >= bucketElements(held.ranks) ? bucket * item : 0);
    if (bytes.back() > 0)
      bucket = 0;
  }
  if (!bytes.empty())
    bytes.back() += bucket * item;
  // A module's parameters are there with the bucket that they end in.
  for (double b : bytes) {
    if (b > 0)
      engine.event(1) = engine.transfer(Lane::Gather, Wire::Replicate,
                                        held.gatherTime(b), 0, b);
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
  const double elements = trainedElements(call);
  const auto item =
      static_cast<double>(plan::itemSize(candidate.dtypes.gradient));
  const auto usual =
      static_cast<double>(plan::itemSize(candidate.dtypes.compute));
  engine.compute(layout.copyTime(elements * std::max(0.0, 2 * item - usual)));
  if (!overlapsGradients() || !microBatch.last)
    return;
  waiting += elements * item;
  if (waiting >= bucketElements(held.ranks) * item) {
    engine.event(0) =
        engine.transfer(Lane::Reduce, Wire::Replicate, held.reduceTime(waiting),
                        engine.clock(Lane::Compute), waiting);
    waiting = 0;
  }
}

void MegatronRun::endBackward() {
  if (stage) {
    cost.backward = engine.clock(Lane::Compute) - cost.forward;
    return;
  }
  if (!microBatch.last || held.reduce == 0)
    return;
  const double bytes =
      overlapsGradients() ? waiting : static_cast<double>(held.gradientBytes);
  if (bytes > 0)
    engine.event(0) =
        engine.transfer(Lane::Reduce, Wire::Replicate, held.reduceTime(bytes),
                        engine.clock(Lane::Compute), bytes);
  waiting = 0;
  engine.wait(engine.event(0), Cause::Reduce);
}

void MegatronRun::update() {
  if (stage)
    return;
  engine.transient(Holding::Gradients, held.updateBytes);
  engine.compute(held.update);
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

std::unique_ptr<StepRun> makeMegatronRun(const StepLayout &layout,
                                         Engine &engine) {
  return std::make_unique<MegatronRun>(layout, engine);
}

} // namespace accel
