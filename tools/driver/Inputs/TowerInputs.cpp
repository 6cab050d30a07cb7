//===- TowerInputs.cpp - What a model has beside its text -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/TowerInputs.h"

#include "frontends/HuggingFace/Wrapped.h"
#include "frontends/Lint/Subject.h"

namespace accel {

void reportTower(const PlanInputs &inputs, const PlanOptions &options,
                 DiagnosticEngine &engine) {
  const huggingface::ModelConfig *config = inputs.model.config();
  if (!config || !huggingface::isWrapper(config->modelType))
    return;
  const std::string beside = huggingface::besideText(config->modelType);
  const std::string count =
      lint::countText(huggingface::numelBesideText(inputs.model.info()));
  const ScriptSettings &script = inputs.job.script;
  const bool recomputes =
      options.gradientCheckpointing.value_or(*script.layerCheckpointing);
  // TrainingArguments.ddp_find_unused_parameters is true by default, but where
  // layers are recomputed (Trainer._build_accelerator_args).
  const bool finds =
      *inputs.job.ddp.findUnusedParameters ||
      ((script.trainer != TrainerKind::None || options.trainerScript) &&
       !recomputes);
  if (inputs.executor == FrameworkKind::Ddp &&
      *inputs.job.accelerate.numProcesses > 1 && !inputs.adapter && !finds)
    engine.warning("unused-parameters", options.config,
                   "without images " + count +
                       " parameters get no gradient, and "
                       "DistributedDataParallel stops at the second step where "
                       "it does not look for them",
                   "pass find_unused_parameters=True "
                   "(DistributedDataParallelKwargs; "
                   "TrainingArguments.ddp_find_unused_parameters), or set "
                   "requires_grad of " +
                       beside + " to False");
  else
    engine.note("unused-parameters", options.config,
                "the plan is of training on text: the " + count +
                    " parameters of " + beside +
                    " are loaded and get no gradient, and what images would "
                    "add is not counted");
}

} // namespace accel
