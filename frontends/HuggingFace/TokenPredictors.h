//===- TokenPredictors.h - Layers that predict further tokens ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Multi-token prediction (arXiv:2412.19437, section 2.2;
// megatron/core/transformer/multi_token_prediction.py). Behind the last layer
// stand others of its kind, each of which reads the layer before it and the
// embedding of one token further, and has a loss of its own through the model's
// head. transformers has none of them, whatever num_nextn_predict_layers of
// config.json says.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_TOKENPREDICTORS_H
#define ACCEL_FRONTENDS_HUGGINGFACE_TOKENPREDICTORS_H

#include "frontends/HuggingFace/ModelConfig.h"

namespace accel::huggingface {

/// mtp_loss_scaling_factor's default: the weight of the mean of their losses.
constexpr double tokenPredictorWeight = 0.1;

/// Adds `count` such layers, with the names that DeepSeek-V3's checkpoint gives
/// them. Why `model` has no place for them, or "".
std::string addTokenPredictors(ModelConfig &model, int64_t count);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_TOKENPREDICTORS_H
