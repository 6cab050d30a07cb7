//===- Gpt2Config.cpp - Reads config.json of GPT-2 ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/Gpt2Config.h"

#include "frontends/ConfigJson/ConfigReader.h"

#include <cmath>

using namespace accel;
using namespace accel::huggingface;

namespace {

class Gpt2Reader {
public:
  explicit Gpt2Reader(ConfigReader &json) : json(json) {}

  std::optional<Gpt2Config> read() {
    architecture();
    sizes();
    flags();
    config.dtype = json.dtype();
    if (json.failed())
      return std::nullopt;
    relations();
    if (json.failed())
      return std::nullopt;
    return config;
  }

private:
  void architecture() {
    const std::string expected = "GPT2LMHeadModel";
    const std::string name = json.architecture(expected).value_or(expected);
    if (name == expected)
      return;
    std::string shown = "architecture '" + printable(name) + "' ";
    if (name.rfind("GPT2", 0) == 0)
      json.unsupported("architectures.0", shown + "is not supported yet; "
                                                  "supported is "
                                                  "GPT2LMHeadModel");
    else
      json.error("architectures.0", shown + "contradicts model_type 'gpt2', "
                                            "which is GPT2LMHeadModel");
  }

  /// transformers accepts each size by its own and by the common name.
  std::string spelled(const char *own, const char *common) {
    return json.has(own) || !json.has(common) ? own : common;
  }

  void sizes() {
    config.vocabSize = json.size("vocab_size", 50257, sizeLimits::vocab);
    config.hiddenSize =
        json.size(spelled("n_embd", "hidden_size"), 768, sizeLimits::size);
    config.layers = json.size(spelled("n_layer", "num_hidden_layers"), 12,
                              sizeLimits::layers);
    config.heads = json.size(spelled("n_head", "num_attention_heads"), 12,
                             sizeLimits::size);
    config.maxPositions =
        json.size(spelled("n_positions", "max_position_embeddings"), 1024,
                  sizeLimits::vocab);
    config.intermediateSize = json.size("n_inner", 4 * config.hiddenSize,
                                        sizeLimits::size, /*nullable=*/true);
    config.layerNormEps = json.number("layer_norm_epsilon", 1e-5);
    if (config.layerNormEps < 0)
      json.error("layer_norm_epsilon",
                 "'layer_norm_epsilon' must not be negative");
    config.initializerRange = json.number("initializer_range", 0.02);
    if (config.initializerRange < 0 || config.initializerRange > 1)
      json.error("initializer_range",
                 "'initializer_range' must be between 0 and 1");
  }

  void flags() {
    config.tieWordEmbeddings = json.flag("tie_word_embeddings", true);
    config.scaleAttention = json.flag("scale_attn_weights", true);
    if (json.flag("scale_attn_by_inverse_layer_idx", false))
      json.unsupported("scale_attn_by_inverse_layer_idx",
                       "attention scaled by the layer's number is not "
                       "supported yet");
    if (json.flag("add_cross_attention", false))
      json.unsupported("add_cross_attention",
                       "cross attention is not supported yet");
    if (json.flag("reorder_and_upcast_attn", false))
      json.warning("reorder_and_upcast_attn", "ignored-key",
                   "'reorder_and_upcast_attn' has no effect with fused "
                   "attention");
    if (std::optional<std::string> name = json.text("activation_function")) {
      if (auto activation = parseActivation(*name))
        config.activation = *activation;
      else
        json.unsupported("activation_function",
                         "activation '" + printable(*name) +
                             "' is not supported yet; supported are " +
                             activationNames());
    }
    config.residualDropout = json.probability("resid_pdrop", 0.1);
    config.embeddingDropout = json.probability("embd_pdrop", 0.1);
    config.attentionDropout = json.probability("attn_pdrop", 0.1);
    for (const char *key : {"quantization_config", "per_layer_config"})
      if (json.has(key) && !json.isNull(key))
        json.unsupported(key,
                         std::string("'") + key + "' is not supported yet");
  }

