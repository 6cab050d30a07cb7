//===- CommandLine.h - A command line as a text with places -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCRIPTS_COMMANDLINE_H
#define ACCEL_FRONTENDS_SCRIPTS_COMMANDLINE_H

#include "frontends/Scripts/GivenArguments.h"

#include <functional>
#include <optional>

namespace accel::scripts {

struct Word {
  std::string text;
  yaml::Range range; // in the line that messages show
};

/// The words as the shell would have to read them, on one line, which becomes
/// the engine's source of `name`.
std::vector<Word> placeWords(const std::vector<std::string> &words,
                             const std::string &name, DiagnosticEngine &engine);

/// What argparse does with `words` for a set of options.
class OptionParser {
public:
  /// An option of this name (without dashes, with underscores), or null.
  using Find = std::function<const ArgumentInfo *(std::string_view)>;

  OptionParser(std::string file, Family family, NodeStore &nodes,
               DiagnosticEngine &engine)
      : file(std::move(file)), family(family), nodes(nodes), engine(engine) {}

  /// All options there are; prefixes of one of them mean it if `abbreviations`.
  void setOptions(std::vector<const ArgumentInfo *> known, bool abbreviations);

  /// Reads the option at `words[i]`, advances `i` past it and its values, and
  /// returns what it says. Nothing: no known option (`i` stays), or one whose
  /// value is wrong (reported; `i` advances).
  std::optional<Given> take(const std::vector<Word> &words, size_t &i);
  /// Typed value of an argument from a word, or null (reported).
  const yaml::Node *valueOf(const ArgumentInfo &info, const Word &word,
                            const std::string &written);

private:
  const ArgumentInfo *find(std::string_view option, bool &negated,
                           bool &ambiguous) const;
  /// False (reported) for a word that is none of the choices.
  bool isChoice(const ArgumentInfo &info, const Word &word,
                const std::string &written);
  void error(const yaml::Range &at, const std::string &key,
             const std::string &message, const std::string &hint = "");

  std::string file;
  Family family;
  NodeStore &nodes;
  DiagnosticEngine &engine;
  std::vector<const ArgumentInfo *> options;
  bool abbreviate = false;
};

} // namespace accel::scripts

#endif // ACCEL_FRONTENDS_SCRIPTS_COMMANDLINE_H
