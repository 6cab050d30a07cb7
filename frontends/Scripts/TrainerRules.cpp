//===- TrainerRules.cpp - What Trainer checks of a whole job --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/TrainerRules.h"

#include "frontends/Accelerate/DeepspeedJson.h"
#include "frontends/Accelerate/SettingDiagnostic.h"

namespace accel::scripts {

void checkTrainerRules(const JobConfig &job, const Recipe &recipe,
                       bool hasScript, const std::string &file,
                       const LoadOptions &options, DiagnosticEngine &engine) {
  const AccelerateConfig &a = job.accelerate;
  const ScriptSettings &script = job.script;
  const bool fsdp =
      *a.strategy == Strategy::Fsdp1 || *a.strategy == Strategy::Fsdp2;
  auto at = [&](const auto &setting, Severity severity, const char *code,
                const std::string &message, const std::string &hint) {
    Diagnostic d = diagnosticAt(setting, severity, code, message, hint);
    if (d.file.empty()) // a default
      d.file = file;
    engine.report(std::move(d));
  };
  auto find = [&](const char *name) { return recipe.given().find(name); };
  // axolotl has its own way with FSDP's checkpointing.
  const bool trainers = recipe.reader() != Reader::Axolotl;
  if (fsdp && trainers && script.layerCheckpointing.value &&
      *a.activationCheckpointing) {
    at(script.layerCheckpointing, Severity::Error, "conflicting-arguments",
       script.layerCheckpointing.key +
           " and fsdp_activation_checkpointing are both true; Trainer stops "
           "with a ValueError",
       "keep FSDP's");
  } else if (fsdp && script.layerCheckpointing.value && hasScript &&
             !script.ownShards.value) {
    at(script.layerCheckpointing, Severity::Warning, "redundant-gather",
       script.layerCheckpointing.key +
           " recomputes inside of FSDP's units, which gathers each once more "
           "in the backward",
       "write activation_checkpointing: true in fsdp_config, or "
       "fsdp_activation_checkpointing in the accelerate file, instead");
  }
  if (find("deepspeed") && a.deepspeed && !options.accelerate.forPlanning)
    lintDeepspeed(*a.deepspeed, *a.numProcesses, options.accelerate, engine);
  const Given *search = find("auto_find_batch_size");
  if (search && search->value->boolean && a.deepspeed &&
      *a.deepspeed->zeroStage == 3)
    report(engine, Severity::Error, "conflicting-arguments", *search,
           "auto_find_batch_size does not work under ZeRO stage 3; Trainer "
           "stops with a ValueError",
           "--max-batch finds the largest micro-batch beforehand");
  const Given *only = find("save_only_model"),
              *best = find("load_best_model_at_end");
  if (!only || !only->value->boolean)
    return;
  if ((fsdp || a.deepspeed) && best && best->value->boolean)
    report(engine, Severity::Error, "conflicting-arguments", *only,
           "save_only_model with load_best_model_at_end does not work "
           "under FSDP and DeepSpeed; Trainer stops with a ValueError",
           "keep one of them");
  if (fsdp && *a.stateDictType == StateDictType::Sharded)
    report(engine, Severity::Error, "conflicting-arguments", *only,
           "save_only_model needs a whole state dict, and state_dict_type "
           "is SHARDED_STATE_DICT; Trainer stops with a ValueError",
           "write state_dict_type: FULL_STATE_DICT");
}

} // namespace accel::scripts
