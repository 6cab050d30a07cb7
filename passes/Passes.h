//===- Passes.h - Every pass of accel-opt -----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Declared and described in Passes.td; docs/reference/passes.md is made of it.
// A pass either decides (a typed attribute with its reason) or applies.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PASSES_H
#define ACCEL_PASSES_PASSES_H

#include <memory>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DECL
#include "passes/Passes.h.inc"
} // namespace accel

#endif // ACCEL_PASSES_PASSES_H
