//===- RunJob.h - A measured run as a job of the compiler -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_RUNJOB_H
#define ACCEL_PASSES_VALIDATE_RUNJOB_H

#include "frontends/HuggingFace/ModelConfig.h"
#include "passes/FrameworkSteps/StepEvaluator.h"
#include "passes/Pipeline/Import.h"
#include "passes/Validate/RunDescription.h"

#include "mlir/IR/MLIRContext.h"

namespace accel::validate {

/// The run as what `plan` reads of a file and a model folder.
struct RunJob {
  huggingface::ModelConfig model;
  JobConfig job;
  ImportOptions import;
  std::optional<AdapterConfig> adapter;
  bool adapterAsLoaded = false; // in the base's dtype, not in fp32
  /// Layers with the checkpointing that `import` asks for; the others save
  /// everything.
  double recomputedShare = 1;
  bool eagerAttention = false; // attn_implementation
};

/// Nothing, with a diagnostic, where the model's config.json is refused.
std::optional<RunJob> jobOf(const Run &run, DiagnosticEngine &engine);

/// The job through the compiler, as `plan` takes it: imported, decided by its
/// framework's passes, differentiated, reduced to a step on `target`. Nothing,
/// with a diagnostic in `engine`, where a pass refuses it.
std::optional<DecidedStep> decide(mlir::MLIRContext &context, const RunJob &job,
                                  const Target &target,
                                  DiagnosticEngine &engine);

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_RUNJOB_H
