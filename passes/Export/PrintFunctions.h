//===- PrintFunctions.h - Exported functions as JSON ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXPORT_PRINTFUNCTIONS_H
#define ACCEL_PASSES_EXPORT_PRINTFUNCTIONS_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `print-functions{device= accumulate= gradients=}`: writes to stdout a plan
/// of nothing but the module's functions. Every gradient is written, or with
/// `accumulate` added, in the dtype `gradients`.
std::unique_ptr<mlir::Pass> createPrintFunctionsPass();
void registerPrintFunctionsPass();
} // namespace accel

#endif // ACCEL_PASSES_EXPORT_PRINTFUNCTIONS_H
