//===- Yaml.h - YAML and JSON documents that keep positions -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Reads what PyYAML's safe_load reads, and means what it means: YAML 1.1
// scalars (`no` is false, `1e8` is a string, `017` is 15), anchors, `<<`
// merges, the last of duplicate keys. Each node keeps its text, style and
// range. The events are libyaml's, which PyYAML's scanner agrees with. Files
// that end in .json are read as Python's json module reads them.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_YAML_YAML_H
#define ACCEL_FRONTENDS_YAML_YAML_H

#include "frontends/Diagnostics/Diagnostics.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace accel::yaml {

/// Line and column from 1, columns in characters; the byte from 0.
struct Mark {
  int line = 1, column = 1;
  size_t byte = 0;
};
struct Range {
  Mark begin, end; // end is one past the last character
  /// For a Diagnostic.
  operator SourceRange() const {
    return {begin.line, begin.column, end.line, end.column};
  }
};

enum class Kind { Null, Bool, Int, Float, String, Other, Sequence, Mapping };
/// What a value of kind Other is in Python. Recursive is an alias inside of
/// what it names.
enum class Other { None, Date, Bytes, Set, Pairs, Recursive };
/// "null", "a boolean", "an integer", "a number", "a string", "a list", ...
const char *describe(Kind kind);

enum class Style {
  Plain,
  SingleQuoted,
  DoubleQuoted,
  Literal,
  Folded,
  Flow,
  Block
};

struct Node;
struct Entry {
  const Node *key = nullptr;
  const Node *value = nullptr;
  bool merged = false; // comes from a `<<`
  bool flow = false;   // stands between braces
  /// Where the value stands in this entry: of an alias, the alias itself.
  Range at;
};

/// A value. Nodes belong to their Document; an alias is the very node that it
/// names, so trees may share nodes but have no cycles.
struct Node {
  Kind kind = Kind::Null;
  Style style = Style::Plain;
  Other other = Other::None;
  bool anchored = false; // has an anchor, so that aliases may name it
  /// From tag or anchor to the last character, without what follows.
  Range range;
  std::string text;     // scalars: as written, without quotes and escapes
  bool boolean = false; // Bool
  int64_t integer = 0;  // Int that fits (else `huge`)
  double number = 0;    // Int and Float
  bool huge = false;    // Int beyond int64_t; see pythonText
  std::vector<const Node *> items; // Sequence
  std::vector<Entry> entries;      // Mapping: unique keys, in order
  /// The file of a node that is not its tree's own (see frontends/Scripts,
  /// which puts values of several files together); null elsewhere.
  const std::string *source = nullptr;
  /// Other and huge integers: str() and repr() in Python.
  std::shared_ptr<const std::pair<std::string, std::string>> python;
  unsigned char tag = 0, state = 0; // of the reader

  bool isScalar() const { return kind < Kind::Sequence; }
  bool isNull() const { return kind == Kind::Null; }
  bool isString() const { return kind == Kind::String; }
  bool isMapping() const { return kind == Kind::Mapping; }
  bool isSequence() const { return kind == Kind::Sequence; }
  bool isPlain() const { return style == Style::Plain; }
  /// The value of a string key, or null.
  const Node *find(std::string_view key) const;
  const Entry *findEntry(std::string_view key) const;
};

/// What Python's str() makes of the value ("True", "None", "['A', 'B']"): what
/// lands in an environment variable.
std::string pythonText(const Node &node);
/// The value as a person would write it in YAML, cut to fit a message.
std::string shortText(const Node &node);

struct Limits {
  uint64_t bytes = 4ull << 20; // of the file
  int depth = 100;             // nesting
  uint64_t nodes = 1u << 16;   // with every alias expanded
};

class Document {
public:
  const std::string &file() const { return path; }
  /// Null for an empty document.
  const Node *root() const { return rootNode; }

private:
  friend class Builder;
  std::string path;
  const Node *rootNode = nullptr;
  std::deque<Node> nodes;
};

/// Parses `text`, JSON if `file` ends in .json, else YAML, and makes it the
/// engine's source of `file`. Reports errors (codes yaml-syntax, yaml-limit,
/// file-encoding) and the warning duplicate-key; returns null after an error.
std::unique_ptr<Document> parseText(const std::string &file,
                                    std::string_view text,
                                    DiagnosticEngine &engine,
                                    const Limits &limits = {});

/// Reads and parses a file; reports file-not-found, file-unreadable and
/// yaml-limit (too large) as well.
std::unique_ptr<Document> parseFile(const std::string &file,
                                    DiagnosticEngine &engine,
                                    const Limits &limits = {});

/// The whole of a regular file of at most `limit` bytes. On failure `error` is
/// a phrase such as "no such file".
bool readWholeFile(const std::string &file, uint64_t limit, std::string &text,
                   std::string &error);

} // namespace accel::yaml

#endif // ACCEL_FRONTENDS_YAML_YAML_H
