//===- Parser.cpp - YAML through libyaml's events -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Utf8.h"
#include "frontends/Yaml/Builder.h"
#include "frontends/Yaml/Resolver.h"

#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <yaml.h>

using namespace accel;
using namespace accel::yaml;

namespace {

Mark markOf(const yaml_mark_t &m) {
  return {static_cast<int>(m.line) + 1, static_cast<int>(m.column) + 1};
}

/// One event, deleted with its owner.
struct Event {
  yaml_event_t raw{};
  Event() = default;
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  ~Event() { clear(); }
  void clear() {
    yaml_event_delete(&raw);
    raw = yaml_event_t{};
  }
  Mark begin() const { return markOf(raw.start_mark); }
  Mark end() const { return markOf(raw.end_mark); }
};

const char *text(const yaml_char_t *t) {
  return reinterpret_cast<const char *>(t);
}

class Reader {
public:
  Reader(const std::string &file, std::string_view input,
         DiagnosticEngine &engine, const Limits &limits)
      : builder(file, engine, limits), input(input) {
    if (!yaml_parser_initialize(&parser))
      std::abort(); // out of memory
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(
        &parser, reinterpret_cast<const unsigned char *>(input.data()),
        input.size());
  }
  ~Reader() { yaml_parser_delete(&parser); }

  std::unique_ptr<Document> read() {
    const Node *root = nullptr;
    if (!next() || !next()) // stream start
      return nullptr;
    if (event.raw.type == YAML_DOCUMENT_START_EVENT) {
      if (!next() || !(root = node(0)) || !notSpecial(root) || !next() ||
          !next())
        return nullptr;
      if (event.raw.type != YAML_STREAM_END_EVENT)
        builder.error("yaml-syntax", event.begin(),
                      "a second document starts here",
                      "keep one document per file");
    }
    checkTabs();
    return builder.finish(root);
  }

private:
  yaml_parser_t parser{};
  Event event;
  Builder builder;
  std::string_view input;
  /// Where quoted and block scalars stand, in characters.
  std::vector<std::pair<size_t, size_t>> opaque;
  /// Null while the anchored node is being read.
  std::unordered_map<std::string, const Node *> anchors;

  /// The next event into `event`; false (reported) at a syntax error.
  bool next() {
    event.clear();
    if (yaml_parser_parse(&parser, &event.raw))
      return true;
    std::string message = parser.problem ? parser.problem : "this is not YAML";
    if (parser.context)
      message += std::string(" ") + parser.context;
    std::string hint;
    if (message.find("start any token") != std::string::npos)
      hint = "indent with spaces, and quote text that starts with @, ` or %";
    if (parser.context && parser.context_mark.line < parser.problem_mark.line)
      message += " that starts at line " +
                 std::to_string(parser.context_mark.line + 1);
    builder.error("yaml-syntax", markOf(parser.problem_mark), message, hint);
    return false;
  }

  /// PyYAML refuses tabs everywhere but in quoted and block scalars and in
  /// comments; libyaml lets some pass.
  void checkTabs() {
    if (builder.failed() || input.find('\t') == std::string_view::npos)
      return;
    auto span = opaque.begin();
    Mark mark;
    bool comment = false, afterBlank = true;
    size_t index = 0;
    for (size_t i = 0; i < input.size(); ++i) {
      char c = input[i];
      if ((static_cast<unsigned char>(c) & 0xc0) == 0x80)
        continue; // a further byte of a character
      while (span != opaque.end() && index >= span->second) {
        ++span;
        afterBlank = true; // a comment may follow at once
      }
      bool inside = span != opaque.end() && index >= span->first;
      ++index;
      if (c == '\n') {
        ++mark.line;
        mark.column = 1;
        comment = false;
        afterBlank = true;
        continue;
      }
      if (!inside && !comment && c == '\t') {
        builder.error("yaml-syntax", mark, "a tab here is not allowed in YAML",
                      "use spaces, or quote the text");
        return;
      }
      ++mark.column;
      comment |= !inside && afterBlank && c == '#';
      afterBlank = c == ' ' || c == '\r' || c == ',' || c == '[' || c == ']' ||
                   c == '{' || c == '}';
    }
  }

