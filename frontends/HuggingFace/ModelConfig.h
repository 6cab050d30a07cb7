//===- ModelConfig.h - Any supported config.json ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_MODELCONFIG_H
#define ACCEL_FRONTENDS_HUGGINGFACE_MODELCONFIG_H

#include "frontends/HuggingFace/BertConfig.h"
#include "frontends/HuggingFace/Decoder.h"
#include "frontends/HuggingFace/Gpt2Config.h"
#include "frontends/HuggingFace/LlamaConfig.h"
#include "frontends/HuggingFace/T5Config.h"
#include "frontends/HuggingFace/VitConfig.h"
#include "frontends/HuggingFace/WhisperConfig.h"

#include <variant>

namespace accel::huggingface {

/// A model of one of the supported families.
struct ModelConfig {
  std::variant<LlamaConfig, Gpt2Config, DecoderConfig, BertConfig, VitConfig,
               T5Config, WhisperConfig>
      family;
  std::string modelType = ""; // as config.json names it
  int64_t vocabSize() const;
  /// The longest sequence that the model was made for, in tokens.
  int64_t maxPositions() const;
  /// False where samples are no sequences of tokens (images).
  bool hasTokens() const { return maxPositions() > 0; }
  /// The length that is planned where none is asked for.
  int64_t defaultLength() const;
  /// Dtype of the checkpoint, if config.json tells.
  std::optional<plan::DType> dtype() const;
  /// Whether layers compute a gated delta rule (Qwen3-Next, Qwen3.5).
  bool hasDeltaRule() const;
  /// Whether layers are Mamba-2 mixers (Nemotron-H).
  bool hasMamba() const;
};

/// The decoder that `config` describes; null where `config` is null or of a
/// family with a description of its own.
const DecoderConfig *decoderOf(const ModelConfig *config);

/// Reads `path`, a config.json or a folder that holds one, by its model_type.
/// Reports to `diagnostics` and returns nothing where the file is missing or
/// invalid, or where it asks for something that is not supported yet.
std::optional<ModelConfig> readModelConfig(const std::string &path,
                                           DiagnosticEngine &diagnostics);

/// The same for text that is already read; `path` is for messages.
std::optional<ModelConfig> parseModelConfig(const std::string &text,
                                            const std::string &path,
                                            DiagnosticEngine &diagnostics);

/// What a script makes of 'output_router_logits' and 'router_aux_loss_coef':
/// the experts' load balancing loss with this coefficient, 0: none. False where
/// the model has no experts, or its family no such loss.
bool setBalancing(ModelConfig &config, double coefficient);

/// Every model_type that is supported, in alphabetical order.
std::vector<std::string> supportedModelTypes();

/// What transformers makes of `config`: the class of architectures[0].
ModelInfo describeModel(const ModelConfig &config);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_MODELCONFIG_H
