//===- Positions.h - Sizes that every family has ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_POSITIONS_H
#define ACCEL_FRONTENDS_HUGGINGFACE_POSITIONS_H

#include "frontends/HuggingFace/ModelConfig.h"

namespace accel::huggingface {

/// Rows of the model's table of positions, which no sequence may exceed; 0
/// where positions are computed (rotary embeddings, ALiBi, relative ones).
int64_t positionRows(const ModelConfig &config);

/// Width of the residual stream, transformers' config.hidden_size.
int64_t hiddenSize(const ModelConfig &config);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_POSITIONS_H
