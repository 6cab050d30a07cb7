//===- TuneFixture.cpp - Small models to search over ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/TuneFixture.h"

#include <algorithm>

namespace accel::tune {

static int64_t whole(std::mt19937 &random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % (high - low + 1));
}

static SegmentVariant fixed(double forward, int64_t saved, int64_t peak) {
  SegmentVariant variant;
  variant.name = "none";
  variant.forwardSeconds = forward;
  variant.backwardSeconds = 2 * forward;
  variant.savedBytes = saved;
  variant.forwardPeakBytes = peak;
  variant.backwardPeakBytes = peak;
  return variant;
}

static StepCall callOf(int kind, std::string path, bool layer) {
  StepCall call;
  call.kind = kind;
  call.path = std::move(path);
  call.layer = layer;
  return call;
}

static void addParameter(StepModel &model, StepCall &call, std::string fqn,
                         int64_t numel) {
  call.parameters.push_back(static_cast<int>(model.parameters.size()));
  StepParameter parameter;
  parameter.fqn = std::move(fqn);
  parameter.shape = {numel};
  model.parameters.push_back(std::move(parameter));
}

StepModel tinyModel(int layers, int variants, std::mt19937 &random,
                    int64_t microBatch) {
  StepModel model;
  model.microBatch = microBatch;
  model.sequenceLength = 8;
  model.kinds.resize(3);
  model.kinds[0].name = "Embedding";
  model.kinds[0].variants.push_back(fixed(1e-4, 100, 200));
  SegmentKind &layer = model.kinds[1];
  layer.name = "Layer";
  double forward = 1e-3 * static_cast<double>(whole(random, 5, 30));
  int64_t saved = 1000 * whole(random, 50, 100);
  double recompute = 0;
  for (int v = 0; v < variants; ++v) {
    SegmentVariant variant;
    variant.name = v == 0 ? "none" : v + 1 == variants ? "full" : "budget";
    variant.forwardSeconds = forward * static_cast<double>(microBatch);
    variant.recomputeSeconds = recompute * static_cast<double>(microBatch);
    variant.backwardSeconds =
        2 * variant.forwardSeconds + variant.recomputeSeconds;
    variant.savedBytes = saved * microBatch;
    variant.savedInputBytes = 2000 * microBatch;
    variant.forwardPeakBytes = (saved + 4000) * microBatch;
    variant.backwardPeakBytes =
        (6000 + 1000 * whole(random, 0, 40)) * microBatch;
    layer.variants.push_back(variant);
    saved = std::max<int64_t>(1000, saved - 1000 * whole(random, 10, 40));
    recompute += forward * 0.1 * static_cast<double>(whole(random, 1, 5));
  }
  model.kinds[2].name = "Head";
  model.kinds[2].loss = true;
  model.kinds[2].variants.push_back(fixed(4e-3, 21000, 60000));

  StepCall embedding = callOf(0, "embed", false);
  addParameter(model, embedding, "embed.weight", 20000);
  model.calls.push_back(embedding);
  for (int l = 0; l < layers; ++l) {
    StepCall call = callOf(1, "layers." + std::to_string(l), true);
    addParameter(model, call, call.path + ".norm.weight", 100);
    addParameter(model, call, call.path + ".attn.weight", 8000);
    addParameter(model, call, call.path + ".mlp.weight", 16000);
    model.calls.push_back(call);
  }
  StepCall head = callOf(2, "head", false);
  addParameter(model, head, "head.weight", 20000);
  model.calls.push_back(head);
  return model;
}

Candidate tinyCandidate(const StepModel &model, int64_t ranks) {
  Candidate c;
  c.mesh.resize("dp_shard", ranks);
  c.ranksPerNode = ranks;
  c.variants.assign(model.calls.size(), 0);
  c.offloadActivations.assign(model.calls.size(), false);
  c.unitOf.resize(model.parameters.size());
  for (size_t call = 0; call < model.calls.size(); ++call)
    for (int p : model.calls[call].parameters)
      c.unitOf[p] = static_cast<int>(call);
  c.reshardAfterForward.assign(model.calls.size(), true);
  c.reshardAfterForward.back() = false;
  return c;
}

