//===- Torchtitan.cpp - What torchtitan does with a job -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/Framework.h"

namespace accel::frameworks {
namespace {

/// torchtitan's train.py over fully_shard (or DDP). It pins a nightly of torch,
/// so that the release of torch tells its own: 2.4 is the first half of 2024,
/// 2.6 the end of 2024, 2.9 the summer of 2025.
class Torchtitan final : public Trainer {
public:
  explicit Torchtitan(const Framework &over) : Trainer("torchtitan", over) {}

  /// Shards in fp32 (the model is made in fp32), compute in the dtype of
  /// training.mixed_precision_param, reductions in fp32
  /// (mixed_precision_reduce; config_manager.py).
  Precision precision(const PrecisionAsked &asked, plan::DType storage,
                      const Versions &versions) const override {
    if (!unshards())
      return over.precision(asked, storage, versions);
    Precision p;
    p.storage = p.gradient = p.state = p.reduce = plan::DType::F32;
    p.compute = asked.param ? *asked.param : asked.mixed.value_or(p.storage);
    p.output = p.compute;
    return p;
  }

  Kernels kernels(const Versions &versions, bool compiled) const override {
    Kernels k;
    k.transformers = false;
    k.compiled = compiled;
    // A fused norm of its own until August 2024, nn.RMSNorm since, which
    // torch runs operator by operator until 2.9; torch.compile fuses both.
    const bool fused = compiled || !atLeast(versions.torch, "2.5") ||
                       atLeast(versions.torch, "2.10");
    k.norm = fused ? NormKernel::Fused : NormKernel::Written;
    k.rotary = compiled ? RotaryKernel::Fused : RotaryKernel::Complex;
    k.repeatsKeys = true;
    // components/loss.py compiles cross_entropy_loss since February 2025.
    k.loss = compiled && atLeast(versions.torch, "2.7") ? LossKernel::Compiled
                                                        : LossKernel::Wide;
    k.lossOutside = true;
    k.selective = Selective::SecondMatmuls;
    k.dtensor = true;
    return k;
  }

  /// parallelize_llama's apply_tp: SequenceParallel for norms, and
  /// PrepareModuleInput between layers.
  bool shardsSequence() const override { return true; }
  // The loss is made of what the model has returned.
  bool namesHiddenStates() const override { return false; }

  /// parallelize_llama's apply_fsdp. Until mid-2025 the root held the embedding
  /// and the head, and the last block was not resharded.
  std::optional<LayerUnits>
  layerUnits(const Versions &versions) const override {
    if (!unshards())
      return std::nullopt;
    LayerUnits units;
    units.ends = atLeast(versions.torch, "2.9");
    units.keepsLastLayer = !units.ends;
    units.why = units.ends ? "torchtitan's apply_fsdp: tok_embeddings; each "
                             "block; norm and output"
                           : "torchtitan's apply_fsdp until mid-2025: each "
                             "block; the root";
    return units;
  }

  Choice<Recompute> recompute() const override {
    return {Recompute::Pointwise,
            "torchtitan's configurations have activation_checkpoint.mode "
            "'selective' per operator: attention and every second matmul are "
            "saved"};
  }
  /// optimizer.implementation: "fused" on accelerators.
  Choice<OptimizerKernel> optimizerKernel(bool cpu) const override {
    if (cpu)
      return Trainer::optimizerKernel(cpu);
    return {OptimizerKernel::Fused,
            "torchtitan's optimizer.implementation is fused"};
  }
};

} // namespace

const TrainerEntry torchtitanEntry = {
    "torchtitan", FrameworkKind::Fsdp2,
    [](const Framework &over) -> std::unique_ptr<Framework> {
      return std::make_unique<Torchtitan>(over);
    }};

} // namespace accel::frameworks
