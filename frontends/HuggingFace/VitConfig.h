//===- VitConfig.h - config.json of ViT -------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_VITCONFIG_H
#define ACCEL_FRONTENDS_HUGGINGFACE_VITCONFIG_H

#include "frontends/HuggingFace/EncoderConfig.h"

#include <array>

namespace accel::huggingface {

/// What config.json says, with the defaults of transformers' ViTConfig.
struct VitConfig {
  ClassifierConfig classifier;
  int64_t hiddenSize = 768;
  int64_t intermediateSize = 3072;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t headDim = 64;
  std::array<int64_t, 2> image = {224, 224}, patch = {16, 16}; // rows, columns
  int64_t channels = 3;
  bool qkvBias = true;
  double layerNormEps = 1e-12;
  double initializerRange = 0.02;
  Activation activation = Activation::Gelu;
  double hiddenDropout = 0, attentionDropout = 0;
  std::optional<plan::DType> dtype;
  int64_t vocabSize = 0, maxPositions = 0; // no tokens

  int64_t patches() const {
    return (image[0] / patch[0]) * (image[1] / patch[1]);
  }
};

/// Reads a config.json whose model_type is vit; reports to `json`.
std::optional<VitConfig> readVit(ConfigReader &json);

/// transformers' ViTForImageClassification.
ModelInfo describeModel(const VitConfig &config);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_VITCONFIG_H
