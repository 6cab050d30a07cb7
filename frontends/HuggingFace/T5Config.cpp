//===- T5Config.cpp - Reads config.json of T5 -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/T5Config.h"

#include "frontends/ConfigJson/ConfigReader.h"

#include <algorithm>
#include <cmath>

using namespace accel;
using namespace accel::huggingface;

namespace {

class T5Reader {
public:
  explicit T5Reader(ConfigReader &json) : json(json) {}

  std::optional<T5Config> read() {
    readArchitecture(json, "t5", "T5", {"T5ForConditionalGeneration"});
    sizes();
    feedForward();
    scaling();
    config.dropout = json.probability("dropout_rate", 0.1);
    refuseKeys(json, {"is_decoder", "quantization_config"});
    config.dtype = json.dtype();
    if (!json.failed())
      relations();
    return json.failed() ? std::nullopt : std::optional(config);
  }

private:
  /// transformers accepts each size by its own and by the common name.
  std::string spelled(const char *own, const char *common) {
    return json.has(own) || !json.has(common) ? own : common;
  }

  void sizes() {
    config.vocabSize = json.size("vocab_size", 32128, sizeLimits::vocab);
    config.hiddenSize =
        json.size(spelled("d_model", "hidden_size"), 512, sizeLimits::size);
    config.headDim =
        json.size(spelled("d_kv", "head_dim"), 64, sizeLimits::size);
    config.intermediateSize = json.size("d_ff", 2048, sizeLimits::size);
    config.layers = json.size(spelled("num_layers", "num_hidden_layers"), 6,
                              sizeLimits::layers);
    config.decoderLayers =
        json.size("num_decoder_layers", config.layers, sizeLimits::layers,
                  /*nullable=*/true);
    config.heads = json.size(spelled("num_heads", "num_attention_heads"), 8,
                             sizeLimits::size);
    config.buckets =
        json.size("relative_attention_num_buckets", 32, sizeLimits::size);
    config.maxDistance = json.size("relative_attention_max_distance", 128,
                                   sizeLimits::positions);
    config.layerNormEps = readEpsilon(json, "layer_norm_epsilon", 1e-6);
    config.initializerFactor = json.number("initializer_factor", 1);
    if (config.initializerFactor < 0 || config.initializerFactor > 1e6)
      json.error("initializer_factor",
                 "'initializer_factor' must be between 0 and 1e6");
  }

  /// transformers 5 writes `scale_decoder_outputs`, and ties whatever the file
  /// says. Files of older releases have `tie_word_embeddings` alone, where
  /// false means T5 1.1, whose outputs are not scaled.
  void scaling() {
    const bool untied = json.find("tie_word_embeddings") &&
                        !json.flag("tie_word_embeddings", true);
    config.scaleOutput = json.flag("scale_decoder_outputs", !untied);
  }

  /// `feed_forward_proj`, then what `is_gated_act` and `dense_act_fn` change:
  /// transformers writes all three, and sets the last two after the first.
  void feedForward() {
    projection();
    config.gated = json.flag("is_gated_act", config.gated);
    config.activation = readActivation(json, "dense_act_fn", config.activation);
  }

  /// "relu", or "gated-" and a function; "gated-gelu" means gelu_new.
  void projection() {
    std::optional<std::string> name = json.text("feed_forward_proj");
    if (!name)
      return;
    config.gated = name->rfind("gated-", 0) == 0;
    std::string function = config.gated ? name->substr(6) : *name;
    if (config.gated && function == "gelu")
      function = "gelu_new";
    if (function.find('-') != std::string::npos)
      json.error("feed_forward_proj",
                 "'feed_forward_proj' must be an activation or 'gated-' and "
                 "an activation, not '" +
                     printable(*name) + "'");
    else if (auto activation = parseActivation(function))
      config.activation = *activation;
    else
      json.unsupported("feed_forward_proj",
                       "activation '" + printable(function) +
                           "' is not supported yet; supported are " +
                           activationNames());
  }

  void relations() {
    std::optional<int64_t> padding =
        readTokenId(json, "pad_token_id", 0, config.vocabSize);
    if (padding)
      config.padding = *padding;
    else if (!json.failed())
      json.error("pad_token_id", "the decoder's tokens are made of the labels, "
                                 "which takes a 'pad_token_id'");
    if (!json.find("decoder_start_token_id"))
      json.error("decoder_start_token_id",
                 "the decoder's tokens are made of the labels, which takes a "
                 "'decoder_start_token_id' (T5's is its padding, 0)");
    else if (auto start = readTokenId(json, "decoder_start_token_id", 0,
                                      config.vocabSize))
      config.start = *start;
    // Half of the buckets are for exact distances, and the encoder has half
    // of all for each direction.
    if (config.buckets < 4 || config.buckets % 2)
      json.error("relative_attention_num_buckets",
                 "'relative_attention_num_buckets' must be even and at least "
                 "4");
    else if (config.maxDistance <= config.buckets / 2)
      json.error("relative_attention_max_distance",
                 "'relative_attention_max_distance' must be more than half of "
                 "the " +
                     std::to_string(config.buckets) + " buckets");
    const double hidden = double(config.hiddenSize);
    const double attention =
        4 * hidden * double(config.heads) * double(config.headDim);
    const double fed = 3 * hidden * double(config.intermediateSize);
    const double total = hidden * double(config.vocabSize) +
                         double(config.layers) * (attention + fed) +
                         double(config.decoderLayers) * (2 * attention + fed);
    if (total > sizeLimits::parameters)
      json.error("", "these sizes make a model of more than 1e15 parameters");
  }

