//===- Update.h - When the optimizer updates a unit -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_UPDATE_UPDATE_H
#define ACCEL_PASSES_UPDATE_UPDATE_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `update`: decides whether units are updated as soon as they are reduced.
std::unique_ptr<mlir::Pass> createUpdatePass();
} // namespace accel

#endif // ACCEL_PASSES_UPDATE_UPDATE_H
