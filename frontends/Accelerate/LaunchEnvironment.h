//===- LaunchEnvironment.h - What accelerate launch would set ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// `accelerate launch` loads a file, merges it into its command line and turns
// the result into environment variables, from which every rank builds its
// plugins. This does the same, release by release, without Accelerate.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_LAUNCHENVIRONMENT_H
#define ACCEL_FRONTENDS_ACCELERATE_LAUNCHENVIRONMENT_H

#include "frontends/Accelerate/KeyTable.h"
#include "frontends/Yaml/Yaml.h"

#include <optional>
#include <string>
#include <vector>

namespace accel {

/// Which part of accelerate/commands/launch.py starts the job.
enum class Launcher {
  Simple,    // one process, or mpirun
  Torchrun,  // torch.distributed.run, for FSDP, DDP and Megatron-LM
  Deepspeed, // torch.distributed.run or DeepSpeed's runner
  Tpu,
  TpuPod,
  Sagemaker
};
const char *toString(Launcher launcher); // "torchrun"

struct EnvironmentVariable {
  std::string name;
  /// Empty: it depends on the machine, and `when` says how.
  std::optional<std::string> value;
  std::string key; // dotted path of the key that it comes from; empty: none
  int line = 0, column = 0; // of that key's value; 0: not written
  std::string when;         // where it is set at all; empty: everywhere
};

struct LaunchEnvironment {
  Launcher launcher = Launcher::Simple;
  /// The error with which launch stops before it starts anything; empty: none.
  std::string refused;
  /// By name. Empty if launch stops.
  std::vector<EnvironmentVariable> variables;
};

/// `root` is a file's mapping, `prefix` its dotted path in messages ("" or
/// "accelerate."); keys in `foreign` are skipped. Assumes what launch finds
/// only on the spot: that the devices, mpirun and the packages that the file
/// asks for are there, that the port is free, and an environment without
/// OMP_NUM_THREADS.
LaunchEnvironment simulateLaunch(const yaml::Node &root,
                                 AccelerateVersion version,
                                 const std::string &prefix = "",
                                 const std::vector<std::string> &foreign = {});

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_LAUNCHENVIRONMENT_H