  ConfigReader &json;
  T5Config config;
};

/// In registration order.
class T5Modules {
public:
  explicit T5Modules(const T5Config &config)
      : config(config), write(info), factor(config.initializerFactor) {}

  ModelInfo run() {
    info.module("", "T5ForConditionalGeneration");
    write.embedding("shared", config.vocabSize, config.hiddenSize,
                    normalInit(factor));
    info.parameters.back().aliases = {"encoder.embed_tokens.weight",
                                      "decoder.embed_tokens.weight"};
    if (!config.ownHead)
      info.parameters.back().aliases.push_back("lm_head.weight");
    stack("encoder", config.layers, /*decoder=*/false);
    stack("decoder", config.decoderLayers, /*decoder=*/true);
    if (config.ownHead)
      write.linear("lm_head", config.hiddenSize, config.vocabSize,
                   normalInit(factor), false);
    else
      info.module("lm_head", "Linear");
    info.anatomy = {"", "shared", "lm_head", {"T5Block"}};
    info.inputs = {{"input_ids", config.vocabSize, false},
                   {"labels", config.vocabSize, false},
                   {"attention_mask", 2, true}};
    return std::move(info);
  }

private:
  plan::Initializer scaled(int64_t fan) const {
    return normalInit(factor * std::pow(double(fan), -0.5));
  }

  void norm(const std::string &fqn) {
    info.module(fqn, "T5LayerNorm");
    info.parameter(fqn + ".weight", {config.hiddenSize}, constantInit(factor));
  }

  void stack(const std::string &path, int64_t layers, bool decoder) {
    info.module(path, "T5Stack");
    info.module(path + ".embed_tokens", "Embedding");
    info.module(path + ".block", "ModuleList");
    for (int64_t i = 0; i < layers; ++i) {
      const std::string at = path + ".block." + std::to_string(i);
      info.module(at, "T5Block");
      info.module(at + ".layer", "ModuleList");
      attention(at + ".layer.0", "T5LayerSelfAttention", "SelfAttention",
                i == 0);
      if (decoder)
        attention(at + ".layer.1", "T5LayerCrossAttention", "EncDecAttention",
                  false);
      feedForward(at + (decoder ? ".layer.2" : ".layer.1"));
    }
    norm(path + ".final_layer_norm");
    write.dropout(path + ".dropout");
  }

  void attention(const std::string &path, const std::string &className,
                 const std::string &name, bool positions) {
    const int64_t hidden = config.hiddenSize, inner = config.inner();
    const std::string fqn = path + "." + name;
    info.module(path, className);
    info.module(fqn, "T5Attention");
    write.linear(fqn + ".q", hidden, inner, scaled(hidden * config.headDim),
                 false);
    write.linear(fqn + ".k", hidden, inner, scaled(hidden), false);
    write.linear(fqn + ".v", hidden, inner, scaled(hidden), false);
    write.linear(fqn + ".o", inner, hidden, scaled(inner), false);
    if (positions)
      write.embedding(fqn + ".relative_attention_bias", config.buckets,
                      config.heads, scaled(hidden));
    norm(path + ".layer_norm");
    write.dropout(path + ".dropout");
  }

  void feedForward(const std::string &path) {
    const int64_t hidden = config.hiddenSize, inner = config.intermediateSize;
    const std::string fqn = path + ".DenseReluDense";
    info.module(path, "T5LayerFF");
    info.module(fqn, config.gated ? "T5DenseGatedActDense" : "T5DenseActDense");
    if (config.gated) {
      write.linear(fqn + ".wi_0", hidden, inner, scaled(hidden), false);
      write.linear(fqn + ".wi_1", hidden, inner, scaled(hidden), false);
    } else {
      write.linear(fqn + ".wi", hidden, inner, scaled(hidden), false);
    }
    write.linear(fqn + ".wo", inner, hidden, scaled(inner), false);
    write.dropout(fqn + ".dropout");
    info.module(fqn + ".act", moduleClass(config.activation));
    norm(path + ".layer_norm");
    write.dropout(path + ".dropout");
  }

  const T5Config &config;
  ModelInfo info;
  ModuleWriter write;
  double factor;
};

} // namespace

int64_t accel::huggingface::relativeBucket(int64_t distance, bool bidirectional,
                                           int64_t buckets,
                                           int64_t maxDistance) {
  int64_t first = 0, away = 0;
  if (bidirectional) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
    away = std::abs(distance);
  } else {
    away = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = buckets / 2;
  if (away < exact)
    return first + away;
  // Each step rounds to fp32, as torch's does.
  const float ratio = std::log(float(away) / float(exact));
  const auto range =
      static_cast<float>(std::log(double(maxDistance) / double(exact)));
  const float steps = ratio / range * float(buckets - exact);
  return first +
         std::min<int64_t>(exact + static_cast<int64_t>(steps), buckets - 1);
}

std::optional<T5Config> accel::huggingface::readT5(ConfigReader &json) {
  return T5Reader(json).read();
}

ModelInfo accel::huggingface::describeModel(const T5Config &config) {
  return T5Modules(config).run();
}
