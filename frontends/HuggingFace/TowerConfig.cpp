//===- TowerConfig.cpp - A tower from config.json -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/EncoderConfig.h"
#include "frontends/HuggingFace/Tower.h"

#include "frontends/ConfigJson/ConfigReader.h"

#include <algorithm>

using namespace accel;
using namespace accel::huggingface;

namespace {

constexpr const char *layersPrefix = "model.vision_tower.encoder.layers.";

int64_t sizeOf(ConfigReader &json, const std::string &key, int64_t otherwise) {
  return json.find(key) ? json.integer(key).value_or(otherwise) : otherwise;
}

/// hidden_states has what enters the first layer, and what each gives.
int64_t layersRead(const nlohmann::json *chosen, int64_t layers) {
  if (!chosen)
    return layers - 1; // -2
  if (!chosen->is_number_integer())
    return -1;
  const int64_t index = chosen->get<int64_t>();
  return index < 0 ? layers + 1 + index : index;
}

Tower readClip(ConfigReader &json) {
  Tower tower;
  const std::string vision = "vision_config.";
  tower.hiddenSize = sizeOf(json, vision + "hidden_size", 768);
  tower.intermediateSize = sizeOf(json, vision + "intermediate_size", 3072);
  tower.layers = sizeOf(json, vision + "num_hidden_layers", 12);
  tower.heads = sizeOf(json, vision + "num_attention_heads", 12);
  tower.channels = sizeOf(json, vision + "num_channels", 3);
  tower.imageSize = sizeOf(json, vision + "image_size", 224);
  tower.patchSize = sizeOf(json, vision + "patch_size", 32);
  tower.normEps = json.number(vision + "layer_norm_eps", 1e-5);
  tower.attentionDropout = json.number(vision + "attention_dropout", 0);
  tower.activation =
      readActivation(json, vision + "hidden_act", Activation::QuickGelu);
  tower.projector =
      readActivation(json, "projector_hidden_act", Activation::Gelu);
  const nlohmann::json *bias = json.find("multimodal_projector_bias");
  tower.projectorBias = !bias || !bias->is_boolean() || bias->get<bool>();
  tower.outputSize = sizeOf(json, "text_config.hidden_size", 4096);
  const nlohmann::json *token = json.find("image_token_id");
  tower.imageToken =
      sizeOf(json, token ? "image_token_id" : "image_token_index", 32000);
  const auto strategy = json.text("vision_feature_select_strategy");
  tower.readsClass = strategy == "full";
  tower.layersRead =
      layersRead(json.find("vision_feature_layer"), tower.layers);
  if (tower.layersRead < 0 || tower.layersRead > tower.layers)
    tower.unknown = "its features are of several layers "
                    "(vision_feature_layer)";
  else if (strategy && *strategy != "full" && *strategy != "default")
    tower.unknown = "its vision_feature_select_strategy is neither default nor "
                    "full";
  return tower;
}

/// Either of two spellings.
int64_t sizeOf(ConfigReader &json, const std::string &key,
               const std::string &other, int64_t otherwise) {
  return sizeOf(json, json.find(key) ? key : other, otherwise);
}

/// What both have.
Tower readQwen(ConfigReader &json, Tower::Kind kind, Activation activation) {
  Tower tower;
  tower.kind = kind;
  const std::string vision = "vision_config.";
  tower.layers =
      sizeOf(json, vision + "depth", vision + "num_hidden_layers", 32);
  tower.heads =
      sizeOf(json, vision + "num_heads", vision + "num_attention_heads", 16);
  tower.channels = sizeOf(json, vision + "in_channels", 3);
  tower.patchSize = sizeOf(json, vision + "patch_size", 14);
  tower.frames = sizeOf(json, vision + "temporal_patch_size", 2);
  tower.merge = sizeOf(json, vision + "spatial_merge_size", 2);
  tower.imageToken = sizeOf(json, "image_token_id", 151655);
  tower.normEps = 1e-6; // as the modules say, not config.json
  tower.activation = readActivation(json, vision + "hidden_act", activation);
  tower.ropeTheta =
      json.number(vision + "rope_parameters.rope_theta", tower.ropeTheta);
  return tower;
}

Tower readQwen2(ConfigReader &json) {
  Tower tower = readQwen(json, Tower::Kind::Qwen2, Activation::QuickGelu);
  tower.hiddenSize = sizeOf(json, "vision_config.embed_dim", 1280);
  tower.intermediateSize =
      tower.hiddenSize * sizeOf(json, "vision_config.mlp_ratio", 4);
  tower.outputSize = sizeOf(json, "vision_config.hidden_size", 3584);
  return tower;
}

Tower readQwen25(ConfigReader &json) {
  Tower tower = readQwen(json, Tower::Kind::Qwen25, Activation::Silu);
  const std::string vision = "vision_config.";
  tower.hiddenSize = sizeOf(json, vision + "hidden_size", 3584);
  tower.intermediateSize = sizeOf(json, vision + "intermediate_size", 3420);
  tower.window =
      sizeOf(json, vision + "window_size", 112) / tower.merge / tower.patchSize;
  tower.outputSize = sizeOf(json, vision + "out_hidden_size", 3584);
  tower.wholeLayers = {7, 15, 23, 31};
  if (const nlohmann::json *whole =
          json.find(vision + "fullatt_block_indexes")) {
    tower.wholeLayers.clear();
    for (const nlohmann::json &index : *whole)
      if (index.is_number_integer())
        tower.wholeLayers.push_back(index.get<int64_t>());
  }
  if (tower.window < 1)
    tower.unknown = "its windows have no token (window_size)";
  return tower;
}

} // namespace

