//===- InitFiles.h - The files that init writes -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INIT_INITFILES_H
#define ACCEL_TOOLS_DRIVER_INIT_INITFILES_H

#include "tools/driver/Init/Init.h"

namespace accel::init {

/// A plain file for this executor: Fsdp2, Ddp or Single. Accelerate has no
/// Fsdp2 `onCpu`.
std::string accelerateText(FrameworkKind executor, const InitOptions &options,
                           bool onCpu = false);
std::string argumentsText(FrameworkKind executor, const InitOptions &options,
                          int64_t batchOfRank, bool onCpu = false);

/// The command that starts all ranks, up to the script's arguments.
std::string launchCommand(const InitOptions &options, bool onCpu,
                          const std::string &accelerateFile);

/// Reasons by key, without its section.
using Reasons = std::map<std::string, std::string>;

/// Those of lines that nobody searches for.
Reasons plainReasons(const InitOptions &options, bool onCpu);

/// `text` with the reason of each line behind it; a line without one stays.
std::string commented(const std::string &text, const Reasons &reasons);

} // namespace accel::init

#endif // ACCEL_TOOLS_DRIVER_INIT_INITFILES_H
