//===- DescribeAten.h - What is known of operators --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXPORT_DESCRIBEATEN_H
#define ACCEL_PASSES_EXPORT_DESCRIBEATEN_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {

/// `annotate-layout`: writes on each aten operation, as `aten.strides`, the
/// strides in elements of its results (a list of lists), and as `aten.cost` its
/// floating-point operations and the bytes that it reads and writes.
std::unique_ptr<mlir::Pass> createAnnotateLayoutPass();
void registerAnnotateLayoutPass();

/// `print-operators`: the operations of the aten dialect as JSON, a list of
/// {name, derivative}, sorted by name.
std::unique_ptr<mlir::Pass> createPrintOperatorsPass();
void registerPrintOperatorsPass();

} // namespace accel

#endif // ACCEL_PASSES_EXPORT_DESCRIBEATEN_H
