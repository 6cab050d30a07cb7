//===- MegatronFsdp.cpp - Megatron's own FSDP -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// use_megatron_fsdp with data_parallel_sharding_strategy optim_grads_params
// (core/distributed/fsdp/src/megatron_fsdp): each rank holds a part of weights,
// gradients and states. The weights of a layer are gathered into one of two
// buffers while the layer before it computes, in the forward and in the
// backward again; its gradients are added to a buffer of all of them, which is
// reduced and scattered after each micro-batch while the next layer computes.
//
// With cpu_offloading_num_layers what the first layers save goes to the host,
// in windows of layers as long as the whole model has for it, and comes back in
// the same (transformer_engine/pytorch/cpu_offload.py,
// AsyncDoubleBufferGroupOffloadHandler).
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Megatron.h"

#include <algorithm>

namespace accel {
namespace {

class MegatronFsdpRun final : public StepRun {
public:
  MegatronFsdpRun(const StepLayout &layout, Engine &engine)
      : StepRun(layout, engine), held(layout, *layout.candidate) {
    for (size_t call = 0; call < model.calls.size(); ++call) {
      layersBefore.push_back(layers());
      if (model.calls[call].layer)
        layerCalls.push_back(static_cast<int>(call));
    }
    offloaded = std::min(candidate.megatron.offloadedLayers, layers());
    loaded.resize(offloaded);
  }

protected:
  void allocatePersistent() override {
    engine.alloc(Holding::Parameters, held.parameterBytes);
    engine.alloc(Holding::Gradients, held.gradientBytes);
    if (candidate.offloadOptimizer)
      hostBytes += held.stateBytes;
    else
      engine.alloc(Holding::Optimizer, held.stateBytes);
    for (int layer = 0; layer < offloaded; ++layer)
      hostBytes += keptBytes(layerCalls[layer]);
  }
  void beforeForward(const Block &) override {}
  void afterForward(const Block &) override {}
  void beforeBackward(const Block &) override {}
  void afterBackward(const Block &) override {}
  bool gradientsStay() const override { return true; }
  bool addsGradientsInMatmuls() const override { return true; }
  int reachForward() const override {
    return offloaded > 0 ? 1 << 20 : ahead + 1;
  }
  int reachBackward() const override { return ahead + 1; }
  bool foldsBackward() const override { return offloaded == 0; }

  void beforeForwardCall(int call) override {
    freeSent(layersBefore[call]);
    gather(call, 1);
  }
  void afterForwardCall(int call) override {
    release(call);
    if (leaves(call))
      sent.push_back({layersBefore[call], keptBytes(call),
                      engine.run(Lane::HostOut, timeOf(call),
                                 engine.clock(Lane::Compute))});
  }
  void endForward() override {
    freeSent(layers());
    nextLoad = offloaded - 1;
  }
  void beforeBackwardCall(int call) override {
    load(call);
    gather(call, -1);
    engine.alloc(Holding::Gradients, gradientBuffer(call));
  }

  void gradientsReady(int call) override {
    release(call);
    const Elements elements = trained(call);
    const auto wide =
        static_cast<double>(plan::itemSize(candidate.dtypes.reduce));
    // Matmuls make gradients of their own, which are copied into the buffer
    // (gradient_accumulation_fusion is off).
    engine.compute(layout.copyTime(
        elements.sum() *
        (static_cast<double>(plan::itemSize(candidate.dtypes.compute)) +
         wide)));
    freeScattered();
    engine.event(scattered) = engine.transfer(
        Lane::Reduce, Wire::Replicate, held.reduceTime(elements * wide),
        engine.clock(Lane::Compute), elements.sum() * wide);
    inFlight = gradientBuffer(call);
  }

  void endBackward() override { freeScattered(); }

  void update() override {
    engine.transient(Holding::Gradients, held.updateBytes);
    held.runUpdate(engine);
  }

private:
  static constexpr int ahead = 1;     // layers that are gathered before
  static constexpr int scattered = 0; // event: the reduction in flight

  //===--- Activations on the host ----------------------------------------===//

