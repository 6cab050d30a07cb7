//===- RopeTables.h - Positions as operators --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_ROPETABLES_H
#define ACCEL_FRONTENDS_HUGGINGFACE_ROPETABLES_H

#include "frontends/HuggingFace/Decoder.h"
#include "frontends/HuggingFace/FunctionWriter.h"

namespace accel::huggingface {

/// How often and where the tables have an angle: in both halves of a row, in
/// two neighbours, or once, which makes them half as wide.
enum class RopeOrder { Halves, Neighbours, Once };

/// cos and sin of the angles of positions 0 to `sequence` - 1, each
/// [sequence, rope.width(headDim)], in fp32. As transformers' RotaryEmbedding
/// classes compute them.
std::pair<mlir::Value, mlir::Value>
ropeTables(FunctionWriter &f, const Rope &rope, int64_t headDim,
           int64_t sequence, RopeOrder order = RopeOrder::Halves);

/// x cos + rotate_half(x) sin on the first elements of the last dimension of x
/// [B, S, heads, head_dim], as many as the tables [S, width] have.
mlir::Value rotate(FunctionWriter &f, mlir::Value x, mlir::Value cos,
                   mlir::Value sin);

/// The same of x [B, heads, S, head_dim] by tables of half a head
/// (_apply_rotary_emb of modeling_gpt_oss.py).
mlir::Value rotateHalves(FunctionWriter &f, mlir::Value x, mlir::Value cos,
                         mlir::Value sin);

/// The same as `rotate`, where elements 2i and 2i + 1 are turned by the i-th
/// angle, which stands there in the tables, and stay where they are
/// (modeling_glm4.py).
mlir::Value rotateNeighbours(FunctionWriter &f, mlir::Value x, mlir::Value cos,
                             mlir::Value sin);

/// The same of neighbours: elements 2i and 2i + 1 of all of x are
/// turned by the i-th angle, and the result has the first of each pair before
/// the second ones (apply_rotary_pos_emb_interleave of
/// modeling_deepseek_v3.py).
mlir::Value rotatePairs(FunctionWriter &f, mlir::Value x, mlir::Value cos,
                        mlir::Value sin);

/// What ALiBi adds to the scores, [1, heads, 1, sequence], for causal masks:
/// the slope of a head times the key's position. Falcon counts positions from
/// 0, rounds to bf16 and divides by sqrt(head_dim)
/// (modeling_falcon.build_alibi_tensor); MPT counts up to 0
/// (modeling_mpt.build_mpt_alibi_tensor). In fp32.
mlir::Value alibi(FunctionWriter &f, const Decoder &decoder, int64_t sequence);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_ROPETABLES_H
