//===- GivenArguments.h - Arguments as they were given ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Arguments come from files, from a script's command line and from options of
// accel-opt. Each is a value with its place; a command line is a file of one
// line to messages.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCRIPTS_GIVENARGUMENTS_H
#define ACCEL_FRONTENDS_SCRIPTS_GIVENARGUMENTS_H

#include "frontends/Accelerate/Setting.h"
#include "frontends/Scripts/Arguments.h"
#include "frontends/Yaml/Yaml.h"

#include <deque>
#include <map>

namespace accel::scripts {

/// What messages call the command line behind `--`.
inline constexpr const char *commandLineName = "<command line>";

/// Nodes that no document holds, and documents that must stay.
class NodeStore {
public:
  /// At `range` of `file`.
  yaml::Node *make(const std::string &file, const yaml::Range &range);
  yaml::Node *text(const std::string &file, const yaml::Range &range,
                   std::string text);
  yaml::Node *integer(const std::string &file, const yaml::Range &range,
                      int64_t value);
  yaml::Node *boolean(const std::string &file, const yaml::Range &range,
                      bool value);
  /// As a plain scalar of YAML reads.
  yaml::Node *plain(const std::string &file, const yaml::Range &range,
                    const std::string &text);
  /// A copy of the tree whose nodes know their file, all at `range` if that is
  /// given.
  yaml::Node *copy(const yaml::Node &node, const std::string &file,
                   const yaml::Range *range = nullptr);
  /// An entry of `mapping`, in place of one of the same name.
  void set(yaml::Node &mapping, const std::string &key,
           const yaml::Node *value);
  void keep(std::unique_ptr<yaml::Document> document) {
    documents.push_back(std::move(document));
  }

private:
  const std::string *fileNamed(const std::string &file);
  std::deque<yaml::Node> nodes;
  std::deque<std::string> files;
  std::vector<std::unique_ptr<yaml::Document>> documents;
};

/// Of which kind a value is, as Python would judge it.
bool fits(ArgumentType type, const yaml::Node &value);

struct Given {
  std::string name;    // of the table
  std::string written; // as it was written: "--bf16", "micro_batch_size"
  Family family = Family::Transformers;
  const ArgumentInfo *info = nullptr; // null: of accel-opt's own options
  const yaml::Node *value = nullptr;
  std::string file;
  yaml::Range key; // where its name stands

  Location at() const {
    const yaml::Mark &mark = value->range.begin;
    return {file, mark.line, mark.column};
  }
};

/// By name; what is added later wins.
class GivenArguments {
public:
  void add(Given given) { byName[given.name] = std::move(given); }
  const Given *find(const std::string &name) const {
    auto found = byName.find(name);
    return found == byName.end() ? nullptr : &found->second;
  }
  const std::map<std::string, Given> &all() const { return byName; }

private:
  std::map<std::string, Given> byName;
};

/// A finding about an argument's value, or with `atKey` about the argument.
void report(DiagnosticEngine &engine, Severity severity, const char *code,
            const Given &given, const std::string &message,
            const std::string &hint = "", bool atKey = false);

} // namespace accel::scripts

#endif // ACCEL_FRONTENDS_SCRIPTS_GIVENARGUMENTS_H
