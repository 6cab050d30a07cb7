//===- LlamaConfig.h - config.json of the Llama family ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What transformers' LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM and
// Qwen3ForCausalLM, and their kin with experts (MixtralForCausalLM,
// Qwen3MoeForCausalLM), read from config.json, with their defaults, in the
// spellings of transformers 4 (rope_theta, rope_scaling, torch_dtype) and 5
// (rope_parameters, dtype). A setting that changes what is computed and that is
// not modelled is refused, never dropped.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_LLAMACONFIG_H
#define ACCEL_FRONTENDS_HUGGINGFACE_LLAMACONFIG_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/HuggingFace/Decoder.h"
#include "frontends/HuggingFace/Mixture.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace accel::huggingface {

class ConfigReader;

enum class Family { Llama, Mistral, Qwen2, Qwen3, Mixtral, Qwen3Moe };

struct LlamaConfig {
  Family family = Family::Llama;
  std::string classPrefix = "Llama"; // of module classes: "LlamaDecoderLayer"
  int64_t vocabSize = 0;
  int64_t hiddenSize = 0;
  int64_t intermediateSize = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t keyValueHeads = 0;
  int64_t headDim = 0;
  int64_t maxPositions = 0;
  double rmsNormEps = 1e-6;
  double initializerRange = 0.02; // standard deviation of initial weights
  bool tieWordEmbeddings = false;
  bool queryKeyValueBias = false; // of q_proj, k_proj, v_proj
  bool outputBias = false;        // of o_proj
  bool mlpBias = false;
  bool queryKeyNorm = false; // q_norm, k_norm over head_dim
  Rope rope;
  Mixture mixture;
  double attentionDropout = 0; // probability, of attention weights
  /// By layer: how many keys a query sees; 0, or nothing at all: every one.
  std::vector<int64_t> windows;
  std::string activationClass = "SiLUActivation";
  /// Row of the embedding that stays zero and gets no gradient.
  std::optional<int64_t> paddingIndex;
  /// Dtype of the checkpoint, if config.json tells.
  std::optional<plan::DType> dtype;
};

/// The family that a config.json says it is; reports where it says none.
std::optional<std::string> modelType(ConfigReader &json);

/// True for the model_type of one of the families above.
bool isLlamaFamily(const std::string &modelType);

/// Reads a config.json of such a family; reports to `json`.
std::optional<LlamaConfig> readLlama(ConfigReader &json);
/// The same of a model_type that is known, which may be that of a language
/// model inside one of images: "qwen2_5_vl_text".
std::optional<LlamaConfig> readLlama(ConfigReader &json,
                                     const std::string &modelType);

/// Reads the experts of mixtral and qwen3_moe into `config`, whose sizes are
/// read; reports to `json`.
void readMixture(ConfigReader &json, LlamaConfig &config);

/// The same as readLlama from text; `path` is for messages.
std::optional<LlamaConfig> parseLlamaConfig(const std::string &text,
                                            const std::string &path,
                                            DiagnosticEngine &diagnostics);

/// The ...ForCausalLM that transformers makes of `config`.
ModelInfo describeModel(const LlamaConfig &config);

/// The same as the builder reads it.
Decoder decoderOf(const LlamaConfig &config);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_LLAMACONFIG_H
