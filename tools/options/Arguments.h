//===- Arguments.h - The command line of a command --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One table of options per command: each row has a name, what its value means,
// where the value goes, and its line of help. Parsing, usage errors, the help
// and later questions ("was --model given?") are read from it. Used by
// accel-opt and accel-run, so neither LLVM nor LibTorch is in it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_OPTIONS_ARGUMENTS_H
#define ACCEL_TOOLS_OPTIONS_ARGUMENTS_H

#include "tools/options/ExitCode.h"
#include "tools/options/Values.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace accel {

/// Options of one command: `--name VALUE`, `--name=VALUE`, flags, and
/// positional arguments. Unknown options are usage errors with a suggestion.
class Arguments {
public:
  /// `program` is what a user types ("accel-opt plan"), `positionals` what
  /// follows it; `ending` is printed behind the options.
  Arguments(std::string program, std::string positionals, std::string summary,
            std::string ending = "")
      : program(std::move(program)), positionals(std::move(positionals)),
        summary(std::move(summary)), ending(std::move(ending)) {}

  /// How the value of an option is written.
  enum class Form {
    Flag,     // --name
    Value,    // --name VALUE, --name=VALUE
    Optional, // --name, --name=VALUE
    Joined    // -nameVALUE
  };

  /// One row of the table.
  struct Option {
    std::string name, placeholder, help, section;
    Form form = Form::Flag;
    /// Takes the word ("" of a flag); what is wrong with it, or "".
    std::function<std::string(const std::string &)> take;
    bool given = false; // on this command line
    bool inModule = false;
    bool single = false;

    /// A module that was compiled before has the answer in it.
    Option &saidByModule() {
      inModule = true;
      return *this;
    }
    /// Given twice it is a usage error: one of two outputs would be missing.
    Option &once() {
      single = true;
      return *this;
    }
  };

  /// The rows that follow are listed below this title.
  void section(std::string title) { current = std::move(title); }

  Option &flag(std::string name, bool &value, std::string help);
  /// A flag that does something other than becoming true.
  Option &action(std::string name, std::function<void()> act, std::string help);

  /// An option whose value is a T. Given twice, the second says more or else,
  /// unless once() is called on it.
  template <typename T>
  Option &option(std::string name, T &value, ValueKind<T> kind,
                 std::string help) {
    return add(std::move(name), std::move(kind.placeholder), std::move(help),
               Form::Value,
               [&value, read = kind.read](const std::string &word) {
                 return read(word, value);
               });
  }
  template <typename T>
  Option &option(std::string name, std::optional<T> &value, ValueKind<T> kind,
                 std::string help) {
    return add(std::move(name), std::move(kind.placeholder), std::move(help),
               Form::Value, into(value, kind));
  }
  /// One that may be repeated.
  template <typename T>
  Option &list(std::string name, std::vector<T> &values, ValueKind<T> kind,
               std::string help) {
    return add(std::move(name), std::move(kind.placeholder), std::move(help),
               Form::Value,
               [&values, read = kind.read](const std::string &word) {
                 T value{};
                 std::string wrong = read(word, value);
                 if (wrong.empty())
                   values.push_back(std::move(value));
                 return wrong;
               });
  }
  /// `--name`, which means `without`, or `--name=VALUE`; never a word of its
  /// own, which is the next positional argument.
  template <typename T>
  Option &optionalValue(std::string name, std::optional<T> &value, T without,
                        ValueKind<T> kind, std::string help) {
    auto read = into(value, kind);
    return add(std::move(name), std::move(kind.placeholder), std::move(help),
               Form::Optional,
               [&value, without, read](const std::string &word) {
                 if (!word.empty())
                   return read(word);
                 value = without;
                 return std::string();
               });
  }
  /// All options that start with `prefix`, whose rest is the value.
  Option &joined(std::string prefix, std::string placeholder,
                 std::function<std::string(const std::string &)> take,
                 std::string help);
  /// Words behind "--", which are positional arguments otherwise.
  void rest(std::vector<std::string> &words) { behindDashes = &words; }

  /// Parses; prints help (returns false, `exitCode` 0) or a usage error
  /// (returns false, `exitCode` 64).
  bool parse(const std::vector<std::string> &words, int &exitCode);
  bool parse(int argc, char **argv, int &exitCode) {
    return parse(std::vector<std::string>(argv, argv + argc), exitCode);
  }
  /// The one positional argument, or a usage error that calls it `what`.
  bool one(const std::string &what, std::string &value, int &exitCode) const;
  /// No positional argument, or a usage error.
  bool none(int &exitCode) const;

  /// Sets an option as if it stood on the command line; what is wrong with it,
  /// or "".
  std::string set(const std::string &name, const std::string &value);
  bool given(const std::string &name) const;

  /// Prints a usage error and returns exit code 64.
  int usageError(const std::string &message) const;
  /// What --help prints.
  std::string help() const;
  /// What --help=json prints, for completions and man pages: {program,
  /// positionals, summary, ending, options [{name, placeholder, help, section,
  /// form}]}.
  std::string helpJson() const;

  const std::vector<std::unique_ptr<Option>> &table() const { return options; }
  std::vector<std::string> positional;

private:
  Option &add(std::string name, std::string placeholder, std::string help,
              Form form, std::function<std::string(const std::string &)> take);
  template <typename T>
  static std::function<std::string(const std::string &)>
  into(std::optional<T> &value, const ValueKind<T> &kind) {
    return [&value, read = kind.read](const std::string &word) {
      T next = value.value_or(T{});
      std::string wrong = read(word, next);
      if (wrong.empty())
        value = std::move(next);
      return wrong;
    };
  }
  Option *find(const std::string &word);
  std::string unknown(const std::string &name) const;

  std::string program, positionals, summary, ending, current;
  std::vector<std::unique_ptr<Option>> options;
  std::vector<std::string> *behindDashes = nullptr;
};

} // namespace accel

#endif // ACCEL_TOOLS_OPTIONS_ARGUMENTS_H
