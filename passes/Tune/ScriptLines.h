//===- ScriptLines.h - Advice in a script's own words -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A script's arguments stand in a file or on a command line. What an advice
// changes is said as a line of that file, or as the argument; keys that the
// script hands to Accelerate are said in its fsdp_config.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TUNE_SCRIPTLINES_H
#define ACCEL_PASSES_TUNE_SCRIPTLINES_H

#include "passes/Tune/ConfigEdits.h"

namespace accel::tune {

/// Arguments of the script and their values.
using ScriptArguments = std::vector<std::pair<std::string, std::string>>;

/// What says `arguments`: lines of the script's file where it has one and the
/// command line does not say otherwise, else words. `flags` says it to `plan`.
ConfigEdit sayToScript(const ScriptSettings &script,
                       const ScriptArguments &arguments, Flags flags);

/// The script recomputes every layer, or none.
ConfigEdit sayCheckpointing(const ScriptSettings &script, bool everyLayer);

/// What no key says: a `call` of the script's own under FSDP2. An emitted file
/// holds the best setting, of which a change is a part at most.
ConfigEdit sayByCall(FrameworkKind executor, const std::string &call);

/// The lines of an accelerate file as the script says them, where it hands
/// them to Accelerate. Lines of a file that is not there become words.
ConfigEdit linesOfScript(const JobConfig &job, ConfigEdit expression);

/// The axes of a mesh that `--emit python` does not write, with their sizes:
/// fully_shard shards and replicates, and what splits layers, sequences or
/// experts stands elsewhere. "cp 2 and tp 2", or "".
std::string besideFullyShard(const plan::Mesh &mesh);

} // namespace accel::tune

#endif // ACCEL_PASSES_TUNE_SCRIPTLINES_H
