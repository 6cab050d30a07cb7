//===- AdaptedTree.cpp - Names of a model with an adapter -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Adapters/AdaptedTree.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/Diagnostics/Regex.h"
#include "frontends/ModuleTree/LinearClasses.h"

#include <algorithm>

using namespace accel;

namespace {

const std::string prefix = "base_model.model";

std::string join(const std::string &a, const std::string &b) {
  return a.empty() ? b : b.empty() ? a : a + "." + b;
}

bool isInside(const std::string &fqn, const std::string &above) {
  return fqn == above || (fqn.size() > above.size() &&
                          fqn[above.size()] == '.' && fqn.starts_with(above));
}

/// "base_model.model" and the module, without a dot after it for the root.
std::string prefixed(const std::string &fqn) { return join(prefix, fqn); }

bool isLinear(const std::string &className) {
  return isLinearClass(className) || className == "Conv1D";
}

} // namespace

std::string accel::parentOf(const std::string &fqn) {
  size_t dot = fqn.rfind('.');
  return dot == std::string::npos ? "" : fqn.substr(0, dot);
}
std::string accel::leafOf(const std::string &fqn) {
  size_t dot = fqn.rfind('.');
  return dot == std::string::npos ? fqn : fqn.substr(dot + 1);
}

AdaptedTree::AdaptedTree(std::vector<Module> all,
                         const std::string &outputEmbedding,
                         const ShapeOf &shapeOf, const AdapterConfig &config,
                         DiagnosticEngine &engine)
    : modules(std::move(all)), config(config), engine(engine) {
  decide(shapeOf, outputEmbedding);
}

void AdaptedTree::error(const char *key, std::string code, std::string message,
                        std::string hint) {
  engine.report(diagnosticAt(config.place(key), key, Severity::Error,
                             std::move(code), std::move(message),
                             std::move(hint)));
  good = false;
}

void AdaptedTree::decide(const ShapeOf &shapeOf,
                         const std::string &outputEmbedding) {
  for (const Module &module : modules) {
    if (module.fqn.empty() ||
        !config.targets(module.fqn, isLinear(module.className),
                        module.fqn == outputEmbedding))
      continue;
    if (!addLora(module, shapeOf))
      return;
  }
  if (const auto slow = config.slowExpression()) {
    error("target_modules", "invalid-regex",
          "'" + *slow + "' takes too many steps to match names of modules",
          Regex::slowHint);
    return;
  }
  if (loras.empty()) {
    std::string names;
    for (const Module &module : modules) {
      std::string leaf = leafOf(module.fqn);
      if (isLinear(module.className) &&
          ("," + names + ",").find(", '" + leaf + "',") == std::string::npos &&
          ("," + names + ",").find(",'" + leaf + "',") == std::string::npos)
        names += (names.empty() ? "'" : ", '") + leaf + "'";
    }
    error("target_modules", "invalid-value",
          "target_modules matches no module of the model",
          names.empty() ? "" : "linear layers of this model are " + names);
    return;
  }
  for (const Module &module : modules) {
    if (module.fqn.empty() || !config.saves(module.fqn))
      continue;
    if (const std::string *above = savedAbove(module.fqn)) {
      error("modules_to_save", notSupportedCode,
            "modules_to_save matches '" + module.fqn + "' inside of '" +
                *above + "', which it matches too; that is not supported yet",
            "name one of them in full");
      return;
    }
    for (const auto &[fqn, lora] : loras)
      if (isInside(fqn, module.fqn)) {
        error("modules_to_save", "invalid-value",
              "modules_to_save matches '" + module.fqn + "', and '" + fqn +
                  "' in it gets an adapter as well",
              "PEFT matches the ends of names; write exclude_modules");
        return;
      }
    saved.push_back(module.fqn);
  }
  if (saved.empty() && !config.modulesToSave.empty())
    engine.warning("adapter-module", config.file,
                   "modules_to_save matches no module of the model");
}

