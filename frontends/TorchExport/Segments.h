//===- Segments.h - A flat function as segments -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A flat function is cut where numbered modules (elements of a list or of a
// sequence that have modules of their own) begin and end. Segments that compute
// the same become calls of one function. Views are not passed from one segment
// to another: their operand is, and the view is repeated.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_SEGMENTS_H
#define ACCEL_FRONTENDS_TORCHEXPORT_SEGMENTS_H

#include "frontends/HuggingFace/ModelInfo.h"
#include "frontends/TorchExport/Lower.h"

namespace accel::torchexport {

/// Writes the functions and the `sharding.graph` of `flat` at `builder`.
/// `arguments` says what the arguments of `flat` are.
mlir::LogicalResult
writeSegments(mlir::OpBuilder &builder, const Program &program,
              const huggingface::ModelInfo &info, mlir::func::FuncOp flat,
              llvm::ArrayRef<std::pair<unsigned, const InputSpec *>> arguments);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_SEGMENTS_H