namespace {

class Machine {
public:
  Machine(const TinyMachine &machine, const StepModel &model,
          const Candidate &candidate)
      : machine(machine), model(model), c(candidate),
        bytes(candidate.numUnits(), 0), first(candidate.numUnits(), -1),
        last(candidate.numUnits(), -1), arrives(candidate.numUnits(), 0),
        live(candidate.numUnits(), false) {
    for (size_t p = 0; p < model.parameters.size(); ++p) {
      bytes[c.unitOf[p]] += 2 * model.parameters[p].numel();
      held += 16 * model.parameters[p].numel() / c.shards().ranks;
    }
    for (size_t call = 0; call < model.calls.size(); ++call)
      for (int p : model.calls[call].parameters) {
        int u = c.unitOf[p];
        if (first[u] < 0) {
          first[u] = static_cast<int>(call);
          order.push_back(u);
        }
        last[u] = static_cast<int>(call);
      }
    if (c.offloadParameters)
      held = held / 4;
  }

  Evaluation run() {
    bool unsharded = !c.reduceEachMicroBatch && c.accumulation > 1;
    if (unsharded)
      for (int64_t b : bytes)
        held += 2 * b;
    for (int64_t a = 0; a < c.accumulation; ++a) {
      reduceNow = !unsharded || a + 1 == c.accumulation;
      forward();
      backward();
    }
    Evaluation j;
    j.bytes = peak;
    j.seconds = std::max(now, wire) + (c.offloadParameters ? held / 1e8 : 0);
    return j;
  }

private:
  const SegmentVariant &variant(size_t call) const {
    return model.kinds[model.calls[call].kind].variants[c.variants[call]];
  }
  int64_t parts(size_t call) const {
    return model.kinds[model.calls[call].kind].loss ? c.lossChunks : 1;
  }

  void gather(int unit) {
    if (live[unit])
      return;
    live[unit] = true;
    held += bytes[unit];
    double rate = c.offloadParameters ? machine.bytesPerSecond / 4
                                      : machine.bytesPerSecond;
    wire = std::max(wire, now) + machine.latencySeconds +
           static_cast<double>(bytes[unit]) / rate;
    arrives[unit] = wire;
  }
  void release(int unit) {
    if (live[unit])
      held -= bytes[unit];
    live[unit] = false;
  }
  void high(int64_t extra) { peak = std::max(peak, held + extra); }

  /// Gathers what the call reads and `ahead` units more.
  void await(size_t call, const std::vector<int> &sequence, int ahead) {
    for (int p : model.calls[call].parameters) {
      int u = c.unitOf[p];
      gather(u);
      auto it = std::find(sequence.begin(), sequence.end(), u);
      for (int k = 1; k <= ahead && it + k < sequence.end(); ++k)
        gather(*(it + k));
      now = std::max(now, arrives[u]);
    }
  }

  void forward() {
    for (size_t call = 0; call < model.calls.size(); ++call) {
      await(call, order, c.forwardPrefetch);
      const SegmentVariant &v = variant(call);
      high(v.forwardPeakBytes / parts(call));
      now += v.forwardSeconds + 2e-4 * static_cast<double>(parts(call) - 1);
      int64_t kept = v.savedBytes / parts(call) + v.savedInputBytes;
      if (c.offloadActivations[call])
        now += static_cast<double>(kept) / machine.hostBytesPerSecond;
      else
        held += kept;
      for (int u : order)
        if (last[u] == static_cast<int>(call) && c.reshardAfterForward[u])
          release(u);
    }
  }

  void backward() {
    std::vector<int> sequence(order.rbegin(), order.rend());
    for (size_t call = model.calls.size(); call-- > 0;) {
      await(call, sequence, c.backwardPrefetch);
      const SegmentVariant &v = variant(call);
      int64_t kept = v.savedBytes / parts(call) + v.savedInputBytes;
      if (c.offloadActivations[call]) {
        now += static_cast<double>(kept) / machine.hostBytesPerSecond;
        held += kept;
      }
      int64_t gradients = 0;
      for (int p : model.calls[call].parameters)
        gradients += 2 * model.parameters[p].numel();
      high(v.backwardPeakBytes / parts(call) + gradients);
      now += v.backwardSeconds;
      held -= kept;
      for (int u : order)
        if (first[u] == static_cast<int>(call)) {
          release(u);
          if (reduceNow)
            wire = std::max(wire, now) + machine.latencySeconds +
                   2 * static_cast<double>(bytes[u]) / machine.bytesPerSecond;
        }
    }
    now = std::max(now, wire);
  }

  const TinyMachine &machine;
  const StepModel &model;
  const Candidate &c;
  std::vector<int64_t> bytes;
  std::vector<int> first, last, order; // calls; units by first use
  std::vector<double> arrives;
  std::vector<bool> live;
  int64_t held = 0, peak = 0;
  double now = 0, wire = 0;
  bool reduceNow = true;
};

} // namespace

Evaluation TinyMachine::evaluate(const StepModel &model,
                                 const Candidate &candidate) const {
  return Machine(*this, model, candidate).run();
}

} // namespace accel::tune
