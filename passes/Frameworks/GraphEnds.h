//===- GraphEnds.h - Where compiled graphs end ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKS_GRAPHENDS_H
#define ACCEL_PASSES_FRAMEWORKS_GRAPHENDS_H

#include "llvm/ADT/StringRef.h"

namespace accel {

/// Of a sharding.job under torch.compile: where its graphs end inside of
/// functions. Without it they end with the functions.
constexpr llvm::StringLiteral graphEndsAttr = "sharding.graph_ends";
/// Where a bucket of DDP's gradients is full: DDPOptimizer
/// (torch/_dynamo/backends/distributed.py).
constexpr llvm::StringLiteral endsAtBuckets = "buckets";
/// Around each module: ZeRO-3's _pre_forward_module_hook is under
/// torch.compiler.disable (deepspeed/runtime/zero/parameter_offload.py).
constexpr llvm::StringLiteral endsAtModules = "modules";

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKS_GRAPHENDS_H
