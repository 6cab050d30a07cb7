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
  /// Counts values that are used again; false (reported) if there are too many.
  bool spend(uint64_t values, Mark at);
  /// Counts the nodes of an alias' tree.
  bool countAlias(const Node &node, Mark at);
  /// False (reported) if `depth` is beyond the limit.
  bool checkDepth(int depth, Mark at);

  /// Replaces `node`'s entries, merged ones first, by unique ones: the last of
  /// equal keys wins, the others are reported. Reports keys that Python cannot
  /// hash.
  void makeUnique(Node &node);

  void error(const char *code, const SourceRange &at,
             const std::string &message, const std::string &hint = "",
             std::vector<TextEdit> fix = {});
  void error(const char *code, Mark at, const std::string &message,
             const std::string &hint = "") {
    error(code, SourceRange{at.line, at.column, 0, 0}, message, hint);
  }
  bool failed() const { return anyError; }
  const std::string &file() const { return document->path; }
  DiagnosticEngine &diagnostics() { return engine; }

  std::unique_ptr<Document> finish(const Node *root);

private:
  std::unique_ptr<Document> document;
  DiagnosticEngine &engine;
  const Limits limits;
  uint64_t count = 0;
  std::unordered_map<const Node *, uint64_t> sizes;
  bool anyError = false;
  int duplicates = 0; // keys that are given twice
  /// Findings about keys that are given twice, with their mapping. They are
  /// reported once the whole tree tells the mapping's path.
  std::vector<std::pair<const Node *, Diagnostic>> repeated;

  void reportRepeated(const Node *root);

  uint64_t expandedSize(const Node &node);
};

/// Makes values of the nodes that were composed, from the root on, as PyYAML's
/// SafeConstructor does. `tags` are the names of explicit tags, for messages.
void construct(Builder &builder, Node &root,
               const std::unordered_map<const Node *, std::string> &tags);

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
