//===- ScriptSettings.cpp - Names of what a script sets -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Job/ScriptSettings.h"

namespace accel {

const char *toString(TrainerKind kind) {
  constexpr const char *names[] = {"none", "Trainer", "SFTTrainer",
                                   "DPOTrainer", "GRPOTrainer"};
  return names[static_cast<int>(kind)];
}

const char *toString(AttentionKernel kernel) {
  constexpr const char *names[] = {"sdpa", "eager", "flash_attention_2",
                                   "flash_attention_3", "flex_attention"};
  return names[static_cast<int>(kernel)];
}

} // namespace accel
