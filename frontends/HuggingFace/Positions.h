//===- Positions.h - Sizes that every family has ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_POSITIONS_H
#define ACCEL_FRONTENDS_HUGGINGFACE_POSITIONS_H

#include "frontends/HuggingFace/ModelConfig.h"

namespace accel::huggingface {

/// The input of decoders that says where in its document each token is, [batch,
/// sequence] int64, as transformers has it; a document starts at 0.
inline constexpr const char *positionsInput = "position_ids";

/// Rows of the model's table of positions, which no sequence may exceed; 0
/// where positions are computed (rotary embeddings, ALiBi, relative ones).
int64_t positionRows(const ModelConfig &config);

/// Why samples of `sequence` tokens cannot hold several documents, a phrase, or
/// nothing.
std::string documentsProblem(const ModelConfig &config, int64_t sequence);

/// Width of the residual stream, transformers' config.hidden_size.
int64_t hiddenSize(const ModelConfig &config);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_POSITIONS_H
