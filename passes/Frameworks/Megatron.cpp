//===- Megatron.cpp - What Megatron-Core does with a job ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Megatron-Core with Transformer Engine's layers, as Accelerate's
// MegatronLMPlugin, NeMo and Megatron-Bridge run it. Its model is its own:
// fused norms, rotary positions, SwiGLU and attention, and a cross-entropy of
// vocabulary-parallel logits. Weights have 16 bits, gradients are added up in
// one buffer beside them (core/distributed/param_and_grad_buffer.py), and the
// optimizer holds fp32 copies, sharded over the data-parallel ranks by the
// distributed optimizer (core/optimizer/distrib_optimizer.py).
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/Framework.h"

namespace accel::frameworks {
namespace {

class Megatron final : public Framework {
public:
  FrameworkKind kind() const override { return FrameworkKind::Megatron; }
  /// VocabParallelCrossEntropy (core/tensor_parallel/cross_entropy.py).
  bool gathersLogits() const override { return false; }
  bool namesHiddenStates() const override { return false; }
  /// Ranks of a data-parallel group hold the same parameters; who holds the
  /// optimizer's states is decided with its settings.
  plan::Mesh meshOf(const plan::Mesh &asked,
                    const RankGroups &) const override {
    plan::Mesh mesh = asked;
    mesh.resize("dp_replicate",
                asked.size("dp_replicate") * asked.size("dp_shard"));
    mesh.resize("dp_shard", 1);
    return mesh;
  }
  Precision precision(const PrecisionAsked &asked, plan::DType storage,
                      const Versions &) const override {
    Precision p;
    p.compute = asked.param ? *asked.param : asked.mixed.value_or(storage);
    p.storage = p.output = p.compute;
    p.masterCopy = p.compute != plan::DType::F32 && asked.masterCopies;
    // accumulate_allreduce_grads_in_fp32 is set for bf16
    // (megatron/training/arguments.py).
    const bool wide = p.compute != plan::DType::F16;
    p.gradient = p.reduce =
        asked.reduce.value_or(wide ? plan::DType::F32 : p.compute);
    p.state = plan::DType::F32;
    return p;
  }
  Kernels kernels(const Versions &, bool) const override {
    Kernels k;
    k.transformers = false;
    k.norm = NormKernel::Fused;
    k.rotary = RotaryKernel::Fused;
    k.fusedGate = true;
    k.loss = LossKernel::InPlaceWide;
    k.selective = Selective::CoreAttention;
    k.gathersAgain = true;
    k.cudnnAttention = true; // Transformer Engine's, on Hopper and Blackwell
    k.libraryRates = true;
    return k;
  }
  Choice<AccumulationMode> accumulation(const Versions &) const override {
    return {AccumulationMode::KeepUnsharded,
            "Megatron's schedules reduce gradients with the last micro-batch"};
  }
  Choice<OptimizerKernel> optimizerKernel(bool cpu) const override {
    if (cpu)
      return Framework::optimizerKernel(cpu);
    return {OptimizerKernel::Fused, "Megatron's Adam is Transformer Engine's "
                                    "or Apex's FusedAdam"};
  }
};

/// Before FlashAttention (2023), and in Megatron-DeepSpeed: the core of
/// attention is two batched matmuls with a fused scale, mask and softmax
/// between them, and dropout (DotProductAttention, fused_softmax.py).
class CoreAttention final : public Trainer {
public:
  explicit CoreAttention(const Framework &over)
      : Trainer("megatron-core-attention", over) {}
  bool gathersLogits() const override { return over.gathersLogits(); }
  Kernels kernels(const Versions &versions, bool compiled) const override {
    Kernels k = over.kernels(versions, compiled);
    k.attention = AttentionKernel::FusedSoftmax;
    return k;
  }
  Choice<AccumulationMode>
  accumulation(const Versions &versions) const override {
    return over.accumulation(versions);
  }
  Choice<OptimizerKernel> optimizerKernel(bool cpu) const override {
    return over.optimizerKernel(cpu);
  }
};

} // namespace

const Framework &megatron() {
  static const Megatron object;
  return object;
}

const TrainerEntry coreAttentionEntry = {
    "megatron-core-attention", FrameworkKind::Megatron,
    [](const Framework &over) -> std::unique_ptr<Framework> {
      return std::make_unique<CoreAttention>(over);
    }};

} // namespace accel::frameworks
