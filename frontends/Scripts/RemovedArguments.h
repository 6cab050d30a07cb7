//===- RemovedArguments.h - Arguments that went -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCRIPTS_REMOVEDARGUMENTS_H
#define ACCEL_FRONTENDS_SCRIPTS_REMOVEDARGUMENTS_H

#include "frontends/Diagnostics/Diagnostics.h"

#include <string>
#include <string_view>

namespace accel::scripts {

/// An argument of TrainingArguments that the newest release does not have.
struct RemovedArgument {
  std::string_view name;
  const char *instead; // the argument with its meaning; "": none
  const char *hint;    // what to write
  /// The first release of transformers without it.
  const char *until;
};

/// Null for a name that TrainingArguments never had.
const RemovedArgument *removedArgument(std::string_view name);

/// False (an error) where this release of transformers has no such argument.
bool reportRemoved(const RemovedArgument &former, const std::string &written,
                   const std::string &file, const SourceRange &at,
                   const std::string &transformersVersion,
                   DiagnosticEngine &engine);

/// `version` is at least `other`, number by number.
bool isAtLeast(const std::string &version, const std::string &other);

} // namespace accel::scripts

#endif // ACCEL_FRONTENDS_SCRIPTS_REMOVEDARGUMENTS_H