  /// Registers the event's anchor; returns its name.
  std::string declare(const yaml_char_t *anchor) {
    if (!anchor)
      return "";
    anchors[text(anchor)] = nullptr;
    return text(anchor);
  }
  const Node *done(const std::string &anchor, Node *node) {
    if (node && !anchor.empty())
      anchors[anchor] = node;
    return node;
  }

  /// The node that starts with `event`; null after an error.
  const Node *node(int depth) {
    if (!builder.checkDepth(depth, event.begin()))
      return nullptr;
    switch (event.raw.type) {
    case YAML_ALIAS_EVENT:
      return alias();
    case YAML_SCALAR_EVENT:
      return scalar();
    case YAML_SEQUENCE_START_EVENT:
      return sequence(depth);
    case YAML_MAPPING_START_EVENT:
      return mapping(depth);
    default:
      builder.error("yaml-syntax", event.begin(), "expected a value");
      return nullptr;
    }
  }

  const Node *alias() {
    std::string name = text(event.raw.data.alias.anchor);
    auto found = anchors.find(name);
    if (found == anchors.end() || !found->second) {
      bool recursive = found != anchors.end();
      builder.error("yaml-syntax", event.begin(),
                    "alias '*" + printable(name) + "' " +
                        (recursive ? "stands inside of what it names"
                                   : "has no anchor before it"),
                    recursive ? "" : "quote the text if the '*' is part of it");
      return nullptr;
    }
    return builder.countAlias(*found->second, event.begin()) ? found->second
                                                             : nullptr;
  }

  /// A lone `!` asks for the usual resolution.
  static bool isTagged(const yaml_char_t *tag) {
    return tag && std::strcmp(text(tag), "!");
  }

  /// The part after "tag:yaml.org,2002:", or null (reported).
  const char *standardTag(const yaml_char_t *tag) {
    constexpr std::string_view prefix = "tag:yaml.org,2002:";
    std::string_view t = text(tag);
    if (t.starts_with(prefix))
      return text(tag) + prefix.size();
    builder.error("yaml-syntax", event.begin(),
                  "tag '" + printable(t) + "' is not known",
                  "remove the tag; safe_load refuses it too");
    return nullptr;
  }
  void wrongTag(std::string_view name) {
    builder.error("yaml-syntax", event.begin(),
                  "tag '!!" + printable(name) + "' does not fit this value");
  }

  const Node *scalar() {
    Node *n = builder.create(event.begin());
    if (!n)
      return nullptr;
    auto &s = event.raw.data.scalar;
    std::string anchor = declare(s.anchor);
    n->range.end = event.end();
    n->text.assign(text(s.value), s.length);
    if (s.style != YAML_PLAIN_SCALAR_STYLE)
      opaque.emplace_back(event.raw.start_mark.index, event.raw.end_mark.index);
    switch (s.style) {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE:
      n->style = Style::SingleQuoted;
      break;
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
      n->style = Style::DoubleQuoted;
      break;
    case YAML_LITERAL_SCALAR_STYLE:
      n->style = Style::Literal;
      break;
    case YAML_FOLDED_SCALAR_STYLE:
      n->style = Style::Folded;
      break;
    default:
      n->style = Style::Plain;
    }
    Tag tag = Tag::String;
    if (isTagged(s.tag)) {
      const char *name = standardTag(s.tag);
      if (!name)
        return nullptr;
      std::string_view t = name;
      if (t == "binary") {
        n->kind = Kind::Other;
        return done(anchor, n);
      }
      if (t == "null")
        tag = Tag::Null;
      else if (t == "bool")
        tag = Tag::Bool;
      else if (t == "int")
        tag = Tag::Int;
      else if (t == "float")
        tag = Tag::Float;
      else if (t == "timestamp")
        tag = Tag::Timestamp;
      else if (t != "str")
        return wrongTag(t), nullptr;
    } else if (s.plain_implicit || s.tag) {
      tag = resolvePlain(n->text);
    }
    // What `<<` and `=` mean depends on where they stand: see mapping().
    if (tag == Tag::Merge || tag == Tag::Value) {
      n->kind = Kind::Other;
      special = n;
      return done(anchor, n);
    }
    if (!constructScalar(tag, *n)) {
      builder.error("yaml-syntax", event.begin(),
                    "'" + printable(n->text) + "' is not a valid value here",
                    "quote it to make it a string");
      return nullptr;
    }
    return done(anchor, n);
  }
  /// The last scalar that was a plain `<<` or `=`.
  const Node *special = nullptr;
  bool notSpecial(const Node *n) {
    if (n != special)
      return true;
    builder.error("yaml-syntax", n->range.begin,
                  "'" + n->text + "' cannot be a value in YAML 1.1",
                  "quote it to make it a string");
    return false;
  }

