//===- Command.h - What a launching command says ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The command that starts a job: who launches it, with how many processes and
// which flags, and what is left for the script. Understood are
//
//   accelerate launch [FLAGS] SCRIPT ARGUMENTS
//   torchrun [FLAGS] SCRIPT ARGUMENTS     (python -m torch.distributed.run)
//   deepspeed [FLAGS] SCRIPT ARGUMENTS
//   python SCRIPT ARGUMENTS
//   trl sft|dpo|grpo [--config FILE] [--accelerate_config FILE|NAME] ARGUMENTS
//   axolotl train FILE ARGUMENTS          (accelerate launch -m
//   axolotl.cli.train) llamafactory-cli train FILE ARGUMENTS
//
// with assignments to the environment before it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCRIPTS_COMMAND_H
#define ACCEL_FRONTENDS_SCRIPTS_COMMAND_H

#include "frontends/Scripts/CommandLine.h"

namespace accel::scripts {

enum class Launcher { Accelerate, Torchrun, Deepspeed, Python };
enum class Program { Script, Trl, Axolotl, LlamaFactory };

/// A file, and where it is named.
struct NamedFile {
  std::string name; // empty: none
  std::string file = commandLineName;
  yaml::Range at;
};

struct Command {
  Launcher launcher = Launcher::Accelerate;
  Program program = Program::Script;
  /// "sft", "dpo", ... of `trl`, or what a script's name tells.
  std::string task;
  std::string script;
  yaml::Range scriptRange;
  /// The accelerate YAML of --config_file, and that of --accelerate_config: a
  /// file, or of trl the name of one of its own.
  NamedFile configFile, profile;
  GivenArguments flags; // of accelerate launch
  /// Processes and machines of torchrun and deepspeed; empty: not said.
  std::optional<Setting<int64_t>> processesPerMachine, machines;
  std::vector<Word> arguments; // of the script
  std::map<std::string, Word> environment;
};

/// Understands `words`; what is wrong is reported, and nothing returned where
/// no job can be told from it.
std::optional<Command> readCommand(const std::vector<Word> &words,
                                   NodeStore &nodes, DiagnosticEngine &engine);

/// As many processes as `devices`, a value of CUDA_VISIBLE_DEVICES in `file`,
/// names; nothing for none.
std::optional<Setting<int64_t>> processesOfDevices(const Word &devices,
                                                   const std::string &file);

} // namespace accel::scripts

#endif // ACCEL_FRONTENDS_SCRIPTS_COMMAND_H
