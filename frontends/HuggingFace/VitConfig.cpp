//===- VitConfig.cpp - Reads config.json of ViT ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/VitConfig.h"

#include "frontends/ConfigJson/ConfigReader.h"

using namespace accel;
using namespace accel::huggingface;

namespace {

class VitReader {
public:
  explicit VitReader(ConfigReader &json) : json(json) {}

  std::optional<VitConfig> read() {
    readArchitecture(json, "vit", "ViT", {"ViTForImageClassification"});
    config.classifier = readClassifier(json);
    config.hiddenSize = json.size("hidden_size", 768, sizeLimits::size);
    config.layers = json.size("num_hidden_layers", 12, sizeLimits::layers);
    config.heads = json.size("num_attention_heads", 12, sizeLimits::size);
    config.intermediateSize =
        json.size("intermediate_size", 3072, sizeLimits::size);
    config.image = pair("image_size", 224);
    config.patch = pair("patch_size", 16);
    config.channels = json.size("num_channels", 3, 4096);
    config.qkvBias = json.flag("qkv_bias", true);
    config.layerNormEps = readEpsilon(json, "layer_norm_eps", 1e-12);
    config.initializerRange = readDeviation(json, "initializer_range", 0.02);
    config.activation = readActivation(json, "hidden_act", Activation::Gelu);
    config.hiddenDropout = json.probability("hidden_dropout_prob", 0);
    config.attentionDropout =
        json.probability("attention_probs_dropout_prob", 0);
    refuseKeys(json, {"quantization_config"});
    config.dtype = json.dtype();
    if (!json.failed())
      relations();
    return json.failed() ? std::nullopt : std::optional(config);
  }

private:
  /// One number for rows and columns, or a list of both.
  std::array<int64_t, 2> pair(const char *key, int64_t otherwise) {
    constexpr int64_t limit = 1 << 16;
    const nlohmann::json *value = json.find(key);
    if (!value || !value->is_array()) {
      const int64_t size = json.size(key, otherwise, limit);
      return {size, size};
    }
    std::array<int64_t, 2> result = {otherwise, otherwise};
    if (value->size() != 2) {
      json.error(key, std::string("'") + key +
                          "' must be one size, or a list of two");
      return result;
    }
    for (int i = 0; i < 2; ++i) {
      const nlohmann::json &one = (*value)[i];
      if (one.is_number_integer() && one >= 1 && one <= limit)
        result[i] = one.get<int64_t>();
      else
        json.error(key, std::string("'") + key +
                            "' must hold integers from 1 to 65536");
    }
    return result;
  }

  void relations() {
    if (json.find("head_dim"))
      config.headDim = json.size("head_dim", 64, sizeLimits::size);
    else
      config.headDim = config.hiddenSize / config.heads;
    if (config.headDim < 1)
      json.error("num_attention_heads", "there are more heads than hidden "
                                        "elements");
    for (int i = 0; i < 2; ++i)
      if (config.patch[i] > config.image[i]) {
        json.error("patch_size", "a patch is larger than the image");
        return;
      }
    const double hidden = double(config.hiddenSize);
    const double layer =
        4 * hidden * double(config.heads) * double(config.headDim) +
        2 * hidden * double(config.intermediateSize) + 9 * hidden;
    const double front =
        hidden * (double(config.patches()) + double(config.channels) *
                                                 double(config.patch[0]) *
                                                 double(config.patch[1]));
    if (front + double(config.layers) * layer > sizeLimits::parameters)
      json.error("", "these sizes make a model of more than 1e15 parameters");
  }

  ConfigReader &json;
  VitConfig config;
};

/// In registration order.
class VitModules {
public:
  explicit VitModules(const VitConfig &config)
      : config(config), write(info),
        normal(normalInit(
            config.initializerRange == 0 ? 0.02 : config.initializerRange)) {}

  ModelInfo run() {
    info.module("", "ViTForImageClassification");
    info.module("vit", "ViTModel");
    embeddings();
    info.module("vit.layers", "ModuleList");
    for (int64_t i = 0; i < config.layers; ++i)
      layer("vit.layers." + std::to_string(i));
    write.norm("vit.layernorm", config.hiddenSize);
    write.linear("classifier", config.hiddenSize, config.classifier.labels,
                 normal);
    info.anatomy = {"vit",
                    "vit.embeddings.patch_embeddings",
                    "",
                    {"ViTEmbeddings", "ViTLayer"}};
    info.inputs = {{"pixel_values", 0, false}, labelsInput(config.classifier)};
    nameStored();
    return std::move(info);
  }

private:
  void embeddings() {
    const std::string fqn = "vit.embeddings";
    const int64_t hidden = config.hiddenSize;
    const plan::Initializer position =
        config.initializerRange > 0
            ? truncatedNormalInit(config.initializerRange)
            : zerosInit();
    info.module(fqn, "ViTEmbeddings");
    info.parameter(fqn + ".cls_token", {1, 1, hidden}, position);
    info.parameter(fqn + ".position_embeddings",
                   {1, config.patches() + 1, hidden}, position);
    info.module(fqn + ".patch_embeddings", "ViTPatchEmbeddings");
    const std::string projection = fqn + ".patch_embeddings.projection";
    info.module(projection, "Conv2d");
    info.parameter(projection + ".weight",
                   {hidden, config.channels, config.patch[0], config.patch[1]},
                   normal);
    info.parameter(projection + ".bias", {hidden}, zerosInit());
    write.dropout(fqn + ".dropout");
  }

  /// Checkpoints have the names of an older ViTModel.
  void nameStored() {
    const std::pair<std::string, std::string> parts[] = {
        {"vit.layers.", "vit.encoder.layer."},
        {".attention.q_proj.", ".attention.attention.query."},
        {".attention.k_proj.", ".attention.attention.key."},
        {".attention.v_proj.", ".attention.attention.value."},
        {".attention.o_proj.", ".attention.output.dense."},
        {".mlp.fc1.", ".intermediate.dense."},
        {".mlp.fc2.", ".output.dense."}};
    for (ParameterInfo &parameter : info.parameters) {
      std::string name = parameter.fqn;
      for (const auto &[now, before] : parts)
        if (size_t at = name.find(now); at != std::string::npos)
          name.replace(at, now.size(), before);
      if (name != parameter.fqn)
        parameter.stored = {name};
    }
  }

  void layer(const std::string &path) {
    const int64_t hidden = config.hiddenSize, inner = config.intermediateSize;
    const int64_t mixed = config.heads * config.headDim;
    info.module(path, "ViTLayer");
    info.module(path + ".attention", "ViTAttention");
    for (const char *part : {".q_proj", ".k_proj", ".v_proj"})
      write.linear(path + ".attention" + part, hidden, mixed, normal,
                   config.qkvBias);
    write.linear(path + ".attention.o_proj", mixed, hidden, normal);
    write.norm(path + ".layernorm_before", hidden);
    write.norm(path + ".layernorm_after", hidden);
    info.module(path + ".mlp", "ViTMLP");
    info.module(path + ".mlp.activation_fn", moduleClass(config.activation));
    write.linear(path + ".mlp.fc1", hidden, inner, normal);
    write.linear(path + ".mlp.fc2", inner, hidden, normal);
    write.dropout(path + ".dropout");
  }

  const VitConfig &config;
  ModelInfo info;
  ModuleWriter write;
  plan::Initializer normal;
};

} // namespace

std::optional<VitConfig> accel::huggingface::readVit(ConfigReader &json) {
  return VitReader(json).read();
}

ModelInfo accel::huggingface::describeModel(const VitConfig &config) {
  return VitModules(config).run();
}
