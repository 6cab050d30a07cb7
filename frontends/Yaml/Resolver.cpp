//===- Resolver.cpp - YAML 1.1 scalars ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Yaml/Resolver.h"
#include "frontends/Yaml/Yaml.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

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

bool oneOf(std::string_view text,
           std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool isBool(std::string_view t) {
  return oneOf(t, {"yes", "Yes", "YES", "no", "No", "NO", "true", "True",
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
  if (oneOf(text, {".nan", ".NaN", ".NAN"}))
    return true;
  Cursor c{text};
  if (c.take('.') && c.takeAny(digits)) {
    c.takeWhile(digitsAndUnder);
    return exponent(c);
  }
  c.at = 0;
  c.takeAny("+-");
  std::string_view rest = text.substr(c.at);
  if (oneOf(rest, {".inf", ".Inf", ".INF"}))
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

struct DateTime {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  int zoneHour = 0, zoneMinute = 0;
};

bool number(Cursor &c, size_t least, size_t most, int &value) {
  size_t start = c.at;
  while (c.at - start < most && c.takeAny(digits)) {
  }
  if (c.at - start < least)
    return false;
  std::from_chars(c.text.data() + start, c.text.data() + c.at, value);
  return true;
}

bool parseTimestamp(std::string_view text, DateTime &t) {
  Cursor c{text};
  if (!number(c, 4, 4, t.year) || !c.take('-'))
    return false;
  size_t monthAt = c.at;
  if (!number(c, 1, 2, t.month) || !c.take('-'))
    return false;
  size_t dayAt = c.at;
  if (!number(c, 1, 2, t.day))
    return false;
  if (c.done()) // a date alone has two digits each
    return dayAt - monthAt == 3 && c.at - dayAt == 2;
  if (!c.takeAny("Tt") && !c.takeWhile(" \t"))
    return false;
  if (!number(c, 1, 2, t.hour) || !c.take(':') || !number(c, 2, 2, t.minute) ||
      !c.take(':') || !number(c, 2, 2, t.second))
    return false;
  if (c.take('.'))
    c.takeWhile(digits);
  if (c.done())
    return true;
  c.takeWhile(" \t");
  if (c.take('Z'))
    return c.done();
  if (!c.takeAny("+-") || !number(c, 1, 2, t.zoneHour))
    return false;
  if (c.take(':') && !number(c, 2, 2, t.zoneMinute))
    return false;
  return c.done();
}

bool validTimestamp(const DateTime &t) {
  constexpr int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (t.year < 1 || t.month < 1 || t.month > 12 || t.day < 1)
    return false;
  bool leap = t.year % 4 == 0 && (t.year % 100 != 0 || t.year % 400 == 0);
  int days = lengths[t.month - 1] + (t.month == 2 && leap);
  return t.day <= days && t.hour < 24 && t.minute < 60 && t.second < 60 &&
         t.zoneHour * 60 + t.zoneMinute < 24 * 60;
}

std::string withoutUnderscores(std::string_view text) {
  std::string result;
  for (char c : text)
    if (c != '_')
      result += c;
  return result;
}

bool parseDigits(std::string_view text, int base, bool negative, Node &node) {
  if (text.empty())
    return false;
  uint64_t value = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (stop != end)
    return false;
  node.kind = Kind::Int;
  uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (error == std::errc::result_out_of_range || value > limit + negative) {
    node.huge = true;
    double sum = 0;
    for (char c : text)
      sum = sum * base + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    node.number = negative ? -sum : sum;
    return true;
  }
  node.integer = static_cast<int64_t>(negative ? 0 - value : value);
  node.number = static_cast<double>(node.integer);
  return true;
}

bool constructInt(Node &node) {
  std::string text = withoutUnderscores(node.text);
  std::string_view t = text;
  bool negative = !t.empty() && t[0] == '-';
  if (!t.empty() && (t[0] == '-' || t[0] == '+'))
    t.remove_prefix(1);
  if (t == "0")
    return parseDigits(t, 10, negative, node);
  if (t.starts_with("0b"))
    return parseDigits(t.substr(2), 2, negative, node);
  if (t.starts_with("0x"))
    return parseDigits(t.substr(2), 16, negative, node);
  if (t.starts_with("0"))
    return parseDigits(t, 8, negative, node);
  if (t.find(':') == std::string_view::npos)
    return parseDigits(t, 10, negative, node);
  double value = 0;
  for (size_t at = 0; at <= t.size();) {
    size_t colon = std::min(t.find(':', at), t.size());
    Node part;
    if (!parseDigits(t.substr(at, colon - at), 10, false, part))
      return false;
    value = value * 60 + part.number;
    at = colon + 1;
  }
  node.kind = Kind::Int;
  node.number = negative ? -value : value;
  node.huge = value >= 9.0e18;
  if (!node.huge)
    node.integer = static_cast<int64_t>(node.number);
  return true;
}

bool constructFloat(Node &node) {
  std::string text = withoutUnderscores(node.text);
  for (char &c : text)
    c = c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
  std::string_view t = text;
  bool negative = !t.empty() && t[0] == '-';
  if (!t.empty() && (t[0] == '-' || t[0] == '+'))
    t.remove_prefix(1);
  node.kind = Kind::Float;
  double value = 0;
  if (t == ".inf") {
    value = std::numeric_limits<double>::infinity();
  } else if (t == ".nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    for (size_t at = 0; at <= t.size();) {
      size_t colon = std::min(t.find(':', at), t.size());
      double part = 0;
      const char *end = t.data() + colon;
      auto [stop, error] = std::from_chars(t.data() + at, end, part);
      if (stop != end ||
          (error != std::errc() && error != std::errc::result_out_of_range))
        return false;
      if (error == std::errc::result_out_of_range)
        part = t.find("e-") != std::string_view::npos
                   ? 0.0
                   : std::numeric_limits<double>::infinity();
      value = value * 60 + part;
      at = colon + 1;
    }
  }
  node.number = negative ? -value : value;
  return true;
}

bool constructBool(Node &node) {
  std::string text = node.text;
  for (char &c : text)
    c = c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
  node.kind = Kind::Bool;
  node.boolean = oneOf(text, {"yes", "true", "on"});
  return node.boolean || oneOf(text, {"no", "false", "off"});
}

} // namespace

Tag accel::yaml::resolvePlain(std::string_view text) {
  if (text.empty() || oneOf(text, {"~", "null", "Null", "NULL"}))
    return Tag::Null;
  if (isBool(text))
    return Tag::Bool;
  if (text == "<<")
    return Tag::Merge;
  if (text == "=")
    return Tag::Value;
  char c = text[0];
  if (!((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.'))
    return Tag::String;
  if (isFloat(text))
    return Tag::Float;
  if (isInt(text))
    return Tag::Int;
  DateTime t;
  return parseTimestamp(text, t) ? Tag::Timestamp : Tag::String;
}

bool accel::yaml::constructScalar(Tag tag, Node &node) {
  switch (tag) {
  case Tag::Null:
    node.kind = Kind::Null;
    return true;
  case Tag::Bool:
    return constructBool(node);
  case Tag::Int:
    return constructInt(node);
  case Tag::Float:
    return constructFloat(node);
  case Tag::String:
    node.kind = Kind::String;
    return true;
  case Tag::Timestamp: {
    DateTime t;
    node.kind = Kind::Other;
    return parseTimestamp(node.text, t) && validTimestamp(t);
  }
  case Tag::Merge:
  case Tag::Value:
    // PyYAML knows no constructor for them.
    return false;
  }
  return false;
}
