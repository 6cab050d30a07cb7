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

#include "frontends/Yaml/Builder.h"
#include "frontends/Yaml/Input.h"
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

class Reader {
public:
  /// `source` is the file without a byte order mark of `shift` bytes, `input`
  /// the same for libyaml, with blanks added.
  Reader(const std::string &file, std::string_view source,
         std::string_view input, size_t shift, const std::vector<size_t> &added,
         DiagnosticEngine &engine, const Limits &limits)
      : builder(file, engine, limits), source(source), input(input),
        shift(shift), positions(input, shift, added, file, engine) {
    if (!yaml_parser_initialize(&parser))
      std::abort(); // out of memory
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(
        &parser, reinterpret_cast<const unsigned char *>(input.data()),
        input.size());
  }
  ~Reader() { yaml_parser_delete(&parser); }

  /// Where libyaml stopped at a colon that PyYAML takes: the byte of `input`
  /// where a blank makes both read the same. 0: nowhere.
  size_t wantsBlank = 0;
  /// Where libyaml takes a key of a list that is not there for the token behind
  /// it: the byte of `input` where a `~` belongs. 0: nowhere.
  size_t wantsNull = 0;
  /// Where libyaml stopped at a tab that may start the text of a block scalar:
  /// the byte of `input`. 0: nowhere.
  size_t wantsTab = 0;
  /// What stands in `input` for byte order marks inside of the text.
  std::string markStandIn;
  /// What stands there for tabs that libyaml does not take.
  std::string tabStandIn;
  /// The document must start with `---`.
  bool needsStart = false;

