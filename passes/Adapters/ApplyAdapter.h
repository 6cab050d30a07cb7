//===- ApplyAdapter.h - A model with a LoRA adapter -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_ADAPTERS_APPLYADAPTER_H
#define ACCEL_PASSES_ADAPTERS_APPLYADAPTER_H

#include "frontends/Job/AdapterConfig.h"

#include "mlir/IR/BuiltinOps.h"

namespace accel {

/// Rewrites a module of phase `model` (of any frontend, before or after the job
/// is added) into what PEFT's get_peft_model makes of it (Hu et al., LoRA,
/// arXiv 2106.09685): y + (x A^T B^T) * scale behind each matmul with a
/// targeted weight, in PEFT's order of operators; modules and parameters under
/// PEFT's names; all frozen but the adapter, copies of `modules_to_save` and
/// the biases that `bias` says. Calls whose layers differ get functions of
/// their own. Reports what does not fit the model and fails.
mlir::LogicalResult applyAdapter(mlir::ModuleOp module,
                                 const AdapterConfig &config,
                                 DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_PASSES_ADAPTERS_APPLYADAPTER_H
