//===- TrlConfigs.h - Accelerate files that TRL has by name -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// `--accelerate_config NAME` of TRL's command line means one of the files that
// TRL installs where no file has that name. Nobody edits those: a change of one
// is a change of a copy.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCRIPTS_TRLCONFIGS_H
#define ACCEL_FRONTENDS_SCRIPTS_TRLCONFIGS_H

#include <optional>
#include <string>
#include <vector>

namespace accel::scripts {

/// The release of TRL that brought them; they are the same since.
inline constexpr const char *firstTrlConfigs = "0.18";

/// "fsdp1", "fsdp2", "multi_gpu", ...
const std::vector<std::string> &trlConfigNames();

/// What stands for the path of TRL's file: "<TRL's fsdp2.yaml>".
std::string trlConfigFile(const std::string &name);

/// The text of the file that such a path stands for, with each key at its line
/// of TRL's file; nothing for another path.
std::optional<std::string> trlConfigText(const std::string &path);

/// What a person edits: "a copy of TRL's fsdp2.yaml"; nothing for another path.
std::optional<std::string> trlConfigCopy(const std::string &path);

} // namespace accel::scripts

#endif // ACCEL_FRONTENDS_SCRIPTS_TRLCONFIGS_H