  const Node *sequence(int depth) {
    Node *n = builder.create(event.begin());
    if (!n)
      return nullptr;
    auto &s = event.raw.data.sequence_start;
    n->kind = Kind::Sequence;
    n->style = s.style == YAML_FLOW_SEQUENCE_STYLE ? Style::Flow : Style::Block;
    std::string anchor = declare(s.anchor);
    bool other = false;
    if (isTagged(s.tag)) {
      const char *name = standardTag(s.tag);
      if (!name)
        return nullptr;
      other = !std::strcmp(name, "omap") || !std::strcmp(name, "pairs");
      if (!other && std::strcmp(name, "seq"))
        return wrongTag(name), nullptr;
    }
    while (true) {
      if (!next())
        return nullptr;
      if (event.raw.type == YAML_SEQUENCE_END_EVENT)
        break;
      const Node *item = node(depth + 1);
      if (!item || !notSpecial(item))
        return nullptr;
      n->items.push_back(item);
    }
    n->range.end = event.end();
    if (other)
      n->kind = Kind::Other;
    return done(anchor, n);
  }

  bool merge(const Node &value, std::vector<Entry> &merged) {
    auto add = [&](const Node &mapping) {
      merged.insert(merged.end(), mapping.entries.begin(),
                    mapping.entries.end());
    };
    if (value.isMapping())
      return add(value), true;
    bool good = value.isSequence();
    for (const Node *item : value.items)
      good &= item->isMapping();
    if (!good) {
      builder.error("yaml-syntax", value.range.begin,
                    "'<<' takes a mapping or a list of mappings");
      return false;
    }
    // Of a list the first has the last word.
    for (auto item = value.items.rbegin(); item != value.items.rend(); ++item)
      add(**item);
    return true;
  }

  const Node *mapping(int depth) {
    Node *n = builder.create(event.begin());
    if (!n)
      return nullptr;
    auto &m = event.raw.data.mapping_start;
    n->kind = Kind::Mapping;
    n->style = m.style == YAML_FLOW_MAPPING_STYLE ? Style::Flow : Style::Block;
    std::string anchor = declare(m.anchor);
    bool other = false;
    if (isTagged(m.tag)) {
      const char *name = standardTag(m.tag);
      if (!name)
        return nullptr;
      other = !std::strcmp(name, "set");
      if (!other && std::strcmp(name, "map"))
        return wrongTag(name), nullptr;
    }
    std::vector<Entry> merged, written;
    while (true) {
      if (!next())
        return nullptr;
      if (event.raw.type == YAML_MAPPING_END_EVENT)
        break;
      const Node *key = node(depth + 1);
      if (!key)
        return nullptr;
      bool isMerge = key == special && key->text == "<<";
      if (key == special && !isMerge)
        const_cast<Node *>(key)->kind = Kind::String; // `=` as a key
      special = nullptr;
      if (!next())
        return nullptr;
      const Node *value = node(depth + 1);
      if (!value || !notSpecial(value))
        return nullptr;
      if (isMerge) {
        if (!merge(*value, merged))
          return nullptr;
      } else {
        written.push_back({key, value, false});
      }
      // A merge copies entries: they count like an alias.
      if (merged.size() > 65536) {
        builder.error("yaml-limit", key->range.begin,
                      "'<<' merges more than 65536 entries");
        return nullptr;
      }
    }
    n->range.end = event.end();
    if (!builder.setEntries(*n, merged, written))
      return nullptr;
    if (other)
      n->kind = Kind::Other;
    return done(anchor, n);
  }
};

/// What PyYAML's reader lets through.
bool isPrintable(uint32_t c) {
  return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c <= 0x7e) ||
         c == 0x85 || (c >= 0xa0 && c <= 0xd7ff) ||
         (c >= 0xe000 && c <= 0xfffd) || c >= 0x10000;
}

