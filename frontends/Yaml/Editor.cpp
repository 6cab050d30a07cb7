//===- Editor.cpp - Changing a document's text ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Yaml/Editor.h"
#include "frontends/Diagnostics/Utf8.h"
#include "frontends/Yaml/Resolver.h"

#include <algorithm>
#include <cstdio>

using namespace accel;
using namespace accel::yaml;

size_t Editor::lineStart(size_t byte) const {
  if (byte == 0)
    return 0;
  size_t at = source.find_last_of("\r\n", byte - 1);
  return at == source.npos ? 0 : at + 1;
}

size_t Editor::lineEnd(size_t byte) const {
  return std::min(source.find_first_of("\r\n", byte), source.size());
}

size_t Editor::afterBreak(size_t lineEnd) const {
  if (lineEnd >= source.size())
    return lineEnd;
  return lineEnd + (source.substr(lineEnd).starts_with("\r\n") ? 2 : 1);
}

std::string_view Editor::lineBreak() const {
  size_t at = source.find_first_of("\r\n");
  return at == source.npos ? "\n" : source.substr(at, afterBreak(at) - at);
}

Edits Editor::replace(const Range &range, std::string text) const {
  if (range.end.byte > source.size() || range.begin.byte > range.end.byte)
    return {};
  return {{range.begin.byte, range.end.byte, std::move(text)}};
}

std::string Editor::quoted(std::string_view text, Style style,
                           bool flow) const {
  bool controls = false;
  for (char c : text)
    controls |= static_cast<unsigned char>(c) < 0x20;
  if (json || style == Style::DoubleQuoted || controls) {
    std::string out = "\"";
    for (char c : text) {
      char escape[8];
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        std::snprintf(escape, sizeof escape, "\\u%04x", c);
        out += escape;
      } else {
        out += c;
      }
    }
    return out + "\"";
  }
  // Plain where nothing in it means anything.
  constexpr std::string_view special = "-?:,[]{}#&*!|>'\"%@` =~<";
  bool plain = style != Style::SingleQuoted && !text.empty() &&
               special.find(text[0]) == special.npos && text.back() != ' ' &&
               text.back() != ':' && resolvePlain(text) == Tag::String &&
               text.find_first_of(flow ? ",[]{}#:" : "#:") == text.npos;
  for (char c : text)
    plain &= static_cast<unsigned char>(c) < 0x7f;
  if (plain)
    return std::string(text);
  std::string out = "'";
  for (char c : text)
    out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

Edits Editor::setText(const Entry &entry, std::string_view text) const {
  return setRaw(entry, quoted(text, entry.value->style, entry.flow));
}

Edits Editor::setRaw(const Entry &entry, std::string_view raw) const {
  if (entry.merged)
    return {};
  const Range &at = entry.at;
  size_t begin = at.begin.byte, end = at.end.byte;
  if (begin > end || end > source.size())
    return {};
  std::string text(raw);
  if (begin == end) {
    // Nothing is written: the place is behind the colon.
    size_t colon = source.find(':', entry.key->range.end.byte);
    if (colon == source.npos || colon > begin)
      return {};
    return {{colon + 1, colon + 1, " " + text}};
  }
  const Node &value = *entry.value;
  bool collection = !value.isScalar() || !value.items.empty();
  bool block = value.style == Style::Literal || value.style == Style::Folded;
  if (block || (collection && value.style == Style::Block)) {
    // Comments inside of it would be lost, and its lines belong to it.
    if (source.substr(begin, end - begin).find('#') != source.npos)
      return {};
    size_t colon = source.find(':', entry.key->range.end.byte);
    if (colon == source.npos || colon > begin)
      return {};
    std::string_view between = source.substr(colon + 1, begin - colon - 1);
    if (between.find('#') != between.npos)
      return {};
    return {{colon + 1, end, " " + text}};
  }
  return replace(at, std::move(text));
}

Edits Editor::rename(const Entry &entry, std::string_view name) const {
  if (entry.merged)
    return {};
  return replace(entry.key->range, quoted(name, entry.key->style));
}

