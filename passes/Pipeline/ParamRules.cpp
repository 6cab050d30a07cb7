//===- ParamRules.cpp - Regular expressions over parameters ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/ParamRules.h"

#include <regex>

bool accel::matchAll(const std::string &regex, bool whole,
                     const std::vector<std::string> &names,
                     std::vector<bool> &matches, std::string &error) {
  matches.assign(names.size(), false);
  try {
    std::regex compiled(regex);
    for (size_t i = 0; i < names.size(); ++i)
      matches[i] = whole ? std::regex_match(names[i], compiled)
                         : std::regex_search(names[i], compiled);
  } catch (const std::regex_error &e) {
    error = "'" + regex + "' is no regular expression: " + e.what();
    return false;
  }
  return true;
}
