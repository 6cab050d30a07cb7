//===- BuildLlama.h - The model phase of the Llama family -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Makes MLIR of a configuration: the module tree, the parameters, one function
// of aten operators per distinct segment (embedding, rotary tables, decoder
// layer, head with the loss) and the graph `@train` that calls them. All
// decoder layers share one function. The operators are those that transformers'
// sdpa path runs, in its order, so that fp32 results are equal.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_BUILDLLAMA_H
#define ACCEL_FRONTENDS_HUGGINGFACE_BUILDLLAMA_H

#include "frontends/HuggingFace/LlamaConfig.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace accel::huggingface {

struct BuildOptions {
  int64_t microBatch = 1;     // sequences
  int64_t sequenceLength = 1; // tokens
};

/// Builds the model phase in fp32. `input_ids` and `labels` are [micro-batch,
/// sequence] int64; labels are the next tokens already, and -100 is ignored.
/// Reports sizes that cannot be indexed and fails.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
buildModel(mlir::MLIRContext &context, const LlamaConfig &config,
           const BuildOptions &options, DiagnosticEngine &diagnostics);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_BUILDLLAMA_H
