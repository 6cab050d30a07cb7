//===- ExchangeCost.h - Seconds of an exchange in a function ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_COST_EXCHANGECOST_H
#define ACCEL_PASSES_COST_EXCHANGECOST_H

#include "passes/Targets/Target.h"
#include "runtime/plan/Exchanges.h"
#include "runtime/plan/Mesh.h"

namespace accel {

/// Seconds that ranks take for an instruction of a function that exchanges
/// parts of a value over axes of the mesh ("sharding::all_reduce",
/// "all_gather", "reduce_scatter", "all_to_all"; dialects/Sharding's
/// CollectiveOps.td), alone on the wire; 0 for every other instruction. What
/// such an instruction copies by itself is in its movedBytes.
double exchangeSeconds(const plan::Function &function,
                       const plan::Instruction &instruction,
                       const plan::Mesh &mesh, int64_t ranksPerNode,
                       const Target &target);

/// The same of an exchange of `function`.
double exchangeSeconds(const plan::Function &function,
                       const plan::Exchange &exchange, const plan::Mesh &mesh,
                       int64_t ranksPerNode, const Target &target);

/// "exchanges over tp and ep": what ranks that share a sample, or experts,
/// exchange inside of functions.
std::string exchangesOver(const plan::Mesh &mesh);

} // namespace accel

#endif // ACCEL_PASSES_COST_EXCHANGECOST_H
