//===- ScriptJob.h - A job as people start it -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Puts together what decides a job beside an accelerate YAML. From the lowest
// to the highest: the YAML; flags of the launcher; arguments of the script, its
// file before its command line; options of accel-opt. Where a script builds
// an object for Accelerate (mixed precision, FSDP, DeepSpeed), that goes before
// the YAML, as Trainer has it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCRIPTS_SCRIPTJOB_H
#define ACCEL_FRONTENDS_SCRIPTS_SCRIPTJOB_H

#include "frontends/Job/JobConfig.h"
#include "frontends/Scripts/ScriptArguments.h"

namespace accel::scripts {

/// An option of accel-opt that means an argument.
struct OwnOption {
  std::string argument, value; // "use_liger_kernel", "true"
  std::string typed;           // "--liger"
};

struct ScriptInputs {
  /// An accelerate YAML, or a file of arguments; empty: none.
  std::string config;
  std::vector<std::string> trainerFiles; // --trainer
  std::vector<std::string> command;      // behind --
  std::vector<OwnOption> options;
  std::optional<int64_t> processes; // --num-processes
  std::string model;                // --model
  Versions versions;

  /// Something is given that an accelerate YAML or a job.yaml alone is not.
  bool given() const {
    return !trainerFiles.empty() || !command.empty() || !options.empty() ||
           processes.has_value();
  }
};

/// True if the file at `config` is one of arguments (a recipe of TRL, axolotl
/// or LLaMA-Factory, TrainingArguments) rather than an accelerate YAML.
bool isRecipeFile(const std::string &path, const yaml::FileTexts &texts = {});

/// Reads everything that `inputs` names. May be used for planning iff `outcome`
/// is Ok.
LoadedConfig loadScriptJob(const ScriptInputs &inputs,
                           const LoadOptions &options,
                           DiagnosticEngine &engine);

} // namespace accel::scripts

#endif // ACCEL_FRONTENDS_SCRIPTS_SCRIPTJOB_H
