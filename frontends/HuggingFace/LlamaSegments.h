//===- LlamaSegments.h - Segment functions of the Llama family --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_LLAMASEGMENTS_H
#define ACCEL_FRONTENDS_HUGGINGFACE_LLAMASEGMENTS_H

#include "frontends/HuggingFace/BuildLlama.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace accel::huggingface {

/// Each is `func.func private @Name(inputs..., params...)`; parameters carry
/// their name relative to the path of the call.
struct LlamaSegments {
  /// (ids [B, S]) -> hidden [B, S, hidden_size]; at "model.embed_tokens".
  mlir::func::FuncOp embedding;
  /// (hidden) -> cos, sin [S, head_dim] in the dtype of hidden; at
  /// "model.rotary_emb".
  mlir::func::FuncOp rotary;
  /// (hidden, cos, sin) -> hidden; at "model.layers.N".
  mlir::func::FuncOp layer;
  /// (hidden, labels [B, S]) -> 0-d loss; at "".
  mlir::func::FuncOp head;
};

/// Adds the functions at the insertion point of `builder`.
LlamaSegments buildSegments(mlir::OpBuilder &builder, const LlamaConfig &config,
                            const BuildOptions &options);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_LLAMASEGMENTS_H
