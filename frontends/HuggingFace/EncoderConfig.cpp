//===- EncoderConfig.cpp - What encoders' configurations share ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/EncoderConfig.h"

#include "frontends/ConfigJson/ConfigReader.h"

#include <algorithm>

using namespace accel;
using namespace accel::huggingface;

/// As PreTrainedConfig does: id2label goes before num_labels.
static int64_t readLabels(ConfigReader &json) {
  const nlohmann::json *names = json.find("id2label");
  if (!names)
    return json.size("num_labels", 2, sizeLimits::size, /*nullable=*/true);
  if (!names->is_object() || names->empty()) {
    json.error("id2label", "'id2label' must be an object of at least one name");
    return 2;
  }
  const auto labels = static_cast<int64_t>(names->size());
  const int64_t said =
      json.size("num_labels", labels, sizeLimits::size, /*nullable=*/true);
  if (said != labels)
    json.warning("num_labels", "ignored-key",
                 "'num_labels' is " + std::to_string(said) +
                     ", and 'id2label' names " + std::to_string(labels) +
                     ": the names count");
  return labels;
}

ClassifierConfig accel::huggingface::readClassifier(ConfigReader &json) {
  ClassifierConfig result;
  result.labels = readLabels(json);
  result.problem = result.labels == 1 ? Problem::Regression : Problem::Single;
  std::optional<std::string> problem = json.text("problem_type");
  if (!problem)
    return result;
  if (*problem == "regression")
    result.problem = Problem::Regression;
  else if (*problem == "multi_label_classification")
    result.problem = Problem::Multiple;
  else if (*problem != "single_label_classification")
    json.error("problem_type",
               "'problem_type' is regression, single_label_classification or "
               "multi_label_classification, not '" +
                   printable(*problem) + "'");
  else if (result.labels == 1)
    json.error("problem_type", "single_label_classification takes at least 2 "
                               "labels; this model has 1");
  else
    result.problem = Problem::Single;
  return result;
}

ModelInput accel::huggingface::labelsInput(const ClassifierConfig &classifier) {
  return {"labels",
          classifier.problem == Problem::Single ? classifier.labels : 0, false};
}

std::string accel::huggingface::readArchitecture(
    ConfigReader &json, const std::string &modelType, const std::string &family,
    const std::vector<std::string> &supported) {
  const std::string name =
      json.architecture(supported.front()).value_or(supported.front());
  if (std::find(supported.begin(), supported.end(), name) != supported.end())
    return name;
  std::string known;
  for (const std::string &one : supported)
    known += (known.empty() ? "" : ", ") + one;
  std::string shown = "architecture '" + printable(name) + "' ";
  if (name.rfind(family, 0) == 0)
    json.unsupported("architectures.0",
                     shown + "is not supported yet; supported are " + known);
  else
    json.error("architectures.0", shown + "contradicts model_type '" +
                                      modelType + "', which has " + known);
  return supported.front();
}

Activation accel::huggingface::readActivation(ConfigReader &json,
                                              const std::string &key,
                                              Activation otherwise) {
  std::optional<std::string> name = json.text(key);
  if (!name)
    return otherwise;
  if (auto activation = parseActivation(*name))
    return *activation;
  json.unsupported(key, "activation '" + printable(*name) +
                            "' is not supported yet; supported are " +
                            activationNames());
  return otherwise;
}

double accel::huggingface::readDeviation(ConfigReader &json,
                                         const std::string &key,
                                         double otherwise) {
  const double value = json.number(key, otherwise);
  if (value < 0 || value > 1)
    json.error(key, "'" + key + "' must be between 0 and 1");
  return value;
}

void accel::huggingface::refuseZeroDeviation(ConfigReader &json) {
  const nlohmann::json *value = json.find("initializer_range");
  if (value && value->is_number() && value->get<double>() == 0)
    json.unsupported("initializer_range",
                     "an 'initializer_range' of 0 is not supported for this "
                     "model type: transformers takes it for 0.02 in some "
                     "modules and for 0 in others");
}

double accel::huggingface::readEpsilon(ConfigReader &json,
                                       const std::string &key,
                                       double otherwise) {
  const double value = json.number(key, otherwise);
  if (value < 0)
    json.error(key, "'" + key + "' must not be negative");
  return value;
}

std::optional<int64_t> accel::huggingface::readTokenId(ConfigReader &json,
                                                       const std::string &key,
                                                       int64_t otherwise,
                                                       int64_t vocab) {
  if (json.isNull(key))
    return std::nullopt;
  std::optional<int64_t> id =
      json.has(key) ? json.integer(key) : std::optional(otherwise);
  if (id && (*id < 0 || *id >= vocab)) {
    json.error(key, "'" + key + "' is " + std::to_string(*id) +
                        ", and the vocabulary has ids 0 to " +
                        std::to_string(vocab - 1));
    return std::nullopt;
  }
  return id;
}

void accel::huggingface::refuseKeys(ConfigReader &json,
                                    std::initializer_list<const char *> keys) {
  for (const char *key : keys) {
    const nlohmann::json *value = json.find(key);
    if (value && *value != false && *value != 0)
      json.unsupported(key, std::string("'") + key + "' is not supported yet");
  }
}

void accel::huggingface::checkHeads(ConfigReader &json, const std::string &key,
                                    int64_t hidden, int64_t heads) {
  if (hidden % heads)
    json.error(key, "the hidden size " + std::to_string(hidden) +
                        " is not a multiple of the " + std::to_string(heads) +
                        " heads");
}

void ModuleWriter::linear(const std::string &fqn, int64_t in, int64_t out,
                          const plan::Initializer &init, bool bias) {
  info.module(fqn, "Linear");
  info.parameter(fqn + ".weight", {out, in}, init);
  if (bias)
    info.parameter(fqn + ".bias", {out}, zerosInit());
}

void ModuleWriter::norm(const std::string &fqn, int64_t size) {
  info.module(fqn, "LayerNorm");
  info.parameter(fqn + ".weight", {size}, onesInit());
  info.parameter(fqn + ".bias", {size}, zerosInit());
}

void ModuleWriter::embedding(const std::string &fqn, int64_t rows,
                             int64_t columns, const plan::Initializer &init) {
  info.module(fqn, "Embedding");
  info.parameter(fqn + ".weight", {rows, columns}, init);
}
