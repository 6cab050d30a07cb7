//===- UnitProblem.h - The module tree as wrapping sees it ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_LINT_UNITPROBLEM_H
#define ACCEL_FRONTENDS_LINT_UNITPROBLEM_H

#include "frontends/Lint/Subject.h"
#include "frontends/ModuleTree/UnitSets.h"

namespace accel::lint {

/// What passes/Wrap decides for the configuration and the model.
wrap::Problem unitProblem(const Subject &subject);

/// Class names that wrapping looks for: the key's, or the model's own.
std::vector<std::string> wrapClasses(const Subject &subject);

/// True if `fqn` is below `ancestor` (and not the same).
bool isBelow(const std::string &fqn, const std::string &ancestor);

} // namespace accel::lint

#endif // ACCEL_FRONTENDS_LINT_UNITPROBLEM_H
