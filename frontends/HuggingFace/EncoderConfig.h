//===- EncoderConfig.h - What encoders' configurations share ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_ENCODERCONFIG_H
#define ACCEL_FRONTENDS_HUGGINGFACE_ENCODERCONFIG_H

#include "frontends/HuggingFace/Activation.h"
#include "frontends/HuggingFace/ModelInfo.h"

#include <optional>
#include <string>
#include <vector>

namespace accel::huggingface {

class ConfigReader;

/// What a classifier is trained on, by transformers' problem_type.
enum class Problem {
  Single,     // labels [samples] int64, cross-entropy
  Multiple,   // labels [samples, labels] of 0 and 1, one logistic loss each
  Regression, // labels [samples] or [samples, labels], squared error
};

struct ClassifierConfig {
  int64_t labels = 2;
  Problem problem = Problem::Single;
  bool operator==(const ClassifierConfig &) const = default;
};

/// id2label or num_labels, and problem_type; reports to `json`.
ClassifierConfig readClassifier(ConfigReader &json);

/// The input that a classifier learns from.
ModelInput labelsInput(const ClassifierConfig &classifier);

/// The class that architectures[0] names, which must be one of `supported`; the
/// first of them where none is named. Names that start with `family` are not
/// supported yet, others contradict `modelType`.
std::string readArchitecture(ConfigReader &json, const std::string &modelType,
                             const std::string &family,
                             const std::vector<std::string> &supported);

/// The function of ACT2FN named `key`; `otherwise` where it is absent.
Activation readActivation(ConfigReader &json, const std::string &key,
                          Activation otherwise);

/// A standard deviation in [0, 1]; transformers takes 0 for 0.02.
double readDeviation(ConfigReader &json, const std::string &key,
                     double otherwise);

/// Refuses an `initializer_range` of 0 where transformers takes it for 0.02 in
/// some modules and for 0 in others.
void refuseZeroDeviation(ConfigReader &json);

/// A norm's epsilon, not negative.
double readEpsilon(ConfigReader &json, const std::string &key,
                   double otherwise);

/// An id of the vocabulary: absent: `otherwise`; null: nothing.
std::optional<int64_t> readTokenId(ConfigReader &json, const std::string &key,
                                   int64_t otherwise, int64_t vocab);

/// Refuses keys that change the model and are not supported yet.
void refuseKeys(ConfigReader &json, std::initializer_list<const char *> keys);

/// Reports where `hidden` is no multiple of `heads`.
void checkHeads(ConfigReader &json, const std::string &key, int64_t hidden,
                int64_t heads);

/// Adds the modules that most families have, in order of registration.
class ModuleWriter {
public:
  explicit ModuleWriter(ModelInfo &info) : info(info) {}
  void linear(const std::string &fqn, int64_t in, int64_t out,
              const plan::Initializer &init, bool bias = true);
  void norm(const std::string &fqn, int64_t size);
  void embedding(const std::string &fqn, int64_t rows, int64_t columns,
                 const plan::Initializer &init);
  void dropout(const std::string &fqn) { info.module(fqn, "Dropout"); }

private:
  ModelInfo &info;
};

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_ENCODERCONFIG_H
