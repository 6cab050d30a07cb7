//===- Node.cpp - Values of a document ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Utf8.h"
#include "frontends/Yaml/Yaml.h"

#include <charconv>
#include <cmath>
#include <cstdio>

using namespace accel;
using namespace accel::yaml;

const char *accel::yaml::describe(Kind kind) {
  switch (kind) {
  case Kind::Null:
    return "null";
  case Kind::Bool:
    return "a boolean";
  case Kind::Int:
    return "an integer";
  case Kind::Float:
    return "a number";
  case Kind::String:
    return "a string";
  case Kind::Other:
    return "a date, set or binary value";
  case Kind::Sequence:
    return "a list";
  case Kind::Mapping:
    return "a mapping";
  }
  return "";
}

const Entry *Node::findEntry(std::string_view key) const {
  for (const Entry &entry : entries)
    if (entry.key->kind == Kind::String && entry.key->text == key)
      return &entry;
  return nullptr;
}

const Node *Node::find(std::string_view key) const {
  const Entry *entry = findEntry(key);
  return entry ? entry->value : nullptr;
}

/// Python's repr of a float: the shortest digits that read back the same, with
/// an exponent below 1e-4 and from 1e16.
static std::string pythonFloat(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[64];
  double size = std::fabs(value);
  bool scientific = size != 0 && (size < 1e-4 || size >= 1e16);
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                           scientific ? std::chars_format::scientific
                                      : std::chars_format::fixed)
                 .ptr;
  std::string text(buffer, end);
  if (!scientific && text.find('.') == std::string::npos)
    text += ".0";
  return text;
}

/// repr() of a string, which escapes what does not print (as far as control
/// and invisible characters go).
static std::string pythonQuoted(const std::string &text) {
  char quote = text.find('\'') != std::string::npos &&
                       text.find('"') == std::string::npos
                   ? '"'
                   : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    uint32_t code = 0;
    size_t length = utf8Length(text, i, code);
    char c = text[i];
    char escape[16];
    if (length == 0) {
      length = 1;
      out += c;
    } else if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (code < 0x20 || (code >= 0x7f && code <= 0xa0) || code == 0xad) {
      std::snprintf(escape, sizeof escape, "\\x%02x", code);
      out += escape;
    } else if ((code >= 0x2000 && code <= 0x200f) ||
               (code >= 0x2028 && code <= 0x202f) || code == 0x205f ||
               (code >= 0x2060 && code <= 0x206f) || code == 0x3000 ||
               code == 0xfeff) {
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      out += escape;
    } else {
      out += text.substr(i, length);
    }
    i += length;
  }
  return out + quote;
}

static std::string pythonRepr(const Node &node) {
  if (node.kind == Kind::String)
    return pythonQuoted(node.text);
  if (node.kind == Kind::Other && node.python)
    return node.python->second;
  return pythonText(node);
}

std::string accel::yaml::pythonText(const Node &node) {
  switch (node.kind) {
  case Kind::Null:
    return "None";
  case Kind::Bool:
    return node.boolean ? "True" : "False";
  case Kind::Int:
    if (node.huge)
      return node.python ? node.python->first : node.text;
    return std::to_string(node.integer);
  case Kind::Float:
    return pythonFloat(node.number);
  case Kind::String:
    return node.text;
  case Kind::Other:
    if (node.python)
      return node.python->first;
    break;
  default:
    break;
  }
  bool set = node.other == Other::Set, pairs = node.other == Other::Pairs;
  if (set && node.entries.empty())
    return "set()";
  if (node.kind == Kind::Sequence || pairs) {
    std::string out = "[";
    for (const Node *item : node.items)
      if (!pairs)
        out += (out.size() > 1 ? ", " : "") + pythonRepr(*item);
    for (const Entry &entry : node.entries) // of pairs
      out += (out.size() > 1 ? ", (" : "(") + pythonRepr(*entry.key) + ", " +
             pythonRepr(*entry.value) + ")";
    return out + "]";
  }
  std::string out = "{";
  for (const Entry &entry : node.entries)
    out += (out.size() > 1 ? ", " : "") + pythonRepr(*entry.key) +
           (set ? "" : ": " + pythonRepr(*entry.value));
  return out + "}";
}

std::string accel::yaml::shortText(const Node &node) {
  switch (node.kind) {
  case Kind::Null:
    return node.text.empty() ? "(nothing)" : node.text;
  case Kind::Sequence:
  case Kind::Mapping: {
    // A long collection is not written out only to be cut.
    if (node.items.size() + node.entries.size() > 16)
      return describe(node.kind);
    std::string out = node.kind == Kind::Sequence ? "[" : "{";
    for (const Node *item : node.items)
      out += (out.size() > 1 ? ", " : "") +
             (item->isScalar() ? shortText(*item) : "...");
    for (const Entry &entry : node.entries)
      out += (out.size() > 1 ? ", " : "") + shortText(*entry.key) + ": " +
             (entry.value->isScalar() ? shortText(*entry.value) : "...");
    return printable(out + (node.kind == Kind::Sequence ? "]" : "}"), 80);
  }
  default:
    break;
  }
  std::string text = printable(node.text);
  if (node.style == Style::SingleQuoted || node.style == Style::DoubleQuoted)
    return "'" + text + "'";
  return text;
}
