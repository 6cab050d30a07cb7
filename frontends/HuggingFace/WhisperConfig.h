//===- WhisperConfig.h - config.json of Whisper -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_WHISPERCONFIG_H
#define ACCEL_FRONTENDS_HUGGINGFACE_WHISPERCONFIG_H

#include "frontends/HuggingFace/EncoderConfig.h"

namespace accel::huggingface {

/// What config.json says, with the defaults of transformers' WhisperConfig.
struct WhisperConfig {
  struct Stack {
    int64_t layers = 4, heads = 6, intermediateSize = 1536;
  } encoder, decoder;
  int64_t vocabSize = 51865;
  int64_t hiddenSize = 384;
  int64_t melBins = 80;
  int64_t sourcePositions = 1500;
  int64_t maxPositions = 448; // of the decoder
  double initStd = 0.02;
  std::optional<int64_t> padding = 50256;
  int64_t start = 50257; // the decoder's first token
  bool tieWordEmbeddings = true;
  Activation activation = Activation::Gelu;
  double dropout = 0, attentionDropout = 0, activationDropout = 0;
  std::optional<plan::DType> dtype;
};

/// Reads a config.json whose model_type is whisper; reports to `json`.
std::optional<WhisperConfig> readWhisper(ConfigReader &json);

/// transformers' WhisperForConditionalGeneration.
ModelInfo describeModel(const WhisperConfig &config);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_WHISPERCONFIG_H
