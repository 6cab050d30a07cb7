//===- Node.cpp - Values of a document ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Yaml/Yaml.h"

#include <charconv>
#include <cmath>

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

static std::string pythonRepr(const Node &node) {
  if (node.kind == Kind::String) {
    char quote = node.text.find('\'') != std::string::npos &&
                         node.text.find('"') == std::string::npos
                     ? '"'
                     : '\'';
    std::string out(1, quote);
    for (char c : node.text) {
      if (c == quote || c == '\\')
        out += '\\';
      if (c == '\n')
        out += "\\n";
      else
        out += c;
    }
    return out + quote;
  }
  return pythonText(node);
}

std::string accel::yaml::pythonText(const Node &node) {
  switch (node.kind) {
  case Kind::Null:
    return "None";
  case Kind::Bool:
    return node.boolean ? "True" : "False";
  case Kind::Int:
    return node.huge ? node.text : std::to_string(node.integer);
  case Kind::Float:
    return pythonFloat(node.number);
  case Kind::String:
  case Kind::Other:
    return node.text;
  case Kind::Sequence: {
    std::string out = "[";
    for (const Node *item : node.items)
      out += (out.size() > 1 ? ", " : "") + pythonRepr(*item);
    return out + "]";
  }
  case Kind::Mapping: {
    std::string out = "{";
    for (const Entry &entry : node.entries)
      out += (out.size() > 1 ? ", " : "") + pythonRepr(*entry.key) + ": " +
             pythonRepr(*entry.value);
    return out + "}";
  }
  }
  return "";
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
