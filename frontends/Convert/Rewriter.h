//===- Rewriter.h - Changing a YAML file in place ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Changes single keys of a YAML or JSON text and leaves every other byte as it
// is: comments, order, quotes, line ends. Each change is applied at once, the
// text is parsed again, and the new document must be the old one with exactly
// this change; else the change is undone and refused. So a document that is too
// strange to edit (a value behind an alias, a key behind `?`) is never damaged.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CONVERT_REWRITER_H
#define ACCEL_FRONTENDS_CONVERT_REWRITER_H

#include "frontends/Yaml/Editor.h"

namespace accel::convert {

/// What to write.
class Value {
public:
  static Value boolean(bool b) { return {b ? "true" : "false", false}; }
  static Value integer(int64_t n) { return {std::to_string(n), false}; }
  static Value null() { return {"null", false}; }
  static Value string(std::string s) { return {std::move(s), true}; }
  /// A mapping with this one key, on one line; not a scalar that `set` takes.
  static Value mapping(const std::string &key, const Value &value) {
    return {"{" + string(key).write(/*json=*/true) + ": " +
                value.write(/*json=*/true) + "}",
            false};
  }
  /// As it stands in the file; quoted where it would mean something else.
  std::string write(bool json) const;
  const std::string &text() const { return content; }
  /// Whether `node` is this value already, or a string that reads like it.
  bool isWrittenAs(const yaml::Node &node) const;

private:
  Value(std::string content, bool isString)
      : content(std::move(content)), isString(isString) {}
  std::string content;
  bool isString;
};

/// Keys from the root to a value, as written.
using Path = std::vector<std::string>;
using Members = std::vector<std::pair<std::string, Value>>;

class Rewriter {
public:
  /// `file` tells YAML from JSON. `text` must be a valid document that holds a
  /// mapping.
  Rewriter(std::string file, std::string text);

  const std::string &text() const { return content; }
  const yaml::Node &root() const { return *document->root(); }
  /// The value at `path`, or null. Valid until the next change.
  const yaml::Node *find(const Path &path) const;
  const yaml::Entry *findEntry(const Path &path) const;

  // All return whether the change was made; if not, why() tells.

  /// Replaces a scalar or list.
  bool set(const Path &path, const Value &value);
  bool rename(const Path &path, const std::string &key);
  /// Removes a key, all repetitions of it, and what it holds. Comments stay,
  /// those on removed lines on a line of their own.
  bool remove(const Path &path);
  /// Adds a key to the mapping at `parent` (empty: the root).
  bool insert(const Path &parent, const std::string &key, const Value &value);
  /// Adds a mapping of scalars to the root, behind the key `after` or at the
  /// end.
  bool insertSection(const std::string &key, const Members &members,
                     const std::string &after = "");

  /// One phrase.
  const std::string &why() const { return reason; }

private:
  std::string file, content;
  bool json;
  std::unique_ptr<yaml::Document> document;
  std::string reason;

  bool read();
  bool refuse(std::string why);
  size_t lineStart(size_t at) const;
  size_t lineEnd(size_t at) const;  // before the line break
  size_t nextLine(size_t at) const; // behind it
  std::string lineBreak() const;
  /// The blanks before `at` on its line, or nothing if other text is there.
  std::optional<std::string> indentOf(size_t at) const;
  /// The comments from the line of `first` to that of `last`, each with its
  /// line break; text in `opaque` is none.
  std::string comments(size_t first, size_t last, const std::string &indent,
                       const std::vector<yaml::Range> &opaque) const;
  bool removeBlock(const Path &path, const yaml::Entry &entry);

  /// Makes `edits` and parses. `changed` are keys of the mapping at `parent`
  /// that may differ; everything else must be equal.
  bool apply(yaml::Edits edits, const Path &parent,
             const std::vector<std::string> &changed);
};

/// The same value, whatever its style and place.
bool equal(const yaml::Node &a, const yaml::Node &b);

} // namespace accel::convert

#endif // ACCEL_FRONTENDS_CONVERT_REWRITER_H
