//===- LlamaModel.cpp - Modules and parameters of the Llama family --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/LlamaConfig.h"

#include <cmath>

using namespace accel;
using namespace accel::huggingface;

namespace {

/// Lists modules and parameters in registration order, which is the order of
/// named_modules() and named_parameters().
class DecoderModules {
public:
  explicit DecoderModules(const LlamaConfig &config) : config(config) {
    normal.kind = plan::Initializer::Kind::Normal;
    normal.value = config.initializerRange;
    ones.kind = plan::Initializer::Kind::Ones;
  }

  ModelInfo run() {
    size_t perLayer = config.queryKeyNorm ? 15 : 13;
    info.modules.reserve(size_t(config.layers) * perLayer + 8);
    info.parameters.reserve(size_t(config.layers) * perLayer + 3);
    module("", "ForCausalLM");
    module("model", "Model");
    plainModule("model.embed_tokens", "Embedding");
    parameter("model.embed_tokens.weight",
              {config.vocabSize, config.hiddenSize}, normal);
    if (config.tieWordEmbeddings)
      info.parameters.back().aliases.push_back("lm_head.weight");
    plainModule("model.layers", "ModuleList");
    for (int64_t i = 0; i < config.layers; ++i)
      layer("model.layers." + std::to_string(i), config.mixture.isSparse(i));
    norm("model.norm", config.hiddenSize);
    module("model.rotary_emb", "RotaryEmbedding");
    plainModule("lm_head", "Linear");
    if (!config.tieWordEmbeddings)
      parameter("lm_head.weight", {config.vocabSize, config.hiddenSize},
                normal);
    info.anatomy = {"model",
                    "model.embed_tokens",
                    "lm_head",
                    {config.classPrefix + "DecoderLayer"}};
    return std::move(info);
  }

private:
  void plainModule(std::string fqn, std::string className) {
    info.modules.push_back({std::move(fqn), std::move(className)});
  }
  void module(std::string fqn, const char *suffix) {
    plainModule(std::move(fqn), config.classPrefix + suffix);
  }
  void parameter(std::string fqn, std::vector<int64_t> shape,
                 const plan::Initializer &init) {
    ParameterInfo parameter;
    parameter.fqn = std::move(fqn);
    parameter.shape = std::move(shape);
    parameter.init = init;
    info.parameters.push_back(std::move(parameter));
  }
  void linear(const std::string &fqn, int64_t out, int64_t in, bool bias) {
    plainModule(fqn, "Linear");
    parameter(fqn + ".weight", {out, in}, normal);
    if (bias)
      parameter(fqn + ".bias", {out}, zeros);
  }
  void norm(const std::string &fqn, int64_t size) {
    module(fqn, "RMSNorm");
    parameter(fqn + ".weight", {size}, ones);
  }

  void layer(const std::string &path, bool sparse) {
    const LlamaConfig &c = config;
    module(path, "DecoderLayer");
    std::string attention = path + ".self_attn";
    int64_t queries = c.heads * c.headDim;
    int64_t keys = c.keyValueHeads * c.headDim;
    module(attention, "Attention");
    linear(attention + ".q_proj", queries, c.hiddenSize, c.queryKeyValueBias);
    linear(attention + ".k_proj", keys, c.hiddenSize, c.queryKeyValueBias);
    linear(attention + ".v_proj", keys, c.hiddenSize, c.queryKeyValueBias);
    linear(attention + ".o_proj", c.hiddenSize, queries, c.outputBias);
    if (c.queryKeyNorm) {
      norm(attention + ".q_norm", c.headDim);
      norm(attention + ".k_norm", c.headDim);
    }
    if (sparse)
      mixture(path);
    else
      mlp(path + ".mlp");
    norm(path + ".input_layernorm", c.hiddenSize);
    norm(path + ".post_attention_layernorm", c.hiddenSize);
  }

  void mlp(const std::string &mlp) {
    const LlamaConfig &c = config;
    module(mlp, "MLP");
    linear(mlp + ".gate_proj", c.intermediateSize, c.hiddenSize, c.mlpBias);
    linear(mlp + ".up_proj", c.intermediateSize, c.hiddenSize, c.mlpBias);
    linear(mlp + ".down_proj", c.hiddenSize, c.intermediateSize, c.mlpBias);
    plainModule(mlp + ".act_fn", c.activationClass);
  }

  /// Checkpoints hold each expert's matrices apart (transformers'
  /// conversion_mapping.py).
  void mixture(const std::string &path) {
    const bool mixtral = config.family == Family::Mixtral;
    const std::string mlp = path + ".mlp";
    module(mlp, "SparseMoeBlock");
    if (mixtral) {
      router(mlp, {path + ".block_sparse_moe.gate.weight"});
      experts(mlp, path + ".block_sparse_moe.experts.*.", "w1", "w3", "w2");
    } else {
      experts(mlp, mlp + ".experts.*.", "gate_proj", "up_proj", "down_proj");
      router(mlp, {});
    }
  }
  void router(const std::string &mlp, std::vector<std::string> stored) {
    module(mlp + ".gate", "TopKRouter");
    info.parameter(mlp + ".gate.weight",
                   {config.mixture.experts, config.hiddenSize}, normal,
                   std::move(stored));
  }
  void experts(const std::string &mlp, const std::string &stored,
               const char *gate, const char *up, const char *down) {
    const int64_t inner = config.mixture.intermediateSize;
    module(mlp + ".experts", "Experts");
    info.parameter(mlp + ".experts.gate_up_proj",
                   {config.mixture.experts, 2 * inner, config.hiddenSize},
                   normal,
                   {stored + gate + ".weight", stored + up + ".weight"});
    info.parameter(mlp + ".experts.down_proj",
                   {config.mixture.experts, config.hiddenSize, inner}, normal,
                   {stored + down + ".weight"});
    plainModule(mlp + ".experts.act_fn", config.activationClass);
  }

  const LlamaConfig &config;
  plan::Initializer normal, ones, zeros;
  ModelInfo info;
};

} // namespace

ModelInfo accel::huggingface::describeModel(const LlamaConfig &config) {
  return DecoderModules(config).run();
}

Decoder accel::huggingface::decoderOf(const LlamaConfig &config) {
  Decoder d;
  d.classPrefix = config.classPrefix;
  d.layerClass = config.classPrefix + "DecoderLayer";
  d.hiddenSize = config.hiddenSize;
  d.heads = config.heads;
  d.keyValueHeads = config.keyValueHeads;
  d.headDim = config.headDim;
  d.paddingIndex = config.paddingIndex;
  d.ropes = {config.rope};
  d.normEps = config.rmsNormEps;
  d.dropout.attention = config.attentionDropout;
  d.attention.scale = std::pow(double(config.headDim), -0.5);
  d.useLlamaNames();
  if (config.queryKeyNorm) {
    d.attention.queryNorm = "self_attn.q_norm";
    d.attention.keyNorm = "self_attn.k_norm";
  }
  d.kinds.resize(size_t(config.layers));
  for (size_t i = 0; i < config.windows.size(); ++i)
    d.kinds[i].window = config.windows[i];
  d.mixture = config.mixture;
  for (size_t i = 0; i < d.kinds.size(); ++i)
    d.kinds[i].sparse = config.mixture.isSparse(int64_t(i));
  return d;
}
