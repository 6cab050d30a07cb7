//===- ExpertFamilies.h - Decoders with experts -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_EXPERTFAMILIES_H
#define ACCEL_FRONTENDS_HUGGINGFACE_EXPERTFAMILIES_H

#include "frontends/HuggingFace/DecoderReader.h"

namespace accel::huggingface {

/// Families whose layers have experts, but for mixtral and qwen3_moe
/// (MixtureConfig.cpp): from modeling_*.py of transformers 5.23.
struct ExpertFamilyReader : DecoderReader {
  void deepseekV3(); // glm4_moe_lite too
  void glm4Moe();
  void graniteMoe();
  void graniteMoeHybrid();
  void gptOss();
  void nemotronH();
  void olmoe();
  void qwen2Moe();
  void qwen35();

protected:
  void graniteLayers(); // all of Granite's but its positions and experts

private:
  void graniteMixture();
  /// yarn_apply_mscale of modeling_deepseek_v3.py.
  double scoreFactor();
  void latentAttention();
  void groupedMixture();
  /// Experts of Qwen3-Next and Qwen3.5.
  void deltaExperts();
  /// The expert of all tokens, times a gate of each (Qwen2-MoE).
  void shareExpert();
  /// Notes which layers have experts.
  bool hasExperts();
  void sigmoidRouter();
  void checkGroups();
  /// How many experts a token goes to, and the load balancing loss. `sparse`:
  /// a layer has experts.
  void router(bool sparse);
};

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_EXPERTFAMILIES_H
