//===- PublishedModels.cpp - Models that ship by name ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/PublishedModels.h"

#include "frontends/HuggingFace/PublishedConfigs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace accel::huggingface {
namespace {

using Json = nlohmann::ordered_json;

const Json &published() {
  static const Json models = Json::parse(publishedConfigs);
  return models;
}

/// The name without its owner, in lower case.
std::string keyOf(const std::string &name) {
  std::string key = name.substr(name.rfind('/') + 1);
  std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return key;
}

PublishedModel describe(const Json &model, const Json &name) {
  const Json &config = model["config"];
  return {name.get<std::string>(), config.dump(2),
          config["model_type"].get<std::string>(),
          model["parameters"].get<int64_t>()};
}

} // namespace

std::optional<PublishedModel> publishedModel(const std::string &name) {
  // "org/model" or "model": a path with more parts is a folder.
  if (std::count(name.begin(), name.end(), '/') > 1 || name.empty())
    return std::nullopt;
  const std::string key = keyOf(name);
  for (const Json &model : published())
    for (const Json &own : model["names"])
      if (keyOf(own.get<std::string>()) == key)
        return describe(model, own);
  return std::nullopt;
}

std::vector<PublishedModel> publishedModels() {
  std::vector<PublishedModel> models;
  for (const Json &model : published())
    for (const Json &name : model["names"])
      models.push_back(describe(model, name));
  return models;
}

} // namespace accel::huggingface
