//===- LigerInputs.cpp - Models that Liger Kernel knows -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/LigerInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"

#include <algorithm>

namespace accel {

/// Those of MODEL_TYPE_TO_APPLY_LIGER_FN (liger_kernel/transformers/
/// monkey_patch.py, 0.8.2) that a config.json makes a graph of here.
static constexpr const char *ligerTypes[] = {
    "exaone4",   "gemma",       "gemma2",
    "gemma3",    "gemma3_text", "glm4",
    "gpt_oss",   "granite",     "hunyuan_v1_dense",
    "llama",     "ministral",   "mistral",
    "mixtral",   "olmo2",       "olmo3",
    "phi3",      "qwen2",       "qwen3",
    "qwen3_moe", "smollm3"};

bool hasLigerKernels(const PlanInputs &inputs) {
  const huggingface::ModelConfig *config = inputs.model.config();
  // axolotl fuses head and loss of any model (patch_lce_forward of its plugin).
  return !config || inputs.job.script.owner == "axolotl" ||
         std::find(std::begin(ligerTypes), std::end(ligerTypes),
                   config->modelType) != std::end(ligerTypes);
}

void checkLiger(PlanInputs &inputs, DiagnosticEngine &engine) {
  Setting<bool> &asked = inputs.job.script.fusedLoss;
  const huggingface::ModelConfig *config = inputs.model.config();
  // It has kernels for them, some of which replace modules that plans do not
  // know in that form.
  if (*asked && config && config->hasDeltaRule()) {
    engine.report(diagnosticAt(asked, Severity::Error, notSupportedCode,
                               "what Liger Kernel computes of models of type "
                               "'" +
                                   config->modelType + "' is not modelled yet",
                               "leave it out to plan the model as it runs "
                               "without it"));
    return;
  }
  if (!*asked || hasLigerKernels(inputs))
    return;
  engine.report(
      diagnosticAt(asked, Severity::Warning, "liger-kernels",
                   "Liger Kernel has nothing for models of type '" +
                       inputs.model.config()->modelType +
                       "': their own modules and their own loss compute",
                   "leave it out"));
  asked.value = false;
}

} // namespace accel