bool AdaptedTree::addLora(const Module &module, const ShapeOf &shapeOf) {
  if (module.className == "Embedding" || module.className == "Conv2d" ||
      module.className == "Conv1d") {
    error("target_modules", notSupportedCode,
          "an adapter of '" + module.fqn + "', which is of class " +
              module.className + ", is not supported yet");
    return false;
  }
  const std::vector<int64_t> *shape = shapeOf(join(module.fqn, "weight"));
  if (!isLinear(module.className) || !shape || shape->size() != 2) {
    error("target_modules", "invalid-value",
          "'" + module.fqn + "' is of class " + module.className +
              ", which PEFT gives no adapter",
          "name linear layers");
    return false;
  }
  Lora lora;
  lora.transposed = module.className == "Conv1D";
  lora.in = (*shape)[lora.transposed ? 0 : 1];
  lora.out = (*shape)[lora.transposed ? 1 : 0];
  lora.rank = config.rankOf(module.fqn);
  lora.scale = config.scaleOf(module.fqn);
  lora.dropout = config.dropout;
  lora.magnitude = config.magnitude;
  loras[module.fqn] = lora;
  return true;
}

const AdaptedTree::Lora *AdaptedTree::lora(const std::string &module) const {
  auto it = loras.find(module);
  return it == loras.end() ? nullptr : &it->second;
}

const std::string *AdaptedTree::savedAbove(const std::string &module) const {
  for (const std::string &fqn : saved)
    if (isInside(module, fqn))
      return &fqn;
  return nullptr;
}

static std::string insideOf(const std::string &fqn, const std::string &above,
                            const char *child) {
  return join(join(prefixed(above), child),
              fqn.size() > above.size() ? fqn.substr(above.size() + 1) : "");
}

std::string AdaptedTree::path(const std::string &module) const {
  const std::string *above = savedAbove(module);
  return above && *above != module
             ? insideOf(module, *above, "modules_to_save.default")
             : prefixed(module);
}

std::string AdaptedTree::name(const std::string &parameter) const {
  std::string module = parentOf(parameter);
  if (const std::string *above = savedAbove(module))
    return insideOf(parameter, *above, "original_module");
  if (lora(module))
    return prefixed(join(join(module, "base_layer"), leafOf(parameter)));
  return prefixed(parameter);
}

std::optional<std::string>
AdaptedTree::copyName(const std::string &parameter) const {
  if (const std::string *above = savedAbove(parentOf(parameter)))
    return insideOf(parameter, *above, "modules_to_save.default");
  return std::nullopt;
}

std::string AdaptedTree::key(const std::string &adapted) {
  std::string result = adapted;
  for (std::string part : {".modules_to_save.default", ".default"})
    if (size_t at = result.find(part); at != std::string::npos) {
      result.erase(at, part.size());
      break;
    }
  // PEFT saves the vector under the name of its dictionary.
  if (result.ends_with(".lora_magnitude_vector.weight"))
    result.resize(result.size() - std::string(".weight").size());
  return result;
}

std::vector<AdaptedTree::Module> AdaptedTree::adaptedModules() const {
  std::vector<Module> result;
  auto add = [&](const std::string &fqn, const std::string &className) {
    result.push_back({fqn, className});
  };
  for (const Module &module : modules) {
    if (module.fqn.empty()) {
      add("", config.modelClass());
      add("base_model", "LoraModel");
      add(prefix, module.className);
      continue;
    }
    const std::string at = prefixed(module.fqn);
    if (const std::string *above = savedAbove(module.fqn)) {
      if (*above != module.fqn)
        continue;
      add(at, "ModulesToSaveWrapper");
      for (const char *child : {"original_module", "modules_to_save.default"}) {
        if (std::string(child) != "original_module")
          add(at + ".modules_to_save", "ModuleDict");
        for (const Module &part : modules)
          if (isInside(part.fqn, *above))
            add(insideOf(part.fqn, *above, child), part.className);
      }
      continue;
    }
    if (!lora(module.fqn)) {
      add(at, module.className);
      continue;
    }
    add(at, "Linear"); // peft.tuners.lora.layer.Linear, of a Conv1D too
    add(at + ".base_layer", module.className);
    const char *dropout = config.dropout > 0 ? "Dropout" : "Identity";
    for (auto [name, className] : {std::pair("lora_dropout", dropout),
                                   {"lora_A", "Linear"},
                                   {"lora_B", "Linear"}}) {
      add(at + "." + name, "ModuleDict");
      add(at + "." + name + ".default", className);
    }
    add(at + ".lora_embedding_A", "ParameterDict");
    add(at + ".lora_embedding_B", "ParameterDict");
    add(at + ".lora_magnitude_vector", "ModuleDict");
    if (config.magnitude)
      add(at + ".lora_magnitude_vector.default", "DoraLinearLayer");
  }
  return result;
}
