//===- Builder.h - Making documents -----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What the YAML and the JSON reader share: nodes, limits, mappings with the
// last of duplicate keys.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_YAML_BUILDER_H
#define ACCEL_FRONTENDS_YAML_BUILDER_H

#include "frontends/Yaml/Yaml.h"

#include <string>
#include <unordered_map>

namespace accel::yaml {

class Builder {
public:
  Builder(const std::string &file, DiagnosticEngine &engine,
          const Limits &limits);

  /// A new node, or null (reported) if there are too many.
  Node *create(Mark at);
  /// Counts the nodes of an alias' tree; false (reported) if there are too
  /// many.
  bool countAlias(const Node &node, Mark at);
  /// False (reported) if `depth` is beyond the limit.
  bool checkDepth(int depth, Mark at);

  /// Sets `node`'s entries from all keys and values as written: `merged` ones
  /// first, the last of equal keys wins and the others are reported. Returns
  /// false (reported) for a key that Python cannot hash.
  bool setEntries(Node &node, const std::vector<Entry> &merged,
                  const std::vector<Entry> &written);

  void error(const char *code, Mark at, const std::string &message,
             const std::string &hint = "");
  bool failed() const { return anyError; }

  std::unique_ptr<Document> finish(const Node *root);

private:
  std::unique_ptr<Document> document;
  DiagnosticEngine &engine;
  const Limits limits;
  uint64_t count = 0;
  std::unordered_map<const Node *, uint64_t> sizes;
  bool anyError = false;

  uint64_t expandedSize(const Node &node);
};

/// The readers; null after a reported error.
std::unique_ptr<Document> readYaml(const std::string &file,
                                   std::string_view text,
                                   DiagnosticEngine &engine,
                                   const Limits &limits);
std::unique_ptr<Document> readJson(const std::string &file,
                                   std::string_view text,
                                   DiagnosticEngine &engine,
                                   const Limits &limits);

} // namespace accel::yaml

#endif // ACCEL_FRONTENDS_YAML_BUILDER_H