std::optional<Images> Tower::onlySize() const {
  if (kind != Kind::Clip)
    return std::nullopt;
  return Images{1, imageSize, imageSize};
}

std::optional<Tower::SizeProblem>
Tower::sizeProblem(const Images &images) const {
  if (const auto only = onlySize()) {
    if (images.height == imageSize && images.width == imageSize)
      return std::nullopt;
    const std::string side = std::to_string(imageSize);
    return SizeProblem{"the model reads images of " + side + "x" + side +
                           " pixels alone, to which its processor resizes them",
                       imageSize, imageSize};
  }
  const int64_t step = patchSize * merge;
  if (images.height % step == 0 && images.width % step == 0)
    return std::nullopt;
  const auto nearest = [&](int64_t size) {
    return std::max((size + step / 2) / step, int64_t(1)) * step;
  };
  return SizeProblem{"the processor resizes images to multiples of " +
                         std::to_string(step) + " pixels",
                     nearest(images.height), nearest(images.width)};
}

std::vector<Tower::Windows> Tower::windowsOf(const Images &images) const {
  const auto cut = [&](int64_t pixels) {
    const int64_t tokens = pixels / (patchSize * merge);
    return std::array<std::pair<int64_t, int64_t>, 2>{
        {{tokens / window, window}, {tokens % window != 0, tokens % window}}};
  };
  std::vector<Windows> result;
  for (const auto &[down, rows] : cut(images.height))
    for (const auto &[across, columns] : cut(images.width))
      if (down * across)
        result.push_back({down * across, rows * columns * merge * merge});
  return result;
}

bool Tower::isUnread(const std::string &fqn) const {
  if (kind != Kind::Clip)
    return false;
  const std::string prefix = layersPrefix;
  if (fqn.starts_with("model.vision_tower.post_layernorm."))
    return true;
  return fqn.starts_with(prefix) &&
         std::stoll(fqn.substr(prefix.size())) >= layersRead;
}

std::optional<Tower> accel::huggingface::readTower(const std::string &modelType,
                                                   ConfigReader &json) {
  if (modelType == "llava")
    return readClip(json);
  if (modelType == "qwen2_vl")
    return readQwen2(json);
  if (modelType == "qwen2_5_vl")
    return readQwen25(json);
  return std::nullopt;
}
