//===- Editor.h - Changing a document's text --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Makes the edits of fixes: they keep comments, order and quotes, and know
// block style, flow style and JSON. An empty result says that the text does not
// allow the change (nothing is edited then); each other one can be a
// Diagnostic's `fix` as it is, or be joined with others of the same file:
//
//   yaml::Editor editor(engine.source(file), file);
//   diagnostic.fix = editor.setText(*entry, "no");
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_YAML_EDITOR_H
#define ACCEL_FRONTENDS_YAML_EDITOR_H

#include "frontends/Yaml/Yaml.h"

namespace accel::yaml {

using Edits = std::vector<TextEdit>;

class Editor {
public:
  /// `source` is the text that the nodes were parsed from and must outlive the
  /// editor; `file` says whether it is JSON.
  Editor(std::string_view source, const std::string &file)
      : source(source), json(file.ends_with(".json")) {}

  /// Makes the value the string `text`, in quotes where it needs them.
  Edits setText(const Entry &entry, std::string_view text) const;
  /// Makes the value what `raw` says: "true", "100000000", "[false, false]".
  /// It must be one line that means the same in YAML and in JSON.
  Edits setRaw(const Entry &entry, std::string_view raw) const;
  /// Another name for the key.
  Edits rename(const Entry &entry, std::string_view name) const;
  /// Removes key and value. A comment behind them stays, on its own line. The
  /// only entry of a nested block mapping cannot be removed: its section would
  /// become null; remove the section's own entry then.
  Edits remove(const Entry &entry) const;
  /// Appends an entry to a mapping that is written here (not an alias), with
  /// the indentation of its others; `raw` as for setRaw.
  Edits insert(const Node &mapping, std::string_view key,
               std::string_view raw) const;
  /// setRaw of the entry if the mapping has it, else insert.
  Edits set(const Node &mapping, std::string_view key,
            std::string_view raw) const;

  /// A string as a value in the document's language: plain where that is a
  /// string (`flow`: also between braces), else in quotes of `style`.
  std::string quoted(std::string_view text, Style style = Style::Plain,
                     bool flow = true) const;

private:
  std::string_view source;
  bool json;

  Edits replace(const Range &range, std::string text) const;
  size_t lineStart(size_t byte) const;
  size_t lineEnd(size_t byte) const; // of its text, before the break
  size_t afterBreak(size_t lineEnd) const;
  std::string_view lineBreak() const;
};

} // namespace accel::yaml

#endif // ACCEL_FRONTENDS_YAML_EDITOR_H
