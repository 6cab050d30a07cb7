//===- TransformersOptimizers.cpp - Names of TrainingArguments.optim ------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Optimizers.h"

namespace accel::plan {

const std::vector<TransformersOptimizer> &transformersOptimizers() {
  using K = UpdateKernel;
  // Those of 32 bits have the descriptions of torch's.
  static const char *noDTensors = findOptimizer("adamw_8bit")->failsOnDTensors;
  constexpr UpdateHabits apart{.oneByOne = true},
      paged{.oneByOne = true, .paged = true},
      narrow{.oneByOne = true, .wideEmbeddings = true},
      pagedNarrow{.oneByOne = true, .paged = true, .wideEmbeddings = true};
  static const std::vector<TransformersOptimizer> list = {
      {"adamw_torch", "adamw"},
      {"adamw_torch_fused", "adamw", K::Fused},
      {"sgd", "sgd"},
      {"lion_32bit", "lion", K::Fused, DType::F32, noDTensors, apart},
      {"paged_lion_32bit", "lion", K::Fused, DType::F32, noDTensors, paged},
      {"adafactor", "adafactor", K::ForLoop},
      // Of torch, not names of transformers.
      {"adafactor_torch", "adafactor_torch", K::ForLoop},
      {"muon", "muon", K::ForLoop},
      {"adamw_bnb_8bit", "adamw_8bit", K::Fused, std::nullopt, nullptr, narrow},
      {"adamw_8bit", "adamw_8bit", K::Fused, std::nullopt, nullptr, narrow},
      {"paged_adamw_8bit", "adamw_8bit", K::Fused, std::nullopt, nullptr,
       pagedNarrow},
      {"lion_8bit", "lion_8bit", K::Fused, std::nullopt, nullptr, narrow},
      {"paged_lion_8bit", "lion_8bit", K::Fused, std::nullopt, nullptr,
       pagedNarrow},
      {"paged_adamw_32bit", "adamw", K::Fused, DType::F32, noDTensors, paged},
      // Compiled for each parameter; nothing waits for the device.
      {"adamw_torch_8bit", "adamw_torchao_8bit", K::Fused},
      {"adamw_torch_4bit", "adamw_torchao_4bit", K::Fused},
      {"adagrad", "adagrad"},
      {"rmsprop", "rmsprop"},
      {"rmsprop_bnb", "rmsprop", K::Fused, DType::F32, noDTensors, apart},
      {"rmsprop_bnb_32bit", "rmsprop", K::Fused, DType::F32, noDTensors, apart},
      {"rmsprop_bnb_8bit", "rmsprop_8bit", K::Fused, std::nullopt, nullptr,
       narrow},
      {"ademamix", "ademamix", K::Fused, DType::F32, nullptr, apart},
      {"ademamix_8bit", "ademamix_8bit", K::Fused, std::nullopt, nullptr,
       narrow},
      {"paged_ademamix_32bit", "ademamix", K::Fused, DType::F32, nullptr,
       paged},
      {"paged_ademamix_8bit", "ademamix_8bit", K::Fused, std::nullopt, nullptr,
       pagedNarrow},
      {"adamw_torch_xla"},
      {"adamw_torch_npu_fused"},
      {"adamw_anyprecision"},
      {"galore_adamw"},
      {"galore_adamw_8bit"},
      {"galore_adafactor"},
      {"galore_adamw_layerwise"},
      {"galore_adamw_8bit_layerwise"},
      {"galore_adafactor_layerwise"},
      {"lomo"},
      {"adalomo"},
      {"grokadamw"},
      {"schedule_free_radam"},
      {"schedule_free_adamw"},
      {"schedule_free_sgd"},
      {"apollo_adamw"},
      {"apollo_adamw_layerwise"},
      {"stable_adamw"}};
  return list;
}

const TransformersOptimizer *
findTransformersOptimizer(const std::string &name) {
  for (const TransformersOptimizer &known : transformersOptimizers())
    if (name == known.name)
      return &known;
  return nullptr;
}

} // namespace accel::plan
