//===- BaseModelWeights.h - Base models in checkpoints ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// transformers stores a base model (BertModel, GPT2Model) without the prefix
// under which a model with a head has it (`bert.`, `transformer.`), and reads a
// checkpoint of either into the other: from_pretrained adds the prefix, and
// initialises a head that the checkpoint lacks.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_BASEMODELWEIGHTS_H
#define ACCEL_FRONTENDS_HUGGINGFACE_BASEMODELWEIGHTS_H

#include "frontends/HuggingFace/ModelInfo.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace accel::huggingface {

/// Where a parameter may be: whole under one of `names`, of which the first is
/// its own, or as all of `parts`.
struct StoredAs {
  std::vector<std::string> names, parts;
};

struct BaseModelWeights {
  /// What the checkpoint's names lack ("bert."); empty: they are the model's.
  std::string prefix;
  /// The parameters of a head of which the checkpoint has nothing: they get
  /// first values. Empty: there are none.
  std::vector<bool> fresh;

  /// The name in the checkpoint.
  std::string name(const std::string &own) const;
  bool isFresh(size_t parameter) const {
    return !fresh.empty() && fresh[parameter];
  }
};

/// What a checkpoint in which `has` finds tensors holds of `parameters`, whose
/// base model is below `base` ("bert"). A checkpoint that holds neither the
/// model nor its whole base model gives a BaseModelWeights of nothing special:
/// then what it lacks is missing.
BaseModelWeights
baseModelWeights(const std::vector<StoredAs> &parameters,
                 const std::string &base,
                 const std::function<bool(const std::string &)> &has);

/// The names under which the checkpoint has the parameter, for
/// plan::Parameter::baseNames: the first is empty where it need not have it.
/// Nothing where they are the model's.
std::optional<std::vector<std::string>>
namesInCheckpoint(const BaseModelWeights &held, const ModelInfo &model,
                  size_t parameter);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_BASEMODELWEIGHTS_H
