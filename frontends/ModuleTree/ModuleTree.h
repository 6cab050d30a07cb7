//===- ModuleTree.h - The modules of a transformers model -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What `AutoModel...from_config` of transformers 5 builds from a config.json:
// module names and classes, parameters and buffers with shapes and dtypes, tied
// weights, `_no_split_modules`, and which layers attend to a window only. No
// graph is made, so this covers more models than a plan does. The models are
// data (*Families.cpp), in a small language (Description.h).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_MODULETREE_MODULETREE_H
#define ACCEL_FRONTENDS_MODULETREE_MODULETREE_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace accel {

/// In the order of `named_modules()`; the root comes first, its FQN is empty.
struct TreeModule {
  std::string fqn, className;
  int parent = -1; // index in ModuleTree::modules
};

/// In the order of `named_parameters(remove_duplicate=False)`.
struct TreeParameter {
  std::string fqn;
  std::vector<int64_t> shape;
  plan::DType dtype = plan::DType::F32; // when loaded as the checkpoint is
  int module = 0;                       // that holds it
  /// Index of the first parameter that is the same tensor; -1: this is it.
  int tiedTo = -1;
  int64_t numel() const;
};

/// In the order of `named_buffers()`.
struct TreeBuffer {
  std::string fqn;
  std::vector<int64_t> shape;
  plan::DType dtype = plan::DType::F32;
  int module = 0;
  bool asModel = false; // made in the dtype the model is loaded in
  int64_t numel() const;
};

/// How a layer's queries see the keys.
enum class Attention { Full, Sliding };

/// Facts about heads and sizes; 0 where the family has no such thing.
struct TreeSizes {
  int64_t hidden = 0, vocabulary = 0, layers = 0;
  int64_t heads = 0, keyValueHeads = 0, maxPositions = 0;
};

struct ModuleTree {
  std::string file;                     // the config.json
  std::string modelType;                // "llama"
  std::string architecture;             // class of the root: "LlamaForCausalLM"
  plan::DType dtype = plan::DType::F32; // that config.json names, else fp32
  std::vector<TreeModule> modules;
  std::vector<TreeParameter> parameters;
  std::vector<TreeBuffer> buffers;
  std::vector<std::string> noSplit; // `_no_split_modules`, sorted
  /// FQNs of the module that `base_model_prefix` names (the root's FQN "" where
  /// the root is the base model), of `get_input_embeddings()` and of
  /// `get_output_embeddings()`; nothing where the model has none.
  std::optional<std::string> base, inputEmbedding, outputEmbedding;
  std::vector<Attention> attention; // by layer; empty for encoders
  /// What each layer of a hybrid model is: "mamba", "attention", "mlp", "moe";
  /// where it has an MLP besides, its mixer: "linear", "attention". Empty for
  /// others.
  std::vector<std::string> blocks;
  bool tensorParallelPlan = false; // the config class has base_model_tp_plan
  /// Members of config.json that quantize the weights: "bitsandbytes", ...
  std::string quantization;
  TreeSizes sizes;
  /// What config.json says of sizes and switches, by the names of the
  /// description, with the family's defaults; truth values are 0 and 1.
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, std::string> texts; // names of activations

  /// Index of a module, or -1.
  int find(const std::string &fqn) const;
  /// Unique class names, in order of first use.
  std::vector<std::string> classes() const;
  /// Distinct parameters below (and in) a module, by index, tied ones once.
  std::vector<int> parametersOf(int module) const;
  int64_t numelOf(int module) const;
  /// Of all parameters, tied ones once.
  int64_t numel() const { return numelOf(0); }
};

struct ModuleTreeOptions {
  /// Class of the root instead of `architectures[0]`; "base" is the class that
  /// AutoModel makes.
  std::string architecture;
};

/// Reads `path`, a config.json or a folder that holds one. Returns nothing
/// where it is missing or invalid (reported as errors: no-model, invalid-json,
/// invalid-model-config) or where the family is not described (reported as the
/// note unknown-model).
std::optional<ModuleTree> readModuleTree(const std::string &path,
                                         const ModuleTreeOptions &options,
                                         DiagnosticEngine &engine);

/// The same for text that is already read; `file` is for messages.
std::optional<ModuleTree> parseModuleTree(const std::string &text,
                                          const std::string &file,
                                          const ModuleTreeOptions &options,
                                          DiagnosticEngine &engine);

/// Values of `model_type` that are described, sorted.
std::vector<std::string> moduleTreeFamilies();

} // namespace accel

#endif // ACCEL_FRONTENDS_MODULETREE_MODULETREE_H
