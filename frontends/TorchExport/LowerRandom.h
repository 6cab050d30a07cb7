//===- LowerRandom.h - Calls that draw numbers ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_LOWERRANDOM_H
#define ACCEL_FRONTENDS_TORCHEXPORT_LOWERRANDOM_H

#include "frontends/TorchExport/Lower.h"

namespace accel::torchexport {

void addRandomRules(llvm::StringMap<Lowering::Rule> &rules);

/// Whether a call draws from a generator: what is recomputed, or run by a
/// function of its own, would draw other numbers. False for dropout of
/// probability 0 or outside training.
bool drawsNumbers(const Call &call);

/// Gives the random operations of a function their keys, in order from 0.
void numberKeys(mlir::func::FuncOp function);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_LOWERRANDOM_H
