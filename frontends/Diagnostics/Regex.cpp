//===- Regex.cpp - Regular expressions ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Diagnostics/Regex.h"

#include <regex>

using namespace accel;

struct Regex::Compiled {
  std::regex regex;
};

std::optional<Regex> Regex::compile(const std::string &expression,
                                    std::string *error) {
  try {
    Regex result;
    result.compiled =
        std::make_shared<const Compiled>(Compiled{std::regex(expression)});
    return result;
  } catch (const std::regex_error &e) {
    if (error)
      *error = e.what();
    return std::nullopt;
  }
}

bool Regex::matches(const std::string &text) const {
  return compiled && std::regex_match(text, compiled->regex);
}

bool Regex::isIn(const std::string &text) const {
  return compiled && std::regex_search(text, compiled->regex);
}

std::optional<std::string> Regex::lastGroupIn(const std::string &text) const {
  std::smatch match;
  if (!compiled || !std::regex_search(text, match, compiled->regex))
    return std::nullopt;
  return match[match.size() - 1].str();
}