  std::unique_ptr<Document> read() {
    const Node *root = nullptr;
    if (!next() || !next()) // stream start
      return nullptr;
    bool starts = event.raw.type == YAML_DOCUMENT_START_EVENT;
    if (needsStart && (!starts || event.raw.data.document_start.implicit)) {
      builder.error("yaml-syntax", begin(), "expected '---' after a directive");
      return nullptr;
    }
    if (starts) {
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
  std::string_view source, input;
  const size_t shift;
  int flowDepth = 0;
  Positions positions;
  /// Where scalars stand, in bytes of `source`, and whether tabs are part of
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

  Mark at(const yaml_mark_t &m) const {
    return positions.at(m.line, m.column, m.index);
  }
  Mark begin() const { return at(event.raw.start_mark); }
  Mark end() const { return at(event.raw.end_mark); }

  /// The next event into `event`; false (reported) at a syntax error.
  bool next() {
    event.clear();
    if (yaml_parser_parse(&parser, &event.raw))
      return true;
    // `[a:, b]`: libyaml finds a key without value ambiguous.
    size_t colon = positions.inInput(parser.problem_mark.index);
    if (parser.problem &&
        !std::strcmp(parser.problem, "found unexpected ':'") &&
        colon + 1 < input.size() && input[colon] == ':' &&
        std::strchr(",[]{}", input[colon + 1])) {
      wantsBlank = colon + 1;
      return false;
    }
    if (parser.problem && colon < input.size() && input[colon] == '\t' &&
        std::strstr(parser.problem, "where an indentation space is expected")) {
      wantsTab = colon;
      return false;
    }
    std::string message = parser.problem ? parser.problem : "this is not YAML";
    if (parser.context)
      message += std::string(" ") + parser.context;
    std::string hint;
    Mark place = at(parser.problem_mark);
    size_t byte = place.byte - shift;
    if (byte < source.size() && source[byte] == '\t') {
      reportTab(byte);
      return false;
    }
    if (message.find("start any token") != std::string::npos)
      hint = "indent with spaces, and quote text that starts with @, ` or %";
    if (parser.context && parser.context_mark.line < parser.problem_mark.line)
      message += " that starts at line " +
                 std::to_string(at(parser.context_mark).line);
    builder.error("yaml-syntax", place, message, hint);
    return false;
  }

  void reportTab(size_t byte) {
    size_t lineStart = source.find_last_of("\r\n", byte);
    lineStart = lineStart == source.npos ? 0 : lineStart + 1;
    bool indents = source.find_first_not_of(" \t", lineStart) > byte;
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
    constexpr size_t most = 100; // a person needs no more of them
    size_t errors = builder.diagnostics().errors();
    for (size_t tab = source.find('\t'); tab != source.npos;) {
      if (builder.diagnostics().errors() > errors + most)
        return;
      while (span != spans.end() && span->end <= tab)
        ++span;
      if (span != spans.end() && span->begin <= tab) {
        if (!span->opaque)
          reportTab(tab);
        tab = source.find('\t', span->opaque ? span->end : tab + 1);
        continue;
      }
      // A '#' outside of scalars starts a comment.
      size_t from = source.find_last_of("\r\n", tab);
      from = from == source.npos ? 0 : from + 1;
      // An unknown directive is one too.
      bool directive = source[from] == '%' && input[from] == '#';
      if (span != spans.begin())
        from = std::max(from, std::min((span - 1)->end, tab));
      size_t sign = directive ? 0 : source.substr(from, tab - from).find('#');
      if (sign == source.npos)
        reportTab(tab);
      tab = source.find('\t', sign == source.npos
                                  ? tab + 1
                                  : source.find_first_of("\r\n", tab));
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
    if (!markStandIn.empty())
      replaceAll(n->text, markStandIn, byteOrderMark);
    if (!tabStandIn.empty() && n->text.find(tabStandIn) != std::string::npos) {
      if (s.style == YAML_PLAIN_SCALAR_STYLE) {
        reportTab(source.find('\t', n->range.begin.byte - shift));
        return nullptr;
      }
      replaceAll(n->text, tabStandIn, "\t");
    }
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
    if (!addSpan(*n))
      return nullptr;
    // To PyYAML a `?` between braces always starts a key.
    if (flowDepth && n->isPlain() && n->text.find('?') != std::string::npos) {
      builder.error("yaml-syntax", n->range,
                    "a '?' between braces starts a key",
                    "quote the text if it is part of it");
      return nullptr;
    }
    bool plain = s.tag ? !std::strcmp(text(s.tag), "!") : s.plain_implicit;
    setTag(*n, s.tag, plain ? resolvePlain(n->text) : Tag::String);
    return n;
  }

  /// Where a scalar starts behind its tag and anchor.
  size_t afterProperties(size_t begin, size_t end) const {
    while (begin < end && (source[begin] == '!' || source[begin] == '&')) {
      begin = std::min(source.find_first_of(" \t\r\n", begin), end);
      while (begin < end &&
             (std::strchr(" \t\r\n", source[begin]) || source[begin] == '#'))
        begin = source[begin] == '#'
                    ? std::min(source.find_first_of("\r\n", begin), end)
                    : begin + 1;
    }
    return begin;
  }

  /// Notes where the scalar stands; false (reported) for a header of a block
  /// that PyYAML refuses.
  bool addSpan(Node &n) {
    size_t end = n.range.end.byte - shift;
    size_t begin = afterProperties(n.range.begin.byte - shift, end);
    if (begin >= end)
      return true;
    if (n.style != Style::Literal && n.style != Style::Folded) {
      spans.push_back({begin, end, n.style != Style::Plain});
      return true;
    }
    size_t sign = source.find_first_not_of("|>+-0123456789", begin);
    if (sign != source.npos && source[sign] == '#') {
      builder.error("yaml-syntax", positions.atByte(sign + shift),
                    "expected a blank before this comment", "write ' #'");
      return false;
    }
    // The line of the `|` is none of the text; blank lines behind it are not
    // what a person sees as the text.
    size_t header = source.find_first_of("\r\n", begin);
    if (header < end)
      spans.push_back({header, end, true});
    size_t last = source.find_last_not_of(" \t\r\n", end - 1);
    if (last != source.npos && last >= begin)
      n.range.end = positions.atByte(last + 1 + shift);
    return true;
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
    flowDepth += n->style == Style::Flow;
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
    flowDepth -= n->style == Style::Flow;
    if (n->style == Style::Flow)
      n->range.end = end();
    open.erase(n);
    return n;
  }

  /// Whether `event` is the key that `? ` in a flow sequence does not have.
  bool isAbsentKey(const Node &mapping) const {
    const auto &s = event.raw.data.scalar;
    return event.raw.type == YAML_SCALAR_EVENT &&
           mapping.style == Style::Flow &&
           mapping.range.begin.byte - shift < source.size() &&
           source[mapping.range.begin.byte - shift] == '?' && !s.length &&
           s.style == YAML_PLAIN_SCALAR_STYLE && !s.anchor && !s.tag;
  }

  const Node *mapping(int depth) {
    auto &m = event.raw.data.mapping_start;
    size_t startIndex = event.raw.start_mark.index;
    Node *n = create(m.anchor);
    if (!n)
      return nullptr;
    n->kind = Kind::Mapping;
    n->style = m.style == YAML_FLOW_MAPPING_STYLE ? Style::Flow : Style::Block;
    setTag(*n, m.tag, Tag::Mapping);
    open[n] = true;
    flowDepth += n->style == Style::Flow;
    n->range.end = end();
    while (true) {
      if (!next())
        return nullptr;
      if (event.raw.type == YAML_MAPPING_END_EVENT)
        break;
      // `[a, ? : b]`, `[?]`
      if (n->entries.empty() && isAbsentKey(*n)) {
        wantsNull = positions.inInput(startIndex) + 1;
        return nullptr;
      }
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
    flowDepth -= n->style == Style::Flow;
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
  size_t shift = text.starts_with(byteOrderMark) ? byteOrderMark.size() : 0;
  std::string_view source = text.substr(shift), input = source;
  std::string changed, standIn, tabStandIn;
  // libyaml skips such a mark in front of every line, PyYAML only the first.
  if (source.find(byteOrderMark) != source.npos) {
    changed = source;
    standIn = unusedCharacter(source);
    replaceAll(changed, byteOrderMark, standIn);
    input = changed;
  }
  bool needsStart = false;
  if (source.find('%') != source.npos) {
    changed = input;
    needsStart = adaptDirectives(changed);
    input = changed;
  }
  std::vector<size_t> added; // in bytes of `changed`
  auto add = [&](size_t at, size_t count) {
    // What was added behind it moves.
    for (size_t &other : added)
      other += other >= at ? count : 0;
    for (size_t i = 0; i < count; ++i)
      added.push_back(at + i);
    std::sort(added.begin(), added.end());
  };
  // Each attempt reads everything again: no more work than for a large file.
  size_t attempts = std::min<size_t>(1000, limits.bytes / (text.size() + 1));
  while (true) {
    Reader reader(file, source, input, shift, added, engine, limits);
    reader.markStandIn = standIn;
    reader.tabStandIn = tabStandIn;
    reader.needsStart = needsStart;
    std::unique_ptr<Document> document = reader.read();
    if (!reader.wantsBlank && !reader.wantsTab && !reader.wantsNull)
      return document;
    if (attempts-- == 0) {
      engine.error("yaml-limit", file,
                   "too many keys without a value between braces, or blocks "
                   "that start with a tab");
      return nullptr;
    }
    if (changed.empty())
      changed = source;
    if (reader.wantsBlank) {
      changed.insert(reader.wantsBlank, 1, ' ');
      add(reader.wantsBlank, 1);
    } else if (reader.wantsNull) {
      changed.insert(reader.wantsNull, " ~ ");
      add(reader.wantsNull, 3);
    } else {
      if (tabStandIn.empty())
        tabStandIn = unusedCharacter(changed);
      changed.replace(reader.wantsTab, 1, tabStandIn);
      add(reader.wantsTab + 1, tabStandIn.size() - 1);
    }
    input = changed;
  }
}
