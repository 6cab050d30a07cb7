//===- ValidationFolders.cpp - Targets and models by name -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/ValidationFolders.h"

#include "frontends/Diagnostics/InputFiles.h"
#include "passes/Validate/Validate.h"

#include <fstream>
#include <iterator>

namespace accel {

const Target *TargetsByName::operator()(const std::string &name) {
  auto [at, isNew] = known.try_emplace(name);
  if (isNew) {
    const std::string path = folder + "/" + name + ".yaml";
    std::error_code error;
    const bool own = !folder.empty() && std::filesystem::exists(path, error);
    at->second = loadTarget(own ? path : name, engine);
  }
  return at->second ? &*at->second : nullptr;
}

ConfigsByName::ConfigsByName(const std::string &folder) {
  std::error_code error;
  if (folder.empty())
    return;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error)) {
    const std::filesystem::path &path = entry.path();
    const bool isFolder = entry.is_directory(error);
    if (isFolder || path.extension() == ".json")
      files[validate::modelKey(isFolder ? path.filename().string()
                                        : path.stem().string())] =
          isFolder ? path / "config.json" : path;
  }
}

std::optional<validate::OwnConfig>
ConfigsByName::operator()(const std::string &name) const {
  const auto found = files.find(validate::modelKey(name));
  if (found == files.end())
    return std::nullopt;
  std::ifstream in(found->second, std::ios::binary);
  if (!in)
    return std::nullopt;
  noteInputFile(found->second.string());
  return validate::OwnConfig{std::string((std::istreambuf_iterator<char>(in)),
                                         std::istreambuf_iterator<char>()),
                             found->second.string()};
}

} // namespace accel
