//===- ParamRules.h - Regular expressions over parameters -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PIPELINE_PARAMRULES_H
#define ACCEL_PASSES_PIPELINE_PARAMRULES_H

#include <string>
#include <vector>

namespace accel {

/// Which of `names` the regular expression matches: `whole`, or anywhere.
/// On a malformed expression, or one that takes too many steps, returns false
/// and says why in `error`.
bool matchAll(const std::string &regex, bool whole,
              const std::vector<std::string> &names, std::vector<bool> &matches,
              std::string &error);

/// What to say of names that an expression does not match: one of a layer, else
/// the first.
std::string namedLike(const std::vector<std::string> &names);

} // namespace accel

#endif // ACCEL_PASSES_PIPELINE_PARAMRULES_H
