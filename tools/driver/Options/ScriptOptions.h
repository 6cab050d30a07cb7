//===- ScriptOptions.h - A script's arguments on our command line -*- C++ -*-=//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What `plan` and `lint` take beside CONFIG.yaml: files of arguments, the
// command that starts the job, and single options for the usual ones.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_OPTIONS_SCRIPTOPTIONS_H
#define ACCEL_TOOLS_DRIVER_OPTIONS_SCRIPTOPTIONS_H

#include "frontends/Scripts/ScriptJob.h"

namespace accel {

class Arguments;

struct ScriptOptions {
  std::vector<std::string> trainerFiles; // --trainer
  std::vector<std::string> command;      // behind --
  std::optional<int64_t> processes;      // --num-processes
  bool liger = false, compiles = false, compilesRegions = false, packs = false,
       tf32 = false;
  bool offloadsCheckpoints = false; // --gradient-checkpointing=offload
  std::string attention;            // empty: the model's own
  std::string fp8;                  // a recipe; empty: none
  std::optional<int64_t> loraRank;
  std::optional<int64_t> generationBytes; // --generation-memory
  /// The longest sample of the file of --lengths, in tokens.
  std::optional<int64_t> longestSample;
  scripts::Versions versions;

  /// The single options above as arguments and their values.
  std::vector<scripts::OwnOption> arguments() const;
  bool given() const {
    return describeJob() || processes.has_value() || !arguments().empty();
  }
  /// They describe a job without CONFIG.yaml.
  bool describeJob() const { return !trainerFiles.empty() || !command.empty(); }
};

/// One row an option; `options` must outlive `arguments`.
void addScriptArguments(Arguments &arguments, ScriptOptions &options);

/// Takes CONFIG.yaml from the command line, which a job that a script
/// describes does without: then `config` is what messages call the job, and
/// `hasConfig` false. False after a usage error.
bool takeConfig(const Arguments &arguments, const ScriptOptions &options,
                std::string &config, bool &hasConfig, int &exitCode);

/// Reads the job: an accelerate YAML or a job.yaml by itself, or what a script
/// is told on top of it. `model` is that of --model.
LoadedConfig loadJob(const std::string &config, bool hasConfig,
                     const std::string &model, const ScriptOptions &options,
                     const LoadOptions &load, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_OPTIONS_SCRIPTOPTIONS_H
