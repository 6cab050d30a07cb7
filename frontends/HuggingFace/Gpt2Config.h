//===- Gpt2Config.h - config.json of GPT-2 ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_GPT2CONFIG_H
#define ACCEL_FRONTENDS_HUGGINGFACE_GPT2CONFIG_H

#include "frontends/HuggingFace/Activation.h"
#include "frontends/HuggingFace/ModelInfo.h"

#include <optional>

namespace accel::huggingface {

class ConfigReader;

/// What config.json says, with the defaults of transformers' GPT2Config.
struct Gpt2Config {
  int64_t vocabSize = 50257;
  int64_t hiddenSize = 768;
  int64_t intermediateSize = 3072;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t maxPositions = 1024;
  double layerNormEps = 1e-5;
  double initializerRange = 0.02;
  bool tieWordEmbeddings = true;
  bool scaleAttention = true; // by 1 / sqrt(head size)
  Activation activation = Activation::GeluNew;
  /// Probabilities of dropout: of embeddings, attention weights, and what is
  /// added to the residual.
  double embeddingDropout = 0.1, attentionDropout = 0.1, residualDropout = 0.1;
  std::optional<plan::DType> dtype;
  /// Models of the same shape without learned positions or without biases
  /// (MPT): no config.json of GPT-2 says so, cost models do.
  bool learnedPositions = true, biases = true;
};

/// Reads a config.json whose model_type is gpt2; reports to `json`.
std::optional<Gpt2Config> readGpt2(ConfigReader &json);

/// transformers' GPT2LMHeadModel.
ModelInfo describeModel(const Gpt2Config &config);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_GPT2CONFIG_H
