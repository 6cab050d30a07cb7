//===- PlanInputs.h - What a plan is made of --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_PLANINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_PLANINPUTS_H

#include "frontends/HuggingFace/BaseModelWeights.h"
#include "frontends/Job/JobConfig.h"
#include "passes/FrameworkSteps/StepEvaluator.h"
#include "runtime/plan/Plan.h"
#include "tools/driver/Inputs/Model.h"
#include "tools/driver/Options/PlanOptions.h"

#include <memory>
#include <optional>

namespace accel {

/// The configuration, the model and what the runtime needs to know, checked
/// against each other.
struct PlanInputs {
  JobConfig job;
  Model model;
  /// Where Megatron-LM trains a GPT of its own: the model whose sizes it has.
  std::shared_ptr<const Model> sized;
  /// In which the model is loaded.
  plan::DType loadedDtype() const {
    return job.loadDtype.value.value_or(
        model.dtype().value_or(plan::DType::F32));
  }
  std::optional<huggingface::Images> images; // of a sample
  std::optional<AdapterConfig> adapter;
  std::string adapterWeights; // a file; empty: it starts fresh
  /// The model's experts are packed in its files (MXFP4), and dequantised.
  bool dequantizesExperts = false;
  huggingface::BaseModelWeights held; // of the model, by its weights
  plan::Job training;
  std::string modelName;
  std::string targetName; // empty: none
  FrameworkKind executor = FrameworkKind::AccelRun;
  /// Of the command line, else of the job; nothing: the newest.
  std::optional<std::string> torchVersion;
  std::string trainer; // over the executor (frameworks::findTrainer); or empty
  /// The job loads, evaluates, saves and resumes as transformers and Accelerate
  /// do; what other programs hold outside their steps is not modelled.
  bool hasPhases() const {
    return executor != FrameworkKind::AccelRun &&
           executor != FrameworkKind::Megatron && trainer.empty();
  }
  replay::AllocatorRules allocator; // of torch, as --allocator-conf says
  /// The job under other values of mixed_precision, for --tune-precision.
  struct Precision {
    std::string value; // as YAML
    JobConfig job;
  };
  std::vector<Precision> precisions;
};

/// transformers recomputes every layer: as an option says, else the script.
inline bool recomputesLayers(const PlanInputs &inputs,
                             const PlanOptions &options) {
  return options.gradientCheckpointing.value_or(
      *inputs.job.script.layerCheckpointing);
}

/// Reads everything that the options name. Every problem is reported; nothing
/// is returned if there is an error. The model is that of `known`, which was
/// read for another configuration of the same model, if it is given.
std::optional<PlanInputs> readPlanInputs(const PlanOptions &options,
                                         DiagnosticEngine &engine,
                                         const PlanInputs *known = nullptr);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_PLANINPUTS_H
