//===- Fp8Layers.h - Which linear layers compute in fp8 ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKS_FP8LAYERS_H
#define ACCEL_PASSES_FRAMEWORKS_FP8LAYERS_H

#include "mlir/IR/BuiltinOps.h"

namespace accel {

/// On a sharding.param: the weight of a layer that is converted.
constexpr llvm::StringLiteral fp8Attr = "sharding.fp8";

/// Marks the weights that Accelerate converts, whose dimensions are multiples
/// of 16: by torchao those of every linear layer but the first and the last
/// (utils/ao.py, filter_linear_layers), by TransformerEngine those of every one
/// (utils/transformer_engine.py, convert_model), where one that does not divide
/// ends the conversion of its siblings. `skipsFirst`: torchao's first layer is
/// left out, as Accelerate does.
void markFp8Layers(mlir::ModuleOp module, bool transformerEngine,
                   bool skipsFirst);

/// Converted and all linear layers.
std::pair<int64_t, int64_t> countFp8Layers(mlir::ModuleOp module);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKS_FP8LAYERS_H
