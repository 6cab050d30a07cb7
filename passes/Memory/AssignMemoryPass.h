//===- AssignMemoryPass.h - assign-memory ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MEMORY_ASSIGNMEMORYPASS_H
#define ACCEL_PASSES_MEMORY_ASSIGNMEMORYPASS_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `assign-memory`: frees every value at its last use and records each
/// program's peak.
std::unique_ptr<mlir::Pass> createAssignMemoryPass();
} // namespace accel

#endif // ACCEL_PASSES_MEMORY_ASSIGNMEMORYPASS_H
