//===- MixtureConfig.cpp - Experts in config.json -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/LlamaConfig.h"

#include "frontends/ConfigJson/ConfigReader.h"
#include <algorithm>

using namespace accel;
using namespace accel::huggingface;

int64_t Mixture::sparseLayers() const {
  return experts ? std::count(sparse.begin(), sparse.end(), true) : 0;
}

namespace {

class MixtureReader {
public:
  MixtureReader(ConfigReader &json, LlamaConfig &config)
      : json(json), config(config), mixture(config.mixture),
        mixtral(config.family == Family::Mixtral) {}

  void read() {
    experts();
    if (json.failed() || !mixture.experts)
      return;
    mixture.chosen =
        json.size("num_experts_per_tok", mixtral ? 2 : 8, sizeLimits::size);
    if (!json.failed() && mixture.chosen > mixture.experts)
      json.error("num_experts_per_tok",
                 "'num_experts_per_tok' " + std::to_string(mixture.chosen) +
                     " is more than the " + std::to_string(mixture.experts) +
                     " experts");
    mixture.normalize = mixtral || json.flag("norm_topk_prob", false);
    mixture.scoresInFp32 = mixtral;
    inner();
    layers();
    readBalancing(json, mixture);
  }

private:
  /// Both spellings are one setting to transformers.
  void experts() {
    const bool local = json.find("num_local_experts");
    if (local && json.find("num_experts") &&
        json.integer("num_local_experts") != json.integer("num_experts")) {
      json.error("num_experts", "'num_experts' and 'num_local_experts' are one "
                                "setting and differ");
      return;
    }
    const char *key = local ? "num_local_experts" : "num_experts";
    // A qwen3_moe without experts has dense layers alone.
    if (!mixtral && json.has(key) && json.integer(key) == 0)
      return;
    mixture.experts = json.size(key, mixtral ? 8 : 128, sizeLimits::size);
  }

  void inner() {
    const char *key = mixtral ? "intermediate_size" : "moe_intermediate_size";
    mixture.intermediateSize = mixtral ? config.intermediateSize
                                       : json.size(key, 768, sizeLimits::size);
    checkExpertSizes(json, "hidden_size", config.hiddenSize);
    checkExpertSizes(json, key, mixture.intermediateSize);
    if (mixtral && json.number("router_jitter_noise", 0.0) > 0)
      json.unsupported("router_jitter_noise",
                       "noise on a router's input is not supported yet; "
                       "'router_jitter_noise' must be 0");
  }

  void layers() {
    mixture.sparse.assign(size_t(config.layers), true);
    if (!mixtral)
      readSparseLayers(json, mixture.sparse);
  }

  ConfigReader &json;
  LlamaConfig &config;
  Mixture &mixture;
  bool mixtral;
};

} // namespace

void accel::huggingface::checkExpertSizes(ConfigReader &json, const char *key,
                                          int64_t size) {
  if (!json.failed() && size % 4)
    json.unsupported(key, std::string("'") + key + "' " + std::to_string(size) +
                              " is not a multiple of 4, as experts' products "
                              "(torch._grouped_mm) need it");
}

void accel::huggingface::readSparseLayers(ConfigReader &json,
                                          std::vector<bool> &sparse) {
  const auto layers = static_cast<int64_t>(sparse.size());
  const int64_t every = json.size("decoder_sparse_step", 1, sizeLimits::layers);
  for (int64_t i = 0; i < layers && every > 0; ++i)
    if ((i + 1) % every != 0)
      sparse[size_t(i)] = false;
  const char *key = "mlp_only_layers";
  const nlohmann::json *dense = json.find(key);
  if (!dense)
    return;
  if (!dense->is_array()) {
    json.error(key, "'mlp_only_layers' must be a list of layers");
    return;
  }
  for (size_t i = 0; i < dense->size(); ++i) {
    const nlohmann::json &layer = (*dense)[i];
    const std::string place = std::string(key) + "." + std::to_string(i);
    if (!layer.is_number_integer())
      json.error(place, "a layer in 'mlp_only_layers' must be an integer");
    else if (layer < 0 || layer >= layers)
      json.warning(place, "ignored-key",
                   "layer " + layer.dump() +
                       " of 'mlp_only_layers' is none of the model's " +
                       std::to_string(layers));
    else
      sparse[layer.get<size_t>()] = false;
  }
}

void accel::huggingface::readBalancing(ConfigReader &json, Mixture &mixture) {
  const char *key = "output_router_logits";
  mixture.balances = true;
  const double coefficient = json.number("router_aux_loss_coef", 0.001);
  if (!json.flag(key, false) || json.failed() || coefficient == 0)
    return;
  if (!mixture.sparseLayers()) {
    json.warning(key, "ignored-key",
                 "'output_router_logits' has no effect: no layer has experts");
    return;
  }
  mixture.auxiliary = coefficient;
}

void accel::huggingface::readMixture(ConfigReader &json, LlamaConfig &config) {
  MixtureReader(json, config).read();
}
