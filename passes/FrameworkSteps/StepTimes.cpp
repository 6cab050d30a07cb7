//===- StepTimes.cpp - Seconds of a step's units and calls ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Collectives of units, and what calls compute: on the device, or as long as
// the CPU of an eager framework takes to launch it.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StepLayout.h"

#include "passes/Cost/OpCost.h"

#include <algorithm>

namespace accel {

UnitTimes StepLayout::timesOf(const UnitSizes &unit) const {
  UnitTimes t;
  const plan::AxisGroup &owners = isApart(unit) ? sameExperts : shards;
  const auto bytes = [](int64_t n) { return static_cast<double>(n); };
  const double shardCompute =
      bytes(unit.gatherOutput) / static_cast<double>(unit.ranks);
  t.copyIn = (unit.cast ? copyTime(bytes(unit.shardStored + unit.cast)) : 0) +
             copyTime(2 * shardCompute);
  t.gather = toPicoseconds(collectiveSeconds(target, Collective::AllGather,
                                             owners, bytes(unit.gatherOutput)));
  t.copyOut = copyTime(2 * bytes(unit.unsharded));
  t.reduceCopy = copyTime(bytes(unit.gradients + unit.reduceInput));
  t.reduce = toPicoseconds(collectiveSeconds(target, Collective::ReduceScatter,
                                             owners, bytes(unit.reduceInput)));
  t.allReduce = toPicoseconds(collectiveSeconds(
      target, Collective::AllReduce, replicas, bytes(unit.reduceOutput)));
  t.castGradient = unit.shardGradient
                       ? copyTime(bytes(unit.reduceOutput + unit.shardGradient))
                       : 0;
  t.add = copyTime(
      3 * bytes(unit.shardGradient ? unit.shardGradient : unit.reduceOutput));
  if (candidate->offloadParameters) {
    t.hostIn = hostTime(bytes(unit.shardStored));
    t.hostOut = hostTime(
        bytes(unit.shardGradient ? unit.shardGradient : unit.reduceOutput));
  }
  return t;
}

/// Each chunk of a loss adds its gradient to the whole head's, and its three
/// matmuls read or write the head: with few rows that takes longer than
/// their FLOPs, which the segment's time has.
const StepParameter *StepLayout::headOf(int call) const {
  const StepParameter *head = nullptr;
  for (int p : model.calls[call].parameters)
    if (!head || model.parameters[p].numel() > head->numel())
      head = &model.parameters[p];
  return head;
}

int64_t StepLayout::headCastBytes(int call) const {
  const StepParameter *head = headOf(call);
  return head && candidate->dtypes.autocast && !head->quantized() &&
                 dtypes().freshGradient(*head) == plan::DType::F32
             ? round(head->numel() * plan::itemSize(candidate->dtypes.compute))
             : 0;
}

/// Liger's fused linear cross-entropy (liger_kernel/ops/
/// fused_linear_cross_entropy.py): for each part of the rows the logits, a
/// kernel that reads them twice and writes their gradient over them, the
/// gradient of the input, and a matmul that adds to the weight's.
Picoseconds StepLayout::lossPartsTime(int call) const {
  const StepParameter *weight = headOf(call);
  const bool trained = weight && weight->trainable;
  const plan::DType dtype = candidate->dtypes.compute;
  const auto bytes = static_cast<double>((weight ? weight->numel() : 0) *
                                         plan::itemSize(dtype));
  const auto parts = static_cast<double>(candidate->lossChunks);
  const double flops = kind(call).forwardFlops / parts / target.flops(dtype);
  auto product = [&](double moved) {
    return toPicoseconds(parts * std::max(flops, memorySeconds(target, moved)));
  };
  return 2 * product(bytes) + (trained ? product(2 * bytes) : 0) +
         copyTime(3 * static_cast<double>(kind(call).logitsBytes));
}

Picoseconds StepLayout::lossGradientsTime(int call) const {
  const StepParameter *weight = headOf(call);
  const int64_t trained =
      weight && weight->trainable
          ? weight->numel() * plan::itemSize(candidate->dtypes.compute)
          : 0;
  return copyTime(2 *
                  static_cast<double>(trained + kind(call).inputGradientBytes));
}

/// What a view takes of the CPU, in operators that launch: it passes the
/// dispatcher and autograd, and makes a tensor, but no kernel. Measured on one
/// core with a forward and backward of tiny tensors: 5.2 us for view and
/// transpose, 10.1 us for mul, 13.3 us for mm.
constexpr double viewDispatch = 0.5;
/// The same of a kernel that Inductor's code launches: an output is allocated
/// and a launcher called, without autograd and the dispatcher. Measured in the
/// same way: 6.0 us for empty_strided and extern_kernels.mm(out=), where an
/// operator of an eager model takes 20 with the Python around it.
constexpr double kernelDispatch = 0.3;
/// What a layer that computes again takes beside its operators: states of the
/// random generators, and hooks for each saved tensor but where checkpoints are
/// reentrant. Measured over the stand-in GPU (test/bench/host_time.py): 39 to
/// 157 operators, 68 in the median of four families; reentrant 10 to 31, 22.
constexpr double checkpointDispatch = 68, reentrantDispatch = 22;

/// What wrappers' hooks in Python take beside the operators, half of it in the
/// forward, measured likewise with llama and gpt_neox: 85 and 120 operators for
/// a unit of FSDP2, 104 and 107 for one of FSDP1, and in the backward of ZeRO-1
/// and 2 9 and 12 for a gradient; of llama, qwen2 and gpt_neox 52, 58 and 58
/// for a module of ZeRO-3 that has parameters, in the mean of three runs.
constexpr double fsdp2UnitDispatch = 100, fsdp1UnitDispatch = 105;
constexpr double zero3ModuleDispatch = 56, zeroGradientDispatch = 10;

std::vector<StepLayout::HostOps> StepLayout::hooksOfWrapper() const {
  std::vector<HostOps> hooks(model.calls.size());
  const bool fsdp2 = candidate->executor == FrameworkKind::Fsdp2;
  if (fsdp2 || candidate->executor == FrameworkKind::Fsdp1) {
    const double half = (fsdp2 ? fsdp2UnitDispatch : fsdp1UnitDispatch) / 2;
    for (const UnitSizes &unit : units)
      if (unit.firstCall >= 0) {
        hooks[unit.firstCall].forward += half;
        hooks[unit.lastCall].backward += half;
      }
  }
  if (candidate->executor != FrameworkKind::Deepspeed)
    return hooks;
  for (size_t c = 0; c < hooks.size(); ++c) {
    const StepCall &call = model.calls[c];
    if (candidate->zeroStage == 3) {
      const double half = modules[c] * zero3ModuleDispatch / 2;
      hooks[c].forward = half;
      hooks[c].backward =
          variant(static_cast<int>(c)).recomputeSeconds > 0 ? 2 * half : half;
    } else if (candidate->zeroStage > 0) {
      hooks[c].backward =
          zeroGradientDispatch *
          static_cast<double>(std::count_if(
              call.parameters.begin(), call.parameters.end(),
              [&](int p) { return model.parameters[p].trainable; }));
    }
  }
  return hooks;
}

double StepLayout::checkpointOps(const SegmentVariant &variant) const {
  if (variant.recomputeSeconds <= 0 ||
      candidate->executor == FrameworkKind::Megatron)
    return 0;
  return candidate->reentrantCheckpoints ? reentrantDispatch
                                         : checkpointDispatch;
}

/// Of a call of `all`, what it takes because ranks exchange for `exchange`
/// seconds: the host, which launches for `host`, goes on meanwhile.
static Picoseconds exchangeTime(double exchange, double device, double host,
                                Picoseconds all) {
  const Picoseconds without = toPicoseconds(std::max(device - exchange, host));
  return std::clamp<Picoseconds>(all - without, 0, toPicoseconds(exchange));
}

void StepLayout::measureTimes() {
  times.assign(units.size(), UnitTimes());
  for (size_t u = 0; u < units.size(); ++u) {
    times[u] = u > 0 && units[u - 1].sameSizes(units[u]) ? times[u - 1]
                                                         : timesOf(units[u]);
  }
  // An eager framework's CPU thread may be slower than its device.
  const double dispatch =
      candidate->executor == FrameworkKind::AccelRun || candidate->compiled
          ? 0
          : target.dispatchSeconds;
  const std::vector<HostOps> hooks = hooksOfWrapper();
  calls.assign(model.calls.size(), CallCost());
  for (size_t c = 0; c < calls.size(); ++c) {
    const int call = static_cast<int>(c);
    const SegmentVariant &v = variant(call);
    if (c > 0 && model.calls[c].kind == model.calls[c - 1].kind &&
        candidate->variants[c] == candidate->variants[c - 1] &&
        hooks[c] == hooks[c - 1] &&
        (graphCopies.empty() || graphCopies[c] == graphCopies[c - 1])) {
      calls[c] = calls[c - 1];
    } else {
      const bool inParts = candidate->lossChunks > 1 && kind(call).loss;
      double forward = v.forwardSeconds, backward = v.backwardSeconds;
      if (inParts) {
        forward -= kind(call).forwardLogitsSeconds;
        backward -= kind(call).backwardLogitsSeconds;
      }
      if (dispatch > 0) {
        forward = std::max(forward, v.forwardQueued);
        backward = std::max(backward, v.backwardQueued);
      }
      double forwardHost = dispatch * (v.forwardOps + hooks[c].forward +
                                       viewDispatch * v.forwardViews);
      double backwardHost =
          dispatch * (v.backwardOps + hooks[c].backward + checkpointOps(v) +
                      viewDispatch * v.backwardViews);
      if (candidate->compiled) {
        // Wrappers' hooks run in Python between graphs.
        forwardHost = target.dispatchSeconds * hooks[c].forward;
        backwardHost = target.dispatchSeconds * hooks[c].backward;
      }
      // torch.compile leaves Liger's kernels as they are.
      if (candidate->compiled && !inParts) {
        // One launch starts a graph.
        const double kernel =
            target.dispatchSeconds * (isReplayed(call) ? 0 : kernelDispatch);
        const double graph = startsGraph(call) ? target.dispatchSeconds : 0;
        forward = v.compiledForwardSeconds;
        backward = v.compiledBackwardSeconds;
        forwardHost += graph + kernel * v.compiledForwardKernels;
        backwardHost += graph + kernel * v.compiledBackwardKernels;
      }
      calls[c].forward = toPicoseconds(std::max(forward, forwardHost));
      calls[c].backward = toPicoseconds(std::max(backward, backwardHost));
      calls[c].forwardExchange = exchangeTime(v.forwardExchangeSeconds, forward,
                                              forwardHost, calls[c].forward);
      calls[c].backwardExchange =
          exchangeTime(v.backwardExchangeSeconds + v.recomputeExchangeSeconds,
                       backward, backwardHost, calls[c].backward);
      calls[c].recompute =
          toPicoseconds(v.recomputeSeconds - v.recomputeExchangeSeconds);
      if (inParts) {
        calls[c].forward += lossPartsTime(call);
        calls[c].backward += lossGradientsTime(call);
      }
      if (isReplayed(call)) {
        const GraphCopies &copies = graphCopies[c];
        calls[c].forward +=
            copyTime(2.0 * static_cast<double>(copies.held + copies.passing));
        calls[c].backward +=
            copyTime(2.0 * static_cast<double>(copies.tangents));
      }
    }
    CallCost &cost = calls[c];
    cost.freshGradients = cost.summedGradients = 0;
    cost.waitingGradients = cost.awaitedGradients = 0;
    for (int p : model.calls[c].parameters) {
      const int64_t bytes = freshGradientBytes(p);
      if (model.parameters[p].trainable && lastUser[p] == call)
        cost.freshGradients += bytes;
      else if (sumsApart(p))
        cost.summedGradients += bytes;
      if (waits(p) && lastUser[p] == call)
        cost.waitingGradients += bytes;
      if (waits(p) && firstUser[p] == call)
        cost.awaitedGradients += bytes;
    }
  }
}

} // namespace accel
