//===- ModelSizes.h - A decoder's sizes, and its config.json ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_MODELSIZES_H
#define ACCEL_PASSES_VALIDATE_MODELSIZES_H

#include <cstdint>
#include <optional>
#include <string>

namespace accel::validate {

/// Sizes of a decoder-only transformer.
struct ModelSizes {
  int64_t layers = 0, hidden = 0, heads = 0, keyValueHeads = 0, ffn = 0,
          vocab = 0;
  /// The model_type whose config.json describes it: llama, mistral, qwen2; gpt2
  /// for models with LayerNorm, learned positions, biases and GELU.
  std::string family = "llama";
  bool tied = false;  // one table for embedding and head
  double dropout = 0; // gpt2: of embeddings, attention and residuals
};

/// Sizes of a model by its published name ("llama3.1-8b", "meta-llama/
/// Llama-2-7b-hf"), or nothing.
std::optional<ModelSizes> knownModel(const std::string &name);

/// The config.json of a published model that ships with the compiler
/// (huggingface::publishedModels), or of one that only tables of runs name or
/// describe otherwise (data/models.json), for sequences of `positions` tokens;
/// sizes of `stated` that are not 0 go before its own. Nothing for others.
std::optional<std::string> shippedConfig(const std::string &name,
                                         const ModelSizes &stated,
                                         int64_t positions);

/// A name as models are compared: without owner, punctuation and what follows
/// a bracket, in lower case, without "meta", "instruct", "hf" and the like.
std::string modelKey(const std::string &name);

/// The config.json of such a model for sequences of `positions` tokens.
std::string configJson(const ModelSizes &sizes, int64_t positions);

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_MODELSIZES_H
