//===- ImportModule.h - Inputs as a module of phase model -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_IMPORTMODULE_H
#define ACCEL_TOOLS_DRIVER_SESSION_IMPORTMODULE_H

#include "passes/FrameworkSteps/StepEvaluator.h"
#include "passes/Pipeline/Import.h"
#include "tools/driver/Advice/Advice.h"

#include "mlir/IR/OwningOpRef.h"

#include <memory>

namespace accel {

/// What `inputs` and the options ask of the compiler for one micro-batch size.
ImportOptions importOptions(const PlanInputs &inputs,
                            const PlanOptions &options, const Target *target);

/// The adapter's layers that a trainer computes in functions of its own. None
/// are where accel-run has PEFT's layers.
AdapterConfig::Functions adapterFunctions(const PlanInputs &inputs,
                                          const ImportOptions &options);

/// The model alone, with its adapter: what importJob completes.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
importModel(mlir::MLIRContext &context, const PlanInputs &inputs,
            const ImportOptions &options, DiagnosticEngine &engine);

/// Turns inputs and options into those of a setting of the search, as far as
/// accel-run's compiler takes it (nothing is offloaded).
void choose(const Advice &advice, const tune::Point &point, PlanInputs &inputs,
            ImportOptions &options);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_IMPORTMODULE_H
