//===- Trainers.cpp - Trainers that differ in their models alone ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What published runs were made with. Each is a description: how its models
// compute, and its optimizer's kernel. What shards them decides the rest.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/Framework.h"

namespace accel::frameworks {
namespace {

struct Description {
  const char *name;
  Kernels kernels;
  OptimizerKernel optimizer;
  const char *why;
  bool compilesLoss = false;
};

class Described final : public Trainer {
public:
  Described(const Description &description, const Framework &over)
      : Trainer(description.name, over), description(description) {}

  Kernels kernels(const Versions &, bool compiled) const override {
    Kernels k = description.kernels;
    k.compiled = compiled;
    if (compiled) { // into one kernel each
      k.norm = NormKernel::Fused;
      k.rotary = RotaryKernel::Fused;
      if (description.compilesLoss)
        k.loss = LossKernel::Compiled;
    }
    return k;
  }
  Choice<OptimizerKernel> optimizerKernel(bool cpu) const override {
    if (cpu)
      return Trainer::optimizerKernel(cpu);
    return {description.optimizer, description.why};
  }

private:
  const Description &description;
};

Kernels ownModel(NormKernel norm, RotaryKernel rotary, LossKernel loss) {
  Kernels k;
  k.transformers = false;
  k.norm = norm;
  k.rotary = rotary;
  k.loss = loss;
  k.repeatsKeys = true;
  k.lossOutside = true;
  k.selective = Selective::SecondMatmuls;
  return k;
}

/// What FlashAttention 1 attains of FlashAttention 2's rate: fitted to the runs
/// of 16k tokens and more; Dao (2023) states a half to two thirds.
constexpr double firstFlashAttention = 0.62;

Kernels mptModel() {
  Kernels k =
      ownModel(NormKernel::Fused, RotaryKernel::Fused, LossKernel::InPlace);
  k.attentionRate = firstFlashAttention;
  return k;
}

Kernels kempnerModel() {
  Kernels k = ownModel(NormKernel::WrittenWide, RotaryKernel::Halves,
                       LossKernel::Narrow);
  k.selective = Selective::AllButAttention;
  return k;
}

template <const Description &description>
std::unique_ptr<Framework> make(const Framework &over) {
  return std::make_unique<Described>(description, over);
}

/// llm-foundry's MPT: flash-attn 1 and its cross-entropy, DecoupledAdamW, which
/// is a loop over tensors.
const Description llmFoundry = {"llm-foundry", mptModel(),
                                OptimizerKernel::ForLoop,
                                "llm-foundry's DecoupledAdamW is a loop"};
/// ibm-fms's Llama; the compiled step has the loss in it.
const Description fmsFsdp = {
    "fms-fsdp",
    ownModel(NormKernel::Written, RotaryKernel::Complex, LossKernel::Wide),
    OptimizerKernel::Foreach, "torch's default on accelerators",
    /*compilesLoss=*/true};
const Description torchtune = {
    "torchtune",
    ownModel(NormKernel::Written, RotaryKernel::Complex, LossKernel::Wide),
    OptimizerKernel::Fused, "torchtune's configurations say fused: True",
    /*compilesLoss=*/true};
const Description kempnerForge = {"kempnerforge", kempnerModel(),
                                  OptimizerKernel::Fused,
                                  "KempnerForge's optimizer is fused"};

} // namespace

const TrainerEntry llmFoundryEntry = {"llm-foundry", FrameworkKind::Fsdp1,
                                      make<llmFoundry>};
const TrainerEntry fmsFsdpEntry = {"fms-fsdp", FrameworkKind::Fsdp1,
                                   make<fmsFsdp>};
const TrainerEntry torchtuneEntry = {"torchtune", FrameworkKind::Single,
                                     make<torchtune>};
const TrainerEntry kempnerForgeEntry = {"kempnerforge", FrameworkKind::Fsdp2,
                                        make<kempnerForge>};

} // namespace accel::frameworks
