//===- HubCache.h - Models of the Hub on this machine -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_HUBCACHE_H
#define ACCEL_FRONTENDS_HUGGINGFACE_HUBCACHE_H

#include "frontends/HuggingFace/PublishedModels.h"
#include "frontends/ModuleTree/ModuleTree.h"

#include <string>

namespace accel::huggingface {

/// Where huggingface_hub keeps what it downloads: HF_HUB_CACHE,
/// HUGGINGFACE_HUB_CACHE, HF_HOME/hub, or ~/.cache/huggingface/hub.
std::string hubCache();

/// The snapshot of `name` ("meta-llama/Llama-3.1-8B") in that cache, of the
/// branch main where it is known, that has a config.json; empty if there is
/// none.
std::string findInHubCache(const std::string &name);

/// The folder that a model's name means: `name` itself if it is there, else its
/// snapshot in the cache, else empty.
std::string modelFolder(const std::string &name);

/// Reads what a model's name means: `ofFolder` its folder, or `name` itself for
/// a message; `ofText` a published config.json and its file for messages.
template <typename OfFolder, typename OfText>
auto readNamed(const std::string &name, OfFolder ofFolder, OfText ofText) {
  const std::string folder = modelFolder(name);
  if (folder.empty())
    if (const auto published = publishedModel(name))
      return ofText(published->config, published->name + "/config.json");
  return ofFolder(folder.empty() ? name : folder);
}

/// `model_type` of the config.json that a model's name means: that of a folder,
/// a file, a snapshot in the cache or a published model; empty where there is
/// none.
std::string modelTypeOf(const std::string &name);

/// The modules of what a model's name means, as readModuleTree for a folder.
std::optional<ModuleTree> moduleTreeNamed(const std::string &name,
                                          const ModuleTreeOptions &options,
                                          DiagnosticEngine &engine);

/// `name` could be one of the Hub: "org/model", or one word.
bool isHubName(const std::string &name);

/// What to do where a model is not on this machine.
std::string hubHint(const std::string &name);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_HUBCACHE_H
