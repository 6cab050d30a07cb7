//===- TrlLaunch.h - What TRL hands to accelerate launch --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// `trl sft --config sft.yaml` starts accelerate launch. Keys of the recipe that
// no dataclass of TRL has become its options, before those of the command line
// (trl/cli/commands/training.py of 1.10): what is written later counts, but for
// accelerate_config, whose first one TRL takes out.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCRIPTS_TRLLAUNCH_H
#define ACCEL_FRONTENDS_SCRIPTS_TRLLAUNCH_H

#include "frontends/Scripts/Command.h"
#include "frontends/Scripts/ScriptArguments.h"

namespace accel::scripts {

struct TrlLaunch {
  GivenArguments flags;
  NamedFile configFile, profile; // as in Command
  /// CUDA_VISIBLE_DEVICES of `env`; empty: not said.
  std::optional<Setting<int64_t>> devices;
};

/// Reads what the recipe at `file` tells the launcher, and returns the keys
/// that are left for the script, whose arguments `script` knows.
const yaml::Node *takeLaunchKeys(const std::string &file,
                                 const yaml::Node &root, const Recipe &script,
                                 TrlLaunch &launch, NodeStore &nodes,
                                 DiagnosticEngine &engine);

/// The accelerate file that the command (null: none) or the recipe names, as a
/// path or as what stands for one of TRL's own, and where. Without a name if
/// none is named, or if it is not there (reported).
NamedFile accelerateFileOf(const Command *command, const TrlLaunch &launch,
                           const Versions &versions, DiagnosticEngine &engine);

} // namespace accel::scripts

#endif // ACCEL_FRONTENDS_SCRIPTS_TRLLAUNCH_H
