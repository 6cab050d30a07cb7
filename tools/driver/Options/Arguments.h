//===- Arguments.h - The command line of a subcommand -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_OPTIONS_ARGUMENTS_H
#define ACCEL_TOOLS_DRIVER_OPTIONS_ARGUMENTS_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace accel {

/// Exit codes of every command (docs: README).
enum ExitCode : int {
  exitOk = 0,
  exitInvalid = 1,
  exitDoesNotFit = 2,
  exitInternal = 3,
  exitNotSupported = 4,
  exitUsage = 64
};

/// Options of one subcommand: `--name VALUE`, `--name=VALUE`, flags, and
/// positional arguments. Unknown options are usage errors with a suggestion.
class Arguments {
public:
  Arguments(std::string command, std::string positionals, std::string summary)
      : command(std::move(command)), positionals(std::move(positionals)),
        summary(std::move(summary)) {}

  void addFlag(std::string name, bool &value, std::string help);
  void addText(std::string name, std::string placeholder, std::string &value,
               std::string help);
  /// A flag that may have a value behind '=': `value` becomes "on" or that.
  void addOptional(std::string name, std::string choice, std::string &value,
                   std::string help);
  /// A positive integer.
  void addCount(std::string name, std::string placeholder, int64_t &value,
                std::string help);
  void addList(std::string name, std::string placeholder,
               std::vector<std::string> &value, std::string help);
  /// One of `choices`.
  void addChoice(std::string name, std::vector<std::string> choices,
                 std::string &value, std::string help);

  /// `--name`, which sets `without`, or `--name=CHOICE` (never a word of its
  /// own, which is the next positional argument).
  void addOptional(std::string name, std::vector<std::string> choices,
                   std::string &value, std::string without, std::string help);
  /// All options that start with `prefix`; `take` gets the rest and returns
  /// what is wrong with it, or "". `placeholder` is for the help.
  void addPrefixed(std::string prefix, std::string placeholder,
                   std::function<std::string(const std::string &)> take,
                   std::string help);

  /// Parses; prints help (returns false, `exitCode` 0) or a usage error
  /// (returns false, `exitCode` 64).
  bool parse(int argc, char **argv, int &exitCode);

  std::vector<std::string> positional;

private:
  struct Option {
    std::string name, placeholder, help;
    bool takesValue = false;
    /// Returns what is wrong with the value, or "".
    std::function<std::string(const std::string &)> set;
    bool mayTakeValue = false; // behind '=' only
    bool optional = false, prefix = false;
  };
  void printHelp() const;
  int usageError(const std::string &message, const std::string &hint) const;

  std::string command, positionals, summary;
  std::vector<Option> options;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_OPTIONS_ARGUMENTS_H