/// Reports the first byte that is no text; true if there is none.
bool checkText(const std::string &file, std::string_view input, bool json,
               DiagnosticEngine &engine) {
  Diagnostic d;
  d.file = file;
  d.code = "file-encoding";
  d.line = d.column = 1;
  for (size_t i = 0; i < input.size();) {
    uint32_t code = 0;
    size_t length = utf8Length(input, i, code);
    if (length == 0 || (!json && !isPrintable(code))) {
      char what[80];
      if (length == 0)
        std::snprintf(what, sizeof what, "byte 0x%02x is not valid UTF-8",
                      static_cast<unsigned char>(input[i]));
      else
        std::snprintf(what, sizeof what,
                      "control character U+%04X is not allowed",
                      static_cast<unsigned>(code));
      d.message = what;
      d.hint = length == 0 ? "save the file as UTF-8"
                           : "remove it; is this a text file?";
      engine.report(std::move(d));
      return false;
    }
    i += length;
    if (code == '\n') {
      ++d.line;
      d.column = 1;
    } else {
      ++d.column;
    }
  }
  return true;
}

std::string megabytes(uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

} // namespace

std::unique_ptr<Document> accel::yaml::readYaml(const std::string &file,
                                                std::string_view text,
                                                DiagnosticEngine &engine,
                                                const Limits &limits) {
  // libyaml counts a byte order mark as indentation; PyYAML does not.
  if (text.starts_with("\xef\xbb\xbf"))
    text.remove_prefix(3);
  return Reader(file, text, engine, limits).read();
}

std::unique_ptr<Document> accel::yaml::parseText(const std::string &file,
                                                 std::string_view text,
                                                 DiagnosticEngine &engine,
                                                 const Limits &limits) {
  if (text.size() > limits.bytes) {
    engine.error("yaml-limit", file,
                 "the text is larger than " + megabytes(limits.bytes));
    return nullptr;
  }
  bool json = file.ends_with(".json");
  if (!checkText(file, text, json, engine))
    return nullptr;
  return json ? readJson(file, text, engine, limits)
              : readYaml(file, text, engine, limits);
}

bool accel::yaml::readWholeFile(const std::string &file, uint64_t limit,
                                std::string &text, std::string &error) {
  struct stat info;
  if (stat(file.c_str(), &info) != 0) {
    error = errno == ENOENT ? "no such file" : std::strerror(errno);
    return false;
  }
  if (S_ISDIR(info.st_mode)) {
    error = "this is a folder";
    return false;
  }
  std::FILE *stream = std::fopen(file.c_str(), "rb");
  if (!stream) {
    error = std::strerror(errno);
    return false;
  }
  text.clear();
  char buffer[1 << 16];
  bool good = true;
  while (size_t count = std::fread(buffer, 1, sizeof buffer, stream)) {
    text.append(buffer, count);
    if (text.size() > limit) {
      error = "larger than " + megabytes(limit);
      good = false;
      break;
    }
  }
  if (good && std::ferror(stream)) {
    error = std::strerror(errno);
    good = false;
  }
  std::fclose(stream);
  return good;
}

std::unique_ptr<Document> accel::yaml::parseFile(const std::string &file,
                                                 DiagnosticEngine &engine,
                                                 const Limits &limits) {
  std::string text, error;
  if (!readWholeFile(file, limits.bytes, text, error)) {
    if (error == "no such file")
      engine.error("file-not-found", file, error);
    else if (error.starts_with("larger than"))
      engine.error("yaml-limit", file, "the file is " + error);
    else
      engine.error("file-unreadable", file, "cannot read this file: " + error);
    return nullptr;
  }
  return parseText(file, text, engine, limits);
}
