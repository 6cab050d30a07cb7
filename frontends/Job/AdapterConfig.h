//===- AdapterConfig.h - A LoRA adapter, as PEFT describes it ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What PEFT's LoraConfig says, from an adapter_config.json or from `adapter` of
// a job.yaml, and which modules it means. Matching follows PEFT 0.21
// (peft/tuners/tuners_utils.py, peft/utils/other.py).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_JOB_ADAPTERCONFIG_H
#define ACCEL_FRONTENDS_JOB_ADAPTERCONFIG_H

#include "frontends/Accelerate/AccelerateConfig.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace accel {

/// Names of modules: one regular expression over whole names, or names of
/// which a module's own is equal or ends with (".name").
struct ModuleNames {
  std::optional<std::string> regex;
  std::vector<std::string> names;
  bool empty() const { return !regex && names.empty(); }
  bool matches(const std::string &fqn) const;
};

struct AdapterConfig {
  enum class Bias { None, All, LoraOnly };
  /// First values: A uniform as torch.nn.Linear's (kaiming) and B zero, A
  /// normal with standard deviation 1/r and B zero, or both as A in the first.
  enum class Init { Kaiming, Gaussian, Random };
  template <typename T>
  using Pattern = std::vector<std::pair<std::string, T>>; // in order

  int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;
  ModuleNames target, exclude;
  bool allLinear = false; // target_modules: all-linear
  Bias bias = Bias::None;
  Init init = Init::Kaiming;
  bool rankStabilized = false; // alpha / sqrt(r) instead of alpha / r
  bool magnitude = false;      // use_dora
  bool fanInFanOut = false;
  std::vector<std::string> modulesToSave;
  std::optional<std::vector<int64_t>> layers; // layers_to_transform
  std::vector<std::string> layersPattern;
  Pattern<int64_t> rankPattern; // the first that matches counts
  Pattern<double> alphaPattern;
  std::string taskType;  // CAUSAL_LM, ..., or empty
  std::string baseModel; // base_model_name_or_path, as written

  /// Layers that axolotl computes in autograd functions of its own, adapter and
  /// all, in place of PEFT's modules (axolotl/kernels/lora.py): queries, keys
  /// and values; attention's output; gated MLPs. No key of PEFT's.
  struct Functions {
    bool projections = false, output = false, mlp = false;
    bool any() const { return projections || output || mlp; }
  } functions;

  /// Weights are made in the dtype of the base: PEFT before 0.12 on a base that
  /// is not quantised. Since then they are fp32 where that has 16 bits.
  bool keepsBaseDtype = false;

  std::string file;                       // where it stands
  std::map<std::string, Location> places; // of its keys; "": of the whole
  Location place(const std::string &key) const;

  /// Rank and factor of the module.
  int64_t rankOf(const std::string &fqn) const;
  double scaleOf(const std::string &fqn) const;
  /// Whether the module gets a LoRA; `linear` and `outputEmbedding` are for
  /// all-linear.
  bool targets(const std::string &fqn, bool linear, bool outputEmbedding) const;
  /// After modules were asked for: an expression of which a match was given up,
  /// as it takes too many steps.
  std::optional<std::string> slowExpression() const;
  /// Whether a copy of the module is trained whole: PEFT matches the ends of
  /// names here, so "norm" means "input_layernorm" too.
  bool saves(const std::string &fqn) const;
  /// The class of the model with the adapter.
  std::string modelClass() const;
};

/// Reads `path`, an adapter_config.json or a folder with one. Reports what is
/// wrong or not supported, and returns nothing then.
std::optional<AdapterConfig> readAdapterConfig(const std::string &path,
                                               DiagnosticEngine &engine);
/// The same for text that is already read; `path` is for messages.
std::optional<AdapterConfig> parseAdapterConfig(const std::string &text,
                                                const std::string &path,
                                                DiagnosticEngine &engine);
/// The same for a mapping of a job.yaml, at the key `path`. `strict`: unknown
/// keys are errors. Without `forPlanning` nothing is said of what PEFT does and
/// a plan does not count.
std::optional<AdapterConfig> readAdapter(const std::string &file,
                                         const yaml::Node &node,
                                         const std::string &path, bool strict,
                                         bool forPlanning,
                                         DiagnosticEngine &engine);

/// The adapter_config.json that PEFT loads, with `baseModel` as its base.
std::string adapterConfigText(const AdapterConfig &config,
                              const std::string &baseModel);

} // namespace accel

#endif // ACCEL_FRONTENDS_JOB_ADAPTERCONFIG_H
