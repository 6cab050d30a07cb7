//===- Regex.h - Regular expressions ----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// std::regex behind two functions. It is all templates, and every file that
// includes it compiles them anew, for seconds.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_DIAGNOSTICS_REGEX_H
#define ACCEL_FRONTENDS_DIAGNOSTICS_REGEX_H

#include <memory>
#include <optional>
#include <string>

namespace accel {

/// A regular expression in ECMAScript's grammar.
class Regex {
public:
  /// Matches nothing.
  Regex() = default;

  /// None if `expression` is not one; `error` says why.
  static std::optional<Regex> compile(const std::string &expression,
                                      std::string *error = nullptr);

  /// All of `text`, as Python's re.fullmatch.
  bool matches(const std::string &text) const;
  /// Any part of `text`, as Python's re.search.
  bool isIn(const std::string &text) const;
  /// What the last group of the first match in `text` holds.
  std::optional<std::string> lastGroupIn(const std::string &text) const;

private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled;
};

} // namespace accel

#endif // ACCEL_FRONTENDS_DIAGNOSTICS_REGEX_H
