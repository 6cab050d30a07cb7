//===- Resolver.cpp - YAML 1.1 scalars ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Yaml/Resolver.h"
#include "frontends/Yaml/Yaml.h"

#include <algorithm>

using namespace accel::yaml;

namespace {

/// A cursor for the small regular expressions of PyYAML's resolver.
struct Cursor {
  std::string_view text;
  size_t at = 0;

  bool done() const { return at == text.size(); }
  char peek() const { return done() ? '\0' : text[at]; }
  bool take(char c) {
    if (done() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  bool takeAny(std::string_view set) {
    if (done() || set.find(text[at]) == std::string_view::npos)
      return false;
    ++at;
    return true;
  }
  size_t takeWhile(std::string_view set) {
    size_t start = at;
    while (takeAny(set)) {
    }
    return at - start;
  }
};

constexpr std::string_view digits = "0123456789";
constexpr std::string_view digitsAndUnder = "0123456789_";

bool isOneOf(std::string_view text,
             std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool isBool(std::string_view t) {
  return isOneOf(t, {"yes", "Yes", "YES", "no", "No", "NO", "true", "True",
                     "TRUE", "false", "False", "FALSE", "on", "On", "ON", "off",
                     "Off", "OFF"});
}

/// (?::[0-5]?[0-9])+ : the further places of a sexagesimal number.
bool sexagesimal(Cursor &c) {
  size_t groups = 0;
  while (c.take(':')) {
    if (!c.takeAny(digits))
      return false;
    char first = c.text[c.at - 1];
    if (first <= '5')
      c.takeAny(digits);
    ++groups;
  }
  return groups > 0;
}

bool isInt(std::string_view text) {
  Cursor c{text};
  c.takeAny("+-");
  Cursor start = c;
  if (c.take('0') && c.take('b') && c.takeWhile("01_") && c.done())
    return true;
  c = start;
  if (c.take('0') && c.takeWhile("01234567_") && c.done())
    return true;
  c = start;
  if (c.take('0') && c.take('x') && c.takeWhile("0123456789abcdefABCDEF_") &&
      c.done())
    return true;
  c = start;
  if (c.take('0') && c.done())
    return true;
  c = start;
  if (!c.takeAny("123456789"))
    return false;
  c.takeWhile(digitsAndUnder);
  return c.done() || (sexagesimal(c) && c.done());
}

/// (?:[eE][-+][0-9]+)? to the end: YAML 1.1 wants a sign in the exponent.
bool exponent(Cursor &c) {
  if (c.done())
    return true;
  return c.takeAny("eE") && c.takeAny("+-") && c.takeWhile(digits) && c.done();
}

bool isFloat(std::string_view text) {
  if (isOneOf(text, {".nan", ".NaN", ".NAN"}))
    return true;
  Cursor c{text};
  if (c.take('.') && c.takeAny(digits)) {
    c.takeWhile(digitsAndUnder);
    return exponent(c);
  }
  c.at = 0;
  c.takeAny("+-");
  std::string_view rest = text.substr(c.at);
  if (isOneOf(rest, {".inf", ".Inf", ".INF"}))
    return true;
  if (!c.takeAny(digits))
    return false;
  c.takeWhile(digitsAndUnder);
  Cursor whole = c;
  if (c.take('.')) {
    c.takeWhile(digitsAndUnder);
    return exponent(c);
  }
  c = whole;
  if (!sexagesimal(c) || !c.take('.'))
    return false;
  c.takeWhile(digitsAndUnder);
  return c.done();
}

/// [0-9]{least,most}
bool number(Cursor &c, size_t least, size_t most) {
  size_t start = c.at;
  while (c.at - start < most && c.takeAny(digits)) {
  }
  return c.at - start >= least;
}

bool isTimestamp(std::string_view text) {
  Cursor c{text};
  if (!number(c, 4, 4) || !c.take('-'))
    return false;
  size_t monthAt = c.at;
  if (!number(c, 1, 2) || !c.take('-'))
    return false;
  size_t dayAt = c.at;
  if (!number(c, 1, 2))
    return false;
  if (c.done()) // a date alone has two digits each
    return dayAt - monthAt == 3 && c.at - dayAt == 2;
  if (!c.takeAny("Tt") && !c.takeWhile(" \t"))
    return false;
  if (!number(c, 1, 2) || !c.take(':') || !number(c, 2, 2) || !c.take(':') ||
      !number(c, 2, 2))
    return false;
  if (c.take('.'))
    c.takeWhile(digits);
  if (c.done())
    return true;
  c.takeWhile(" \t");
  if (c.take('Z'))
    return c.done();
  if (!c.takeAny("+-") || !number(c, 1, 2))
    return false;
  if (c.take(':') && !number(c, 2, 2))
    return false;
  return c.done();
}

} // namespace

Tag accel::yaml::resolvePlain(std::string_view text) {
  if (text.empty())
    return Tag::Null;
  // A `$` in Python's expressions also stands before a last line break. (Only
  // `! "no\n"` gets here with one.)
  if (text.size() > 1 && text.back() == '\n')
    text.remove_suffix(1);
  if (isOneOf(text, {"~", "null", "Null", "NULL"}))
    return Tag::Null;
  if (isBool(text))
    return Tag::Bool;
  if (text == "<<")
    return Tag::Merge;
  if (text == "=")
    return Tag::Value;
  if (isOneOf(text, {"!", "&", "*"}))
    return Tag::Unknown; // "yaml", which nothing constructs
  char c = text[0];
  if (!((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.'))
    return Tag::String;
  if (isFloat(text))
    return Tag::Float;
  if (isInt(text))
    return Tag::Int;
  return isTimestamp(text) ? Tag::Timestamp : Tag::String;
}

Tag accel::yaml::tagByName(std::string_view name) {
  constexpr std::string_view prefix = "tag:yaml.org,2002:";
  constexpr std::string_view names[] = {
      "null", "bool", "int", "float", "str",   "timestamp", "binary",
      "seq",  "map",  "set", "omap",  "pairs", "merge",     "value"};
  if (name.starts_with(prefix))
    for (size_t i = 0; i < std::size(names); ++i)
      if (name.substr(prefix.size()) == names[i])
        return static_cast<Tag>(i);
  return Tag::Unknown;
}