Edits Editor::remove(const Entry &entry) const {
  if (entry.merged)
    return {};
  size_t begin = entry.key->range.begin.byte;
  size_t end = std::max(entry.at.end.byte, entry.key->range.end.byte);
  if (end > source.size() || begin > end)
    return {};
  constexpr std::string_view blanks = " \t\r\n";
  size_t next = source.find_first_not_of(blanks, end);
  // JSON has no need of lines, and may be one long one.
  size_t start = json ? begin : lineStart(begin);
  bool first = source.find_first_not_of(" ", start) == begin ||
               (start == 0 && begin == 3); // behind a byte order mark
  size_t stop = json ? end : lineEnd(end);
  std::string_view rest = source.substr(end, stop - end);
  size_t behind = rest.find_first_not_of(" \t");
  bool alone = behind == rest.npos || rest[behind] == '#';
  bool flow = false;
  if (next != source.npos && !json)
    flow = source[next] == ',' || source[next] == '}';
  if (json || flow || !first || !alone) {
    // Between commas and braces: the comma behind goes, or the one before.
    if (next == source.npos)
      return {};
    size_t before =
        begin == 0 ? source.npos : source.find_last_not_of(blanks, begin - 1);
    if (before == source.npos)
      return {};
    if (source[next] == ',') {
      size_t after = source.find_first_not_of(blanks, next + 1);
      if (after == source.npos ||
          (source[before] != '{' && source[before] != ','))
        return {};
      // The line break stays where the next entry has a line of its own.
      if (source[after] == '#')
        return {};
      return {{begin, after, ""}};
    }
    if (source[next] != '}')
      return {};
    if (source[before] == ',')
      return {{before, end, ""}};
    if (source[before] == '{')
      return {{begin, end, ""}};
    return {};
  }
  if (rest.size() > 0 && behind != rest.npos) { // a comment
    return {{begin, end + behind, ""}};
  }
  return {{begin == 3 && start == 0 ? begin : start, afterBreak(stop), ""}};
}

Edits Editor::insert(const Node &mapping, std::string_view key,
                     std::string_view raw) const {
  if (!mapping.isMapping())
    return {};
  std::string line = quoted(key) + ": " + std::string(raw);
  const Entry *last = nullptr;
  for (const Entry &entry : mapping.entries)
    if (!entry.merged &&
        (!last || entry.key->range.begin.byte > last->key->range.begin.byte))
      last = &entry;
  size_t end = mapping.range.end.byte;
  if (json || mapping.style == Style::Flow) {
    if (end == 0 || end > source.size() || source[end - 1] != '}')
      return {};
    if (!last) {
      size_t open = mapping.range.begin.byte;
      open = source.find('{', open);
      if (open == source.npos || open >= end)
        return {};
      return {{open + 1, open + 1, line}};
    }
    size_t at = std::max(last->at.end.byte, last->key->range.end.byte);
    // On a line of its own where the last one is.
    size_t start = lineStart(last->key->range.begin.byte);
    std::string_view before =
        source.substr(start, last->key->range.begin.byte - start);
    bool ownLine = start > mapping.range.begin.byte &&
                   before.find_first_not_of(" \t") == before.npos;
    std::string gap = " ";
    if (ownLine)
      gap = std::string(lineBreak()) + std::string(before);
    return {{at, at, "," + gap + line}};
  }
  if (!last)
    return {};
  size_t start = lineStart(last->key->range.begin.byte);
  std::string indent(source.substr(start, last->key->range.begin.byte - start));
  if (start == 0 && indent.starts_with("\xef\xbb\xbf"))
    indent.erase(0, 3);
  if (indent.find_first_not_of(' ') != indent.npos) // "- key: value"
    indent.assign(static_cast<size_t>(last->key->range.begin.column) - 1, ' ');
  size_t stop = lineEnd(std::max(last->at.end.byte, last->key->range.end.byte));
  size_t after = afterBreak(stop);
  std::string text = indent + line;
  if (after == stop) // the file ends without a line break
    return {{stop, stop, std::string(lineBreak()) + text}};
  return {{after, after, text + std::string(lineBreak())}};
}

Edits Editor::set(const Node &mapping, std::string_view key,
                  std::string_view raw) const {
  const Entry *entry = mapping.findEntry(key);
  return entry ? setRaw(*entry, raw) : insert(mapping, key, raw);
}
