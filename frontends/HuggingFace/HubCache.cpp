//===- HubCache.cpp - Models of the Hub on this machine -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/HubCache.h"

#include "frontends/HuggingFace/PublishedModels.h"
#include "frontends/Yaml/Yaml.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace accel::huggingface {

namespace fs = std::filesystem;

namespace {

std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

bool hasConfig(const fs::path &folder) {
  std::error_code ignored;
  return fs::exists(folder / "config.json", ignored) ||
         fs::exists(folder / "adapter_config.json", ignored);
}

} // namespace

std::string hubCache() {
  for (const char *name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string path = environment(name); !path.empty())
      return path;
  if (const std::string home = environment("HF_HOME"); !home.empty())
    return (fs::path(home) / "hub").string();
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return (fs::path(cache) / "huggingface" / "hub").string();
  return (fs::path(environment("HOME")) / ".cache" / "huggingface" / "hub")
      .string();
}

bool isHubName(const std::string &name) {
  const auto slashes = std::count(name.begin(), name.end(), '/');
  return !name.empty() && slashes <= 1 && name.front() != '/' &&
         name.front() != '.' && name.back() != '/' && name.size() < 200 &&
         std::all_of(
             name.begin(), name.end(),
             [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                      c == '.' || c == '/';
             });
}

std::string findInHubCache(const std::string &name) {
  if (!isHubName(name))
    return "";
  std::string folder = "models--";
  for (char c : name)
    folder += c == '/' ? std::string("--") : std::string(1, c);
  const fs::path model = fs::path(hubCache()) / folder;
  std::ifstream in(model / "refs" / "main");
  std::string revision;
  if (in >> revision && isHubName(revision) &&
      hasConfig(model / "snapshots" / revision))
    return (model / "snapshots" / revision).string();
  // Of several revisions the one whose name comes first: the same each time.
  std::string found;
  std::error_code error;
  for (fs::directory_iterator it(model / "snapshots", error), end;
       !error && it != end; it.increment(error))
    if (hasConfig(it->path()) && (found.empty() || it->path().string() < found))
      found = it->path().string();
  return found;
}

std::string modelFolder(const std::string &name) {
  std::error_code ignored;
  if (name.empty() || fs::exists(name, ignored))
    return name;
  return findInHubCache(name);
}

std::string modelTypeOf(const std::string &name) {
  DiagnosticEngine quiet; // what is wrong is said where the model is read
  std::unique_ptr<yaml::Document> document;
  const std::string folder = modelFolder(name);
  if (!folder.empty()) {
    fs::path path = folder;
    std::error_code ignored;
    if (fs::is_directory(path, ignored))
      path /= "config.json";
    document = yaml::parseFile(path.string(), quiet);
  } else if (const auto published = publishedModel(name)) {
    document = yaml::parseText("config.json", published->config, quiet);
  }
  if (!document || !document->root() || !document->root()->isMapping())
    return "";
  const yaml::Node *type = document->root()->find("model_type");
  return type ? type->text : "";
}

std::optional<ModuleTree> moduleTreeNamed(const std::string &name,
                                          const ModuleTreeOptions &options,
                                          DiagnosticEngine &engine) {
  return readNamed(
      name,
      [&](const std::string &folder) {
        return readModuleTree(folder, options, engine);
      },
      [&](const std::string &text, const std::string &file) {
        return parseModuleTree(text, file, options, engine);
      });
}

std::string hubHint(const std::string &name) {
  const std::string hint =
      "download its configuration with: hf download " + name + " config.json";
  if (publishedModel(name))
    return hint;
  std::vector<std::string> names;
  for (const PublishedModel &model : publishedModels())
    names.push_back(model.name);
  const std::string meant = didYouMean(name, names);
  return (meant.empty() ? "" : meant + " or ") + hint;
}

} // namespace accel::huggingface