  bool leaves(int call) const {
    return model.calls[call].layer && layersBefore[call] < offloaded;
  }
  /// What the call's backward reads of its own and of its inputs.
  int64_t keptBytes(int call) const {
    int64_t bytes = savedBytes(call);
    for (int value : model.calls[call].inputs)
      if (layout.savedUntil[value] == call && model.values[value].producer >= 0)
        bytes += model.values[value].bytes;
    return bytes;
  }
  Picoseconds timeOf(int call) const {
    return layout.hostTime(static_cast<double>(keptBytes(call)));
  }
  /// The layer before which what layer `i` saved has to be sent.
  int windowEnd(int i) const { return layers() * (i + 1) / offloaded; }
  int layers() const { return static_cast<int>(layerCalls.size()); }

  void freeSent(int layer) {
    while (!sent.empty() && windowEnd(sent.front().layer) <= layer) {
      engine.wait(sent.front().end, Cause::HostOut);
      engine.free(Holding::Activations, sent.front().bytes);
      sent.erase(sent.begin());
    }
  }

  void load(int call) {
    while (nextLoad >= 0 && windowEnd(nextLoad) > layersBefore[call]) {
      const int loads = layerCalls[nextLoad];
      engine.alloc(Holding::Activations, keptBytes(loads));
      loaded[nextLoad--] =
          engine.run(Lane::HostIn, timeOf(loads), engine.clock(Lane::Compute));
    }
    if (leaves(call))
      engine.wait(loaded[layersBefore[call]], Cause::HostIn);
  }

  //===--- Weights and gradients ------------------------------------------===//

  Elements elementsOf(int call, bool trainable) const {
    Elements elements;
    for (int p : model.calls[call].parameters)
      if (const StepParameter &parameter = model.parameters[p];
          (parameter.trainable || !trainable))
        (parameter.expert ? elements.experts : elements.dense) +=
            static_cast<double>(parameter.numel());
    return elements;
  }
  Elements trained(int call) const { return elementsOf(call, true); }
  /// Weights in 8 bits are gathered so.
  Elements gatheredBytes(int call) const {
    const bool narrow =
        candidate.megatron.narrowWeightBytes > 0 && model.calls[call].layer;
    return elementsOf(call, false) *
           (narrow ? 1.0
                   : static_cast<double>(
                         plan::itemSize(candidate.dtypes.compute)));
  }
  int64_t gatheredBuffer(int call) const {
    return layout.round(static_cast<int64_t>(gatheredBytes(call).sum()));
  }
  int64_t gradientBuffer(int call) const {
    return layout.round(static_cast<int64_t>(trained(call).sum()) *
                        plan::itemSize(candidate.dtypes.reduce));
  }

  void start(int call) {
    const Elements bytes = gatheredBytes(call);
    engine.alloc(Holding::Gathered, gatheredBuffer(call));
    engine.push(bytes.sum() > 0
                    ? engine.transfer(Lane::Gather, Wire::Replicate,
                                      held.gatherTime(bytes),
                                      engine.clock(Lane::Compute), bytes.sum())
                    : engine.clock(Lane::Compute));
  }
  void gather(int call, int step) {
    if (!engine.hasPending())
      start(call);
    engine.wait(engine.pop(), Cause::Gather);
    const int next = call + step;
    if (next >= 0 && next < static_cast<int>(model.calls.size()))
      start(next);
  }
  void release(int call) {
    engine.free(Holding::Gathered, gatheredBuffer(call));
  }
  void freeScattered() {
    engine.wait(engine.event(scattered), Cause::Reduce);
    if (inFlight > 0)
      engine.free(Holding::Gradients, inFlight);
    inFlight = 0;
  }

  struct Sent {
    int layer;
    int64_t bytes;
    Picoseconds end;
  };

  MegatronParameters held;
  std::vector<int> layerCalls;   // the calls of layers
  std::vector<int> layersBefore; // by call
  int offloaded = 0, nextLoad = -1;
  std::vector<Sent> sent;          // on the way to the host
  std::vector<Picoseconds> loaded; // by layer: when it is back
  int64_t inFlight = 0;            // bytes of gradients that are being reduced
};

} // namespace

std::unique_ptr<StepRun> makeMegatronFsdpRun(const StepLayout &layout,
                                             Engine &engine) {
  return std::make_unique<MegatronFsdpRun>(layout, engine);
}

} // namespace accel
