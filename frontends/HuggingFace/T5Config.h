//===- T5Config.h - config.json of T5 ---------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_T5CONFIG_H
#define ACCEL_FRONTENDS_HUGGINGFACE_T5CONFIG_H

#include "frontends/HuggingFace/EncoderConfig.h"

namespace accel::huggingface {

/// What config.json says, with the defaults of transformers' T5Config.
struct T5Config {
  int64_t vocabSize = 32128;
  int64_t hiddenSize = 512;
  int64_t headDim = 64;
  int64_t intermediateSize = 2048;
  int64_t layers = 6, decoderLayers = 6;
  int64_t heads = 8;
  int64_t buckets = 32, maxDistance = 128; // of relative positions
  double layerNormEps = 1e-6;
  double initializerFactor = 1;
  int64_t padding = 0;
  int64_t start = 0; // the decoder's first token
  Activation activation = Activation::Relu;
  bool gated = false;
  /// The LM head has a weight of its own. No config.json says so (transformers
  /// 5 ties T5 always); the files of T5 1.1 do, which hold both weights.
  bool ownHead = false;
  /// The decoder's output is multiplied by hidden size ^ -0.5, as in T5 and not
  /// in T5 1.1.
  bool scaleOutput = true;
  double dropout = 0;
  std::optional<plan::DType> dtype;
  /// Relative positions have no end.
  int64_t maxPositions = int64_t(1) << 30;

  int64_t inner() const { return heads * headDim; }
};

/// Reads a config.json whose model_type is t5; reports to `json`.
std::optional<T5Config> readT5(ConfigReader &json);

/// transformers' T5ForConditionalGeneration.
ModelInfo describeModel(const T5Config &config);

/// The bucket of the bias for a key at `distance` from the query (positive:
/// behind it), as T5Attention._relative_position_bucket computes it in fp32.
int64_t relativeBucket(int64_t distance, bool bidirectional, int64_t buckets,
                       int64_t maxDistance);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_T5CONFIG_H
