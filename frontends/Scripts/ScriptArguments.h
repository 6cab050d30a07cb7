//===- ScriptArguments.h - Whose arguments, and what each means -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCRIPTS_SCRIPTARGUMENTS_H
#define ACCEL_FRONTENDS_SCRIPTS_SCRIPTARGUMENTS_H

#include "frontends/Job/ScriptSettings.h"
#include "frontends/Scripts/CommandLine.h"

namespace accel::scripts {

/// Who reads a file of arguments.
enum class Reader { Trainer, Sft, Dpo, Grpo, Axolotl, LlamaFactory };
const char *toString(Reader reader); // "TrainingArguments", "SFTConfig"

/// The first key of a file that recipes of LLaMA-Factory v1 (USE_V1=1) alone
/// have, beside `model` (its v1/config/model_args.py, training_args.py and
/// data_args.py); null where it is no such recipe.
const yaml::Node *llamaFactoryV1Key(const yaml::Node &root);

/// A file's keys tell its reader; nothing if it is no file of arguments.
std::optional<Reader> readerOf(const yaml::Node &root);
/// One of TRL's.
bool isTrl(Reader reader);
/// The reader that "sft", "dpo" or "grpo" names.
std::optional<Reader> readerOfTask(const std::string &task);

/// Releases whose rules apply.
struct Versions {
  std::string transformers = "5.23.0", trl = "1.10.0", peft = "0.21.2";
  std::string deepspeed; // empty: not given
};

/// The arguments that a reader knows, and those that were given.
class Recipe {
public:
  /// `planning`: what is not modelled is an error; lint leaves it out.
  Recipe(Reader reader, Versions versions, bool planning, NodeStore &nodes,
         DiagnosticEngine &engine);

  Reader reader() const { return whose; }
  const Versions &versions() const { return releases; }
  bool planning() const { return forPlanning; }

  /// The argument that a name means here, or null; `family` is whose it is.
  const ArgumentInfo *find(std::string_view name, Family &family) const;

  /// Takes every key of a file.
  void addFile(const std::string &file, const yaml::Node &root);
  /// Takes a script's words; files that it reads are taken by `file`.
  void addWords(const std::vector<Word> &words,
                const std::function<bool(const Word &)> &file);
  /// LLaMA-Factory's and H4's NAME=VALUE.
  bool addAssignment(const Word &word);
  /// An option of accel-opt, which goes before everything else.
  void addOwn(Given given) { given_.add(std::move(given)); }

  /// Whoever starts the script stops with an argument that is unknown.
  void stopAtUnknown() { stops = true; }
  /// Reports unknown arguments, those that are refused, and in one note each
  /// those that change nothing. Then arguments have the names of
  /// transformers and TRL (Meaning::Same).
  void judge();

  const GivenArguments &given() const { return given_; }
  GivenArguments &given() { return given_; }
  /// The default of an argument as a node, or null.
  const yaml::Node *standard(const std::string &name) const;

private:
  void add(const std::string &name, const std::string &written,
           const yaml::Node *value, const std::string &file,
           const yaml::Range &key);
  void unknown(const std::string &written, const std::string &file,
               const yaml::Range &at);
  struct Unknown {
    std::string name, file;
    yaml::Range at;
  };
  void reportUnknown();
  void reportStop(const Unknown &one, const std::string &name,
                  std::vector<std::string> known);
  Reader whose;
  Versions releases;
  const bool forPlanning;
  bool stops = false;
  NodeStore &nodes;
  DiagnosticEngine &engine;
  /// Dataclasses in the order in which a script reads them.
  std::vector<std::pair<Family, std::string_view>> owners;
  GivenArguments given_;
  std::vector<Unknown> unknowns;
};

} // namespace accel::scripts

#endif // ACCEL_FRONTENDS_SCRIPTS_SCRIPTARGUMENTS_H
