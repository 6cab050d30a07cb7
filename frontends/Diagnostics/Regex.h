//===- Regex.h - Regular expressions ----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// PCRE2 behind a few functions: the grammar of Python's re, look-around and
// named groups among it, with a bound on what a match may take. Expressions
// come from files of users, and one such as '(.*)*x' would never be done.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_DIAGNOSTICS_REGEX_H
#define ACCEL_FRONTENDS_DIAGNOSTICS_REGEX_H

#include <memory>
#include <optional>
#include <string>

namespace accel {

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

  /// Whether a match was given up at its bound. It and all later ones count as
  /// no match, so that whoever asked must report it.
  bool gaveUp() const;
  /// What to write instead.
  static constexpr const char *slowHint =
      "a group that repeats is repeated, as in '(.*)*': leave one of both out";

private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled;
};

} // namespace accel

#endif // ACCEL_FRONTENDS_DIAGNOSTICS_REGEX_H
