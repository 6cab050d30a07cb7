//===- Parser.cpp - YAML through libyaml's events -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Composes nodes with tags as yaml/composer.py does. Where libyaml accepts more
// or less than PyYAML's own scanner, the difference is made up here.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Utf8.h"
#include "frontends/Yaml/Builder.h"
#include "frontends/Yaml/Resolver.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <yaml.h>

using namespace accel;
using namespace accel::yaml;

namespace {

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
};

const char *text(const yaml_char_t *t) {
  return reinterpret_cast<const char *>(t);
}

/// From libyaml's marks, which count characters, to bytes, lines and columns.
class Positions {
public:
  /// `shift`: bytes of the file before `input`.
  Positions(std::string_view input, size_t shift, const std::string &file,
            const DiagnosticEngine &engine)
      : shift(shift), input(input), file(file), engine(engine) {
    size_t count = 0;
    for (size_t i = 0; i < input.size(); ++i) {
      if ((static_cast<unsigned char>(input[i]) & 0xc0) == 0x80)
        continue; // a further byte of a character
      if (count++ % stride == 0)
        starts.push_back(static_cast<uint32_t>(i));
    }
    ascii = count == input.size();
    // Line breaks of YAML 1.1 that no editor counts.
    for (std::string_view mark : {"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"})
      otherBreaks |= !ascii && input.find(mark) != input.npos;
    if (ascii)
      starts.clear();
  }

  /// In `input`.
  size_t byteOf(size_t index) const {
    if (ascii)
      return std::min(index, input.size());
    size_t entry = index / stride;
    if (entry >= starts.size())
      return input.size();
    size_t byte = starts[entry];
    for (size_t i = index % stride; i > 0 && byte < input.size(); --i)
      do
        ++byte;
      while (byte < input.size() &&
             (static_cast<unsigned char>(input[byte]) & 0xc0) == 0x80);
    return byte;
  }

  Mark at(const yaml_mark_t &m) const {
    Mark mark{static_cast<int>(m.line) + 1, static_cast<int>(m.column) + 1,
              byteOf(m.index) + shift};
    // libyaml counts a line break at the end, even if none is there.
    return otherBreaks || mark.byte - shift == input.size() ? atByte(mark.byte)
                                                            : mark;
  }

  /// Of a byte of the file.
  Mark atByte(size_t byte) const {
    SourceRange range = engine.rangeOf(file, byte, byte);
    return {std::max(range.line, 1), std::max(range.column, 1), byte};
  }

private:
  static constexpr size_t stride = 64;
  std::vector<uint32_t> starts; // bytes of every 64th character
  size_t shift;
  std::string_view input;
  const std::string &file;
  const DiagnosticEngine &engine;
  bool ascii = true, otherBreaks = false;
};

class Reader {
public:
  Reader(const std::string &file, std::string_view input, size_t shift,
         DiagnosticEngine &engine, const Limits &limits)
      : builder(file, engine, limits), input(input), shift(shift),
        positions(input, shift, file, engine) {
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
      if (!next() || !(root = node(0)) || !next() || !next())
        return nullptr;
      if (event.raw.type != YAML_STREAM_END_EVENT)
        builder.error("yaml-syntax", begin(), "a second document starts here",
                      "keep one document per file");
    }
    checkTabs();
    if (root)
      construct(builder, *const_cast<Node *>(root), tags);
    return builder.finish(root);
  }

