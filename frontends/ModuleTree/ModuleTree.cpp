//===- ModuleTree.cpp - The modules of a transformers model ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/ModuleTree/ModuleTree.h"
#include "frontends/ConfigJson/JsonDocument.h"
#include "frontends/ModuleTree/Description.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace accel {

static int64_t product(const std::vector<int64_t> &shape) {
  int64_t n = 1;
  for (int64_t dim : shape)
    if (__builtin_mul_overflow(n, dim, &n))
      return INT64_MAX;
  return n;
}

int64_t TreeParameter::numel() const { return product(shape); }
int64_t TreeBuffer::numel() const { return product(shape); }

int ModuleTree::find(const std::string &fqn) const {
  for (size_t i = 0; i < modules.size(); ++i)
    if (modules[i].fqn == fqn)
      return static_cast<int>(i);
  return -1;
}

std::vector<std::string> ModuleTree::classes() const {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const TreeModule &module : modules)
    if (seen.insert(module.className).second)
      names.push_back(module.className);
  return names;
}

std::vector<int> ModuleTree::parametersOf(int module) const {
  // Modules stand in preorder, so a subtree is a range.
  size_t end = static_cast<size_t>(module) + 1;
  while (end < modules.size() && modules[end].parent >= module)
    ++end;
  std::set<int> found;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const TreeParameter &p = parameters[i];
    if (p.module >= module && p.module < static_cast<int>(end))
      found.insert(p.tiedTo < 0 ? static_cast<int>(i) : p.tiedTo);
  }
  return {found.begin(), found.end()};
}

int64_t ModuleTree::numelOf(int module) const {
  int64_t total = 0;
  for (int i : parametersOf(module))
    if (__builtin_add_overflow(
            total, parameters[static_cast<size_t>(i)].numel(), &total))
      return INT64_MAX;
  return total;
}

std::vector<std::string> moduleTreeFamilies() {
  return moduletree::familyNames();
}

std::optional<ModuleTree> parseModuleTree(const std::string &text,
                                          const std::string &file,
                                          const ModuleTreeOptions &options,
                                          DiagnosticEngine &engine) {
  huggingface::ConfigReader config(text, file, engine);
  if (config.failed())
    return std::nullopt;
  std::optional<std::string> modelType = config.text("model_type");
  if (!modelType) {
    if (!config.failed())
      config.error("", "'model_type' is missing");
    return std::nullopt;
  }
  const moduletree::Family *family = moduletree::findFamily(*modelType);
  if (!family || (family->describes && !family->describes(config))) {
    engine.note("unknown-model", file,
                "the modules of model_type '" + printable(*modelType) +
                    "' are not known here, so what depends on them is not "
                    "checked",
                family ? ""
                       : didYouMean(*modelType, moduletree::familyNames()));
    return std::nullopt;
  }
  std::string architecture = options.architecture;
  const nlohmann::json *given = config.find("architectures");
  if (architecture.empty() && given && given->is_array() && !given->empty() &&
      (*given)[0].is_string())
    architecture = (*given)[0].get<std::string>();
  std::optional<ModuleTree> tree = moduletree::instantiate(
      *family, std::move(architecture), config, engine, file);
  if (!tree)
    return std::nullopt;
  tree->file = file;
  tree->modelType = *modelType;
  if (config.find("quantization_config"))
    tree->quantization =
        config.text("quantization_config.quant_method").value_or("unknown");
  return tree;
}

std::optional<ModuleTree> readModuleTree(const std::string &path,
                                         const ModuleTreeOptions &options,
                                         DiagnosticEngine &engine) {
  std::error_code error;
  std::string file = path;
  if (std::filesystem::is_directory(path, error))
    file = (std::filesystem::path(path) / "config.json").string();
  if (!std::filesystem::exists(file, error)) {
    engine.error("no-model", file, "there is no such config.json",
                 "pass the folder of a transformers model");
    return std::nullopt;
  }
  std::string text;
  if (!huggingface::readFile(file, uint64_t(16) << 20, text, engine))
    return std::nullopt;
  return parseModuleTree(text, file, options, engine);
}

} // namespace accel
