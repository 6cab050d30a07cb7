//===- BertConfig.h - config.json of BERT and RoBERTa -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_BERTCONFIG_H
#define ACCEL_FRONTENDS_HUGGINGFACE_BERTCONFIG_H

#include "frontends/HuggingFace/EncoderConfig.h"

namespace accel::huggingface {

/// What config.json says, with the defaults of transformers' BertConfig and
/// RobertaConfig.
struct BertConfig {
  bool roberta = false;
  /// Of ...ForSequenceClassification; ...ForMaskedLM has none.
  std::optional<ClassifierConfig> classifier;
  int64_t vocabSize = 30522;
  int64_t hiddenSize = 768;
  int64_t intermediateSize = 3072;
  int64_t layers = 12;
  int64_t heads = 12;
  /// Tokens that fit, and rows of the table: RoBERTa's positions start behind
  /// the padding id.
  int64_t maxPositions = 512, positionRows = 512;
  int64_t typeVocabSize = 2;
  double layerNormEps = 1e-12;
  double initializerRange = 0.02;
  std::optional<int64_t> padding; // row of the embeddings
  bool tieWordEmbeddings = true;
  Activation activation = Activation::Gelu;
  double hiddenDropout = 0, attentionDropout = 0, classifierDropout = 0;
  std::optional<plan::DType> dtype;

  const char *base() const { return roberta ? "roberta" : "bert"; }
};

/// Reads a config.json whose model_type is bert or roberta; reports to `json`.
std::optional<BertConfig> readBert(ConfigReader &json, bool roberta);

ModelInfo describeModel(const BertConfig &config);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_BERTCONFIG_H
