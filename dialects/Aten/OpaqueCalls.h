//===- OpaqueCalls.h - Which operators are not modelled ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_OPAQUECALLS_H
#define ACCEL_DIALECTS_ATEN_OPAQUECALLS_H

#include "mlir/IR/Operation.h"

namespace accel::aten {

/// An operator of LibTorch that `aten.opaque` calls.
struct OpaqueCallee {
  std::string name;      // "aten::grid_sampler_2d"
  std::string firstPath; // module path of the first call; may be empty
  size_t calls = 0;
};

/// Those below `root`, in the order of their first calls.
std::vector<OpaqueCallee> opaqueCallees(mlir::Operation *root);

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_OPAQUECALLS_H
