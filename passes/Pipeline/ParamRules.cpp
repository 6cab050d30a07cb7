//===- ParamRules.cpp - Regular expressions over parameters ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/ParamRules.h"

#include "frontends/Diagnostics/Regex.h"

#include <algorithm>

bool accel::matchAll(const std::string &regex, bool whole,
                     const std::vector<std::string> &names,
                     std::vector<bool> &matches, std::string &error) {
  matches.assign(names.size(), false);
  const std::optional<Regex> compiled = Regex::compile(regex, &error);
  if (!compiled) {
    error = "'" + regex + "' is no regular expression: " + error;
    return false;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    matches[i] = whole ? compiled->matches(names[i]) : compiled->isIn(names[i]);
    if (compiled->gaveUp()) {
      error = "'" + regex + "' takes too many steps to match '" + names[i] +
              "': " + Regex::slowHint;
      return false;
    }
  }
  return true;
}

std::string accel::namedLike(const std::vector<std::string> &names) {
  if (names.empty())
    return "";
  const auto layer =
      std::find_if(names.begin(), names.end(), [](const std::string &name) {
        return name.find(".0.") != name.npos;
      });
  return "parameters are named like '" +
         (layer == names.end() ? names.front() : *layer) + "'";
}
