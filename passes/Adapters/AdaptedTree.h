//===- AdaptedTree.h - Names of a model with an adapter ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What get_peft_model makes of a model's module tree: which modules get a LoRA,
// which are copied to be trained whole, and how everything is called then.
// Without MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_ADAPTERS_ADAPTEDTREE_H
#define ACCEL_PASSES_ADAPTERS_ADAPTEDTREE_H

#include "frontends/Job/AdapterConfig.h"

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace accel {

/// The module that holds the parameter, and the last part of its name.
std::string parentOf(const std::string &fqn);
std::string leafOf(const std::string &fqn);

class AdaptedTree {
public:
  struct Module {
    std::string fqn, className;
  };
  /// What replaces a linear layer. Its weight is [in, out] where `transposed`.
  struct Lora {
    int64_t rank = 0, in = 0, out = 0;
    double scale = 1;
    double dropout = 0; // of its input
    bool transposed = false;
    bool magnitude = false; // DoRA
  };
  /// Shape of the parameter of that name; null if there is none.
  using ShapeOf =
      std::function<const std::vector<int64_t> *(const std::string &)>;

  /// `modules` in the order of named_modules(). Reports what does not fit the
  /// model; then `valid` is false.
  AdaptedTree(std::vector<Module> modules, const std::string &outputEmbedding,
              const ShapeOf &shapeOf, const AdapterConfig &config,
              DiagnosticEngine &engine);
  bool valid() const { return good; }

  /// The modules of the PeftModel.
  std::vector<Module> adaptedModules() const;
  size_t loraCount() const { return loras.size(); }
  const Lora *lora(const std::string &module) const;
  /// A module in the PeftModel: of a copied one, the trained copy.
  std::string path(const std::string &module) const;
  /// A parameter in the PeftModel: of a copied module, the frozen original.
  std::string name(const std::string &parameter) const;
  /// The trained copy of a parameter, if its module is copied.
  std::optional<std::string> copyName(const std::string &parameter) const;
  /// The key of a parameter of the PeftModel in adapter_model.safetensors.
  static std::string key(const std::string &adapted);

private:
  /// The copied module that is or holds `module`; null if none does.
  const std::string *savedAbove(const std::string &module) const;
  void decide(const ShapeOf &shapeOf, const std::string &outputEmbedding);
  bool addLora(const Module &module, const ShapeOf &shapeOf);
  void error(const char *key, std::string code, std::string message,
             std::string hint = "");

  std::vector<Module> modules;
  const AdapterConfig &config;
  DiagnosticEngine &engine;
  std::unordered_map<std::string, Lora> loras;
  std::vector<std::string> saved;
  bool good = true;
};

} // namespace accel

#endif // ACCEL_PASSES_ADAPTERS_ADAPTEDTREE_H
