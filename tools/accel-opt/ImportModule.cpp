//===- ImportModule.cpp - Inputs as a module of phase model ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-opt/ImportModule.h"

#include "frontends/HuggingFace/BuildModel.h"
#include "passes/Executors/BuildStepModel.h"

using namespace mlir;

namespace accel {

ImportOptions importOptions(const PlanInputs &inputs,
                            const PlanOptions &options, const Target *target) {
  ImportOptions import;
  import.modelName = inputs.modelName;
  // Without a target, accelerate's own device: GPUs unless use_cpu.
  import.device = target ? (target->kind == TargetKind::Cpu ? "cpu" : "cuda")
                  : inputs.job.accelerate.cpu.value ? "cpu"
                                                    : "cuda";
  import.microBatch = inputs.training.microBatch;
  import.sequenceLength = inputs.training.sequenceLength;
  import.accumulation = inputs.training.accumulation;
  import.checkpointDtype = inputs.model.dtype().value_or(plan::DType::F32);
  import.keepUnsharded = options.accumulationMode == "keep_unsharded";
  if (options.prefetch >= 0)
    import.prefetchForward = import.prefetchBackward = options.prefetch;
  return import;
}

FailureOr<OwningOpRef<mlir::ModuleOp>>
importModule(MLIRContext &context, const PlanInputs &inputs,
             const ImportOptions &options, DiagnosticEngine &engine) {
  FailureOr<OwningOpRef<mlir::ModuleOp>> module = huggingface::buildModel(
      context, inputs.model, {options.microBatch, options.sequenceLength},
      engine);
  if (failed(module) ||
      failed(importJob(**module, inputs.job, inputs.training, options, engine)))
    return failure();
  return module;
}

std::shared_ptr<const StepModel>
stepModelOf(MLIRContext &context, const PlanInputs &inputs,
            ImportOptions options, int64_t microBatch, ExecutorKind executor,
            const Target *target, DiagnosticEngine &engine) {
  options.microBatch = microBatch;
  FailureOr<OwningOpRef<mlir::ModuleOp>> module =
      importModule(context, inputs, options, engine);
  if (failed(module))
    return nullptr;
  StepModelOptions modelOptions;
  modelOptions.executor = executor;
  modelOptions.target = target;
  FailureOr<StepModel> model = buildStepModel(**module, modelOptions);
  if (failed(model))
    return nullptr;
  return std::make_shared<const StepModel>(std::move(*model));
}

} // namespace accel