private:
  yaml_parser_t parser{};
  Event event;
  Builder builder;
  std::string_view input;
  const size_t shift;
  Positions positions;
  /// Where scalars stand, in bytes of `input`, and whether tabs are part of
  /// them.
  struct Span {
    size_t begin, end;
    bool opaque;
  };
  std::vector<Span> spans;
  std::unordered_map<std::string, Node *> anchors;
  std::unordered_map<const Node *, std::string> tags;
  /// Nodes that are being read: an alias to one makes a circle.
  std::unordered_map<const Node *, bool> open;

  Mark begin() const { return positions.at(event.raw.start_mark); }
  Mark end() const { return positions.at(event.raw.end_mark); }

  /// The next event into `event`; false (reported) at a syntax error.
  bool next() {
    event.clear();
    if (yaml_parser_parse(&parser, &event.raw))
      return true;
    std::string message = parser.problem ? parser.problem : "this is not YAML";
    if (parser.context)
      message += std::string(" ") + parser.context;
    std::string hint;
    Mark at = positions.at(parser.problem_mark);
    size_t byte = positions.byteOf(parser.problem_mark.index);
    if (byte < input.size() && input[byte] == '\t') {
      reportTab(byte);
      return false;
    }
    if (message.find("start any token") != std::string::npos)
      hint = "indent with spaces, and quote text that starts with @, ` or %";
    if (parser.context && parser.context_mark.line < parser.problem_mark.line)
      message += " that starts at line " +
                 std::to_string(positions.at(parser.context_mark).line);
    builder.error("yaml-syntax", at, message, hint);
    return false;
  }

  void reportTab(size_t byte) {
    size_t lineStart = input.find_last_of("\r\n", byte);
    lineStart = lineStart == input.npos ? 0 : lineStart + 1;
    bool indents = input.find_first_not_of(" \t", lineStart) > byte;
    Mark at = positions.atByte(byte + shift);
    std::vector<TextEdit> fix;
    // How deep a tab would indent cannot be known.
    if (!indents)
      fix = {{byte + shift, byte + shift + 1, " "}};
    builder.error(
        "yaml-syntax", SourceRange{at.line, at.column, at.line, at.column + 1},
        "a tab here is not allowed in YAML",
        indents ? "indent with spaces" : "use spaces, or quote the text", fix);
  }

  /// PyYAML refuses tabs everywhere but in quoted and block scalars and in
  /// comments; libyaml lets some pass.
  void checkTabs() {
    auto span = spans.begin();
    for (size_t tab = input.find('\t'); tab != input.npos;) {
      while (span != spans.end() && span->end <= tab)
        ++span;
      if (span != spans.end() && span->begin <= tab) {
        if (!span->opaque)
          reportTab(tab);
        tab = input.find('\t', span->opaque ? span->end : tab + 1);
        continue;
      }
      // A '#' outside of scalars starts a comment.
      size_t from = input.find_last_of("\r\n", tab);
      from = from == input.npos ? 0 : from + 1;
      if (span != spans.begin())
        from = std::max(from, std::min((span - 1)->end, tab));
      size_t sign = input.substr(from, tab - from).find('#');
      if (sign == input.npos)
        reportTab(tab);
      tab = input.find('\t', sign == input.npos
                                 ? tab + 1
                                 : input.find_first_of("\r\n", tab));
    }
  }

  Node *create(const yaml_char_t *anchor) {
    Node *n = builder.create(begin());
    if (!n || !anchor)
      return n;
    n->anchored = true;
    auto [place, isNew] = anchors.emplace(text(anchor), n);
    if (isNew)
      return n;
    builder.error("yaml-syntax", begin(),
                  "anchor '&" + printable(text(anchor)) +
                      "' is given twice, first in line " +
                      std::to_string(place->second->range.begin.line),
                  "choose another name");
    return n;
  }

  void setTag(Node &n, const yaml_char_t *tag, Tag otherwise) {
    Tag result = otherwise;
    // A lone `!` asks for the usual resolution.
    if (tag && std::strcmp(text(tag), "!")) {
      result = tagByName(text(tag));
      constexpr std::string_view prefix = "tag:yaml.org,2002:";
      std::string name = text(tag);
      if (name.starts_with(prefix) && result != Tag::Unknown)
        name = "!!" + name.substr(prefix.size());
      tags.emplace(&n, name);
    }
    n.tag = static_cast<unsigned char>(result);
  }

  /// The node that starts with `event`; null after an error.
  const Node *node(int depth) {
    if (!builder.checkDepth(depth, begin()))
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
      builder.error("yaml-syntax", begin(), "expected a value");
      return nullptr;
    }
  }

  const Node *alias() {
    std::string name = text(event.raw.data.alias.anchor);
    auto found = anchors.find(name);
    if (found == anchors.end()) {
      builder.error("yaml-syntax", Range{begin(), end()},
                    "alias '*" + printable(name) + "' has no anchor before it",
                    "quote the text if the '*' is part of it");
      return nullptr;
    }
    Node *n = found->second;
    // What stands in itself has no size yet.
    bool counted = open.contains(n) ? builder.spend(1, begin())
                                    : builder.countAlias(*n, begin());
    return counted ? n : nullptr;
  }

  const Node *scalar() {
    auto &s = event.raw.data.scalar;
    Node *n = create(s.anchor);
    if (!n)
      return nullptr;
    n->range.end = end();
    n->text.assign(text(s.value), s.length);
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
    addSpan(*n);
    bool plain = s.tag ? !std::strcmp(text(s.tag), "!") : s.plain_implicit;
    setTag(*n, s.tag, plain ? resolvePlain(n->text) : Tag::String);
    return n;
  }

  void addSpan(Node &n) {
    size_t begin = n.range.begin.byte - shift, end = n.range.end.byte - shift;
    if (begin == end)
      return;
    if (n.style != Style::Literal && n.style != Style::Folded) {
      spans.push_back({begin, end, n.style != Style::Plain});
      return;
    }
    // The line of the `|` is none of the text; blank lines behind it are not
    // what a person sees as the text.
    size_t header = input.find_first_of("\r\n", begin);
    if (header < end)
      spans.push_back({header, end, true});
    size_t last = input.find_last_not_of(" \t\r\n", end ? end - 1 : 0);
    if (last != input.npos && last >= begin)
      n.range.end = positions.atByte(last + 1 + shift);
  }

  const Node *sequence(int depth) {
    auto &s = event.raw.data.sequence_start;
    Node *n = create(s.anchor);
    if (!n)
      return nullptr;
    n->kind = Kind::Sequence;
    n->style = s.style == YAML_FLOW_SEQUENCE_STYLE ? Style::Flow : Style::Block;
    setTag(*n, s.tag, Tag::Sequence);
    open[n] = true;
    n->range.end = end();
    while (true) {
      if (!next())
        return nullptr;
      if (event.raw.type == YAML_SEQUENCE_END_EVENT)
        break;
      bool isAlias = event.raw.type == YAML_ALIAS_EVENT;
      Mark aliasEnd = end();
      const Node *item = node(depth + 1);
      if (!item)
        return nullptr;
      n->items.push_back(item);
      if (n->style == Style::Block)
        n->range.end = isAlias ? aliasEnd : item->range.end;
    }
    if (n->style == Style::Flow)
      n->range.end = end();
    open.erase(n);
    return n;
  }

  const Node *mapping(int depth) {
    auto &m = event.raw.data.mapping_start;
    Node *n = create(m.anchor);
    if (!n)
      return nullptr;
    n->kind = Kind::Mapping;
    n->style = m.style == YAML_FLOW_MAPPING_STYLE ? Style::Flow : Style::Block;
    setTag(*n, m.tag, Tag::Mapping);
    open[n] = true;
    n->range.end = end();
    while (true) {
      if (!next())
        return nullptr;
      if (event.raw.type == YAML_MAPPING_END_EVENT)
        break;
      Entry entry;
      entry.key = node(depth + 1);
      if (!entry.key || !next())
        return nullptr;
      entry.flow = n->style == Style::Flow;
      entry.at = {begin(), end()};
      bool isAlias = event.raw.type == YAML_ALIAS_EVENT;
      entry.value = node(depth + 1);
      if (!entry.value)
        return nullptr;
      if (!isAlias)
        entry.at = entry.value->range;
      n->entries.push_back(entry);
      if (n->style == Style::Block)
        n->range.end = entry.at.end;
    }
    if (n->style == Style::Flow)
      n->range.end = end();
    open.erase(n);
    return n;
  }
};

} // namespace

std::unique_ptr<Document> accel::yaml::readYaml(const std::string &file,
                                                std::string_view text,
                                                DiagnosticEngine &engine,
                                                const Limits &limits) {
  // libyaml counts a byte order mark as indentation; PyYAML does not.
  size_t shift = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  return Reader(file, text.substr(shift), shift, engine, limits).read();
}
