//===- BuildProgram.h - The model phase of a .pt2 ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_BUILDPROGRAM_H
#define ACCEL_FRONTENDS_TORCHEXPORT_BUILDPROGRAM_H

#include "frontends/TorchExport/Symbols.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace accel::torchexport {

/// The module phase of a program at these sizes: module tree, parameters,
/// buffers, segment functions and the graph that calls them, as
/// huggingface::buildModel makes it of a configuration. Reports and fails.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
buildProgram(mlir::MLIRContext &context, const Program &program,
             const Sizes &sizes, DiagnosticEngine &diagnostics);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_BUILDPROGRAM_H
