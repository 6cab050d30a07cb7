//===- TiedWeights.h - Do the files agree with a model's ties? --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// from_pretrained ties two parameters where the files hold one of them, or both
// with equal values. Where they hold both with other values it leaves them
// apart, whatever config.json says: a model that this description does not
// have.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_TIEDWEIGHTS_H
#define ACCEL_FRONTENDS_HUGGINGFACE_TIEDWEIGHTS_H

#include "frontends/HuggingFace/BaseModelWeights.h"
#include "frontends/HuggingFace/Safetensors.h"

namespace accel::huggingface {

/// True where the files hold `first` and `second` with other values.
bool areHeldApart(const Weights &weights, const std::string &first,
                  const std::string &second);

/// False, with an error (exit code 4), where the files hold a tied parameter
/// twice with other values. Reads the bytes of tensors that stand there twice,
/// up to the first that differs.
bool checkTiedWeights(const Weights &weights, const ModelInfo &model,
                      const BaseModelWeights &held, const std::string &folder,
                      DiagnosticEngine &diagnostics);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_TIEDWEIGHTS_H