  void relations() {
    if (config.hiddenSize % config.heads) {
      json.error(spelled("n_embd", "hidden_size"),
                 "the hidden size " + std::to_string(config.hiddenSize) +
                     " is not a multiple of the " +
                     std::to_string(config.heads) + " heads");
      return;
    }
    double hidden = double(config.hiddenSize);
    double layer = 4 * hidden * hidden +
                   2 * hidden * double(config.intermediateSize) + 13 * hidden;
    double embeddings = hidden * double(2 * config.vocabSize) +
                        hidden * double(config.maxPositions);
    if (embeddings + double(config.layers) * layer > sizeLimits::parameters)
      json.error("", "these sizes make a model of more than 1e15 parameters");
  }

  ConfigReader &json;
  Gpt2Config config;
};

/// In registration order.
class Gpt2Modules {
public:
  explicit Gpt2Modules(const Gpt2Config &config)
      : config(config), normal(normalInit(config.initializerRange)) {}

  ModelInfo run() {
    const Gpt2Config &c = config;
    info.module("", "GPT2LMHeadModel");
    info.module("transformer", "GPT2Model");
    info.module("transformer.wte", "Embedding");
    info.parameter("transformer.wte.weight", {c.vocabSize, c.hiddenSize},
                   normal);
    if (c.tieWordEmbeddings)
      info.parameters.back().aliases.push_back("lm_head.weight");
    if (c.learnedPositions) {
      info.module("transformer.wpe", "Embedding");
      info.parameter("transformer.wpe.weight", {c.maxPositions, c.hiddenSize},
                     normal);
    }
    info.module("transformer.drop", "Dropout");
    info.module("transformer.h", "ModuleList");
    for (int64_t i = 0; i < c.layers; ++i)
      layer("transformer.h." + std::to_string(i));
    norm("transformer.ln_f");
    info.module("lm_head", "Linear");
    if (!c.tieWordEmbeddings)
      info.parameter("lm_head.weight", {c.vocabSize, c.hiddenSize}, normal);
    info.anatomy = {"transformer", "transformer.wte", "lm_head", {"GPT2Block"}};
    return std::move(info);
  }

private:
  void norm(const std::string &fqn) {
    info.module(fqn, "LayerNorm");
    info.parameter(fqn + ".weight", {config.hiddenSize}, onesInit());
    if (config.biases)
      info.parameter(fqn + ".bias", {config.hiddenSize}, zerosInit());
  }

  /// transformers' Conv1D: a linear layer with its weight as [in, out].
  void linear(const std::string &fqn, int64_t in, int64_t out,
              const plan::Initializer &init) {
    info.module(fqn, "Conv1D");
    info.parameter(fqn + ".weight", {in, out}, init);
    if (config.biases)
      info.parameter(fqn + ".bias", {out}, zerosInit());
  }

  void layer(const std::string &path) {
    int64_t hidden = config.hiddenSize, inner = config.intermediateSize;
    // Weights of the residual path are scaled by the depth.
    plan::Initializer residual =
        normalInit(config.initializerRange / std::sqrt(2.0 * config.layers));
    info.module(path, "GPT2Block");
    norm(path + ".ln_1");
    info.module(path + ".attn", "GPT2Attention");
    linear(path + ".attn.c_attn", hidden, 3 * hidden, normal);
    linear(path + ".attn.c_proj", hidden, hidden, residual);
    info.module(path + ".attn.attn_dropout", "Dropout");
    info.module(path + ".attn.resid_dropout", "Dropout");
    norm(path + ".ln_2");
    info.module(path + ".mlp", "GPT2MLP");
    linear(path + ".mlp.c_fc", hidden, inner, normal);
    linear(path + ".mlp.c_proj", inner, hidden, residual);
    info.module(path + ".mlp.act", moduleClass(config.activation));
    info.module(path + ".mlp.dropout", "Dropout");
  }

  const Gpt2Config &config;
  plan::Initializer normal;
  ModelInfo info;
};

} // namespace

std::optional<Gpt2Config> accel::huggingface::readGpt2(ConfigReader &json) {
  return Gpt2Reader(json).read();
}

ModelInfo accel::huggingface::describeModel(const Gpt2Config &config) {
  return Gpt2Modules(config).run();
}
