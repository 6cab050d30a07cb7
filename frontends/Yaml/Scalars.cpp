//===- Scalars.cpp - Values of scalars ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// SafeConstructor of yaml/constructor.py, with what Python's int() and float()
// accept beyond the plain forms, for scalars with an explicit tag.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Utf8.h"
#include "frontends/Yaml/Resolver.h"
#include "frontends/Yaml/Yaml.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

using namespace accel::yaml;

namespace {

/// Python converts no more decimal digits than this.
constexpr size_t mostDigits = 4300;

/// A natural number of any size.
class Natural {
public:
  void multiplyAdd(uint32_t factor, uint32_t summand) {
    uint64_t carry = summand;
    for (uint32_t &limb : limbs) {
      carry += uint64_t(limb) * factor;
      limb = static_cast<uint32_t>(carry % limbBase);
      carry /= limbBase;
    }
    if (carry)
      limbs.push_back(static_cast<uint32_t>(carry));
  }
  size_t size() const { return limbs.size() * 9; }
  std::string text() const {
    if (limbs.empty())
      return "0";
    std::string out = std::to_string(limbs.back());
    char part[16];
    for (size_t i = limbs.size() - 1; i-- > 0;) {
      std::snprintf(part, sizeof part, "%09u", limbs[i]);
      out += part;
    }
    return out;
  }

private:
  static constexpr uint64_t limbBase = 1000000000;
  std::vector<uint32_t> limbs; // the least significant first
};

int digitValue(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'z' ? c - 'a' + 10
         : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                : 99;
}

std::string without(std::string_view text, char unwanted) {
  std::string result(text);
  std::erase(result, unwanted);
  return result;
}

std::string lower(std::string text) {
  for (char &c : text)
    c = c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
  return text;
}

/// Python's str.strip(), which knows the blanks of Unicode.
std::string_view stripped(std::string_view text) {
  auto isBlank = [](uint32_t c) {
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 ||
           c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
           c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
           c == 0x3000;
  };
  size_t begin = text.size(), end = 0;
  for (size_t i = 0; i < text.size();) {
    uint32_t code = 0xfffd;
    size_t length = std::max<size_t>(accel::utf8Length(text, i, code), 1);
    if (!isBlank(code)) {
      begin = std::min(begin, i);
      end = i + length;
    }
    i += length;
  }
  return begin < end ? text.substr(begin, end - begin) : "";
}

/// A sign, which is removed; true for a minus.
bool takeSign(std::string_view &text) {
  bool minus = text.starts_with('-');
  if (minus || text.starts_with('+'))
    text.remove_prefix(1);
  return minus;
}

/// Python's int(text, base) without underscores. `digits` gets the decimal
/// digits, empty where Python would not print them.
bool pythonInt(std::string_view text, int base, bool &minus,
               std::string &digits) {
  text = stripped(text);
  minus = takeSign(text);
  char mark = base == 2 ? 'b' : base == 8 ? 'o' : base == 16 ? 'x' : '\0';
  if (mark && text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == mark)
    text.remove_prefix(2);
  for (char c : text)
    if (digitValue(c) >= base)
      return false;
  if (text.empty() || (base == 10 && text.size() > mostDigits))
    return false;
  digits = decimalDigits(text, base);
  return true;
}

void setInt(Node &node, bool minus, const std::string &digits) {
  node.kind = Kind::Int;
  uint64_t value = 0;
  const char *end = digits.data() + digits.size();
  auto [stop, error] = std::from_chars(digits.data(), end, value);
  uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (digits.empty() || error != std::errc() || value > limit + minus) {
    node.huge = true;
    double size = std::numeric_limits<double>::infinity();
    if (!digits.empty())
      std::from_chars(digits.data(), end, size);
    node.number = minus ? -size : size;
    if (!digits.empty()) {
      std::string text = (minus ? "-" : "") + digits;
      node.python = std::make_shared<const std::pair<std::string, std::string>>(
          text, text);
    }
    return;
  }
  node.integer = static_cast<int64_t>(minus ? 0 - value : value);
  node.number = static_cast<double>(node.integer);
}

/// 1:30:00 in base 60.
bool constructSexagesimal(Node &node, std::string_view text, bool minus) {
  __int128 sum = 0;
  bool small = true;
  Natural large; // without the signs that parts of a tagged scalar may have
  for (size_t at = 0; at <= text.size();) {
    size_t colon = std::min(text.find(':', at), text.size());
    bool negative = false;
    std::string digits;
    if (!pythonInt(text.substr(at, colon - at), 10, negative, digits))
      return false;
    small &= digits.size() <= 18;
    int64_t part = digits.size() <= 18 ? std::stoll(digits) : 0;
    if (at == 0)
      for (char c : digits)
        large.multiplyAdd(10, c - '0');
    else if (large.size() <= 2 * mostDigits)
      large.multiplyAdd(60, static_cast<uint32_t>(part));
    sum = small ? sum * 60 + (negative ? -part : part) : 0;
    small &= sum < (int64_t(1) << 60) && sum > -(int64_t(1) << 60);
    at = colon + 1;
  }
  if (small) {
    auto value = static_cast<int64_t>(sum);
    setInt(node, minus != (value < 0), std::to_string(std::abs(value)));
    return true;
  }
  std::string digits = large.text();
  setInt(node, minus, digits.size() > mostDigits ? "" : digits);
  return true;
}

bool constructInt(Node &node) {
  std::string clean = without(node.text, '_');
  std::string_view text = clean;
  if (text.empty())
    return false;
  bool minus = takeSign(text), inner = false;
  if (text.empty())
    return false;
  std::string digits;
  bool good = false;
  if (text.starts_with("0b"))
    good = pythonInt(text.substr(2), 2, inner, digits);
  else if (text.starts_with("0x"))
    good = pythonInt(text.substr(2), 16, inner, digits);
  else if (text != "0" && text[0] == '0')
    good = pythonInt(text, 8, inner, digits);
  else if (text.find(':') != text.npos)
    return constructSexagesimal(node, text, minus);
  else
    good = pythonInt(text, 10, inner, digits);
  if (good)
    setInt(node, minus != inner, digits);
  return good;
}

/// Python's float(text) of lower-case text without underscores.
bool pythonFloat(std::string_view text, double &value) {
  text = stripped(text);
  bool minus = takeSign(text);
  bool word = text == "inf" || text == "infinity" || text == "nan";
  if (text.empty() || (!word && !(text[0] == '.' || digitValue(text[0]) < 10)))
    return false;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end ||
      (error != std::errc() && error != std::errc::result_out_of_range))
    return false;
  // The result is then not set. It is tiny if the first digit that counts lies
  // far behind the dot.
  if (error == std::errc::result_out_of_range) {
    size_t e = text.find('e');
    bool tiny = e != text.npos ? text.substr(e + 1).starts_with('-')
                               : text.find_first_not_of("0.") >
                                     std::min(text.find('.'), text.size());
    value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  }
  if (minus)
    value = -value;
  return true;
}

bool constructFloat(Node &node) {
  std::string clean = lower(without(node.text, '_'));
  std::string_view text = clean;
  if (text.empty())
    return false;
  bool minus = takeSign(text);
  if (text.empty() && clean.size() == 1)
    return false;
  double value = 0;
  if (text == ".inf") {
    value = std::numeric_limits<double>::infinity();
  } else if (text == ".nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (text.find(':') != text.npos) {
    // From the last part on, as PyYAML sums; its base is an integer, which
    // must fit a float.
    double base = 1;
    for (size_t end = text.size(); end != text.npos;) {
      size_t colon = end == 0 ? text.npos : text.rfind(':', end - 1);
      size_t begin = colon == text.npos ? 0 : colon + 1;
      double part = 0;
      if (!pythonFloat(text.substr(begin, end - begin), part) ||
          std::isinf(base))
        return false;
      value += part * base;
      base *= 60;
      end = colon;
    }
  } else if (!pythonFloat(text, value)) {
    return false;
  }
  node.kind = Kind::Float;
  node.number = minus ? -value : value;
  return true;
}

bool constructBool(Node &node) {
  std::string text = lower(node.text);
  node.kind = Kind::Bool;
  node.boolean = text == "yes" || text == "true" || text == "on";
  return node.boolean || text == "no" || text == "false" || text == "off";
}

void setPython(Node &node, Other other, std::string text, std::string repr) {
  node.kind = Kind::Other;
  node.other = other;
  node.python = std::make_shared<const std::pair<std::string, std::string>>(
      std::move(text), std::move(repr));
}

struct DateTime {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  int microsecond = 0;
  int zone = 0; // minutes
  bool hasTime = false, hasZone = false;
};

/// PyYAML's timestamp_regexp, which takes single digits where the resolver
/// wants two.
bool parseTimestamp(std::string_view text, DateTime &t) {
  if (text.ends_with('\n'))
    text.remove_suffix(1); // `$`
  size_t at = 0;
  auto take = [&](char c) {
    bool found = at < text.size() && text[at] == c;
    at += found;
    return found;
  };
  auto number = [&](size_t least, size_t most, int &value) {
    size_t start = at;
    while (at < text.size() && at - start < most && digitValue(text[at]) < 10)
      ++at;
    std::from_chars(text.data() + start, text.data() + at, value);
    return at - start >= least;
  };
  auto blanks = [&] {
    size_t start = at;
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t'))
      ++at;
    return at > start;
  };
  if (!number(4, 4, t.year) || !take('-') || !number(1, 2, t.month) ||
      !take('-') || !number(1, 2, t.day))
    return false;
  if (at == text.size())
    return true;
  t.hasTime = true;
  if (!take('T') && !take('t') && !blanks())
    return false;
  if (!number(1, 2, t.hour) || !take(':') || !number(2, 2, t.minute) ||
      !take(':') || !number(2, 2, t.second))
    return false;
  if (take('.')) {
    size_t start = at;
    int ignored = 0;
    number(0, text.size(), ignored);
    std::string fraction(text.substr(start, std::min<size_t>(at - start, 6)));
    if (!fraction.empty()) {
      fraction.resize(6, '0');
      std::from_chars(fraction.data(), fraction.data() + 6, t.microsecond);
    }
  }
  if (at == text.size())
    return true;
  blanks();
  t.hasZone = true;
  if (take('Z'))
    return at == text.size();
  bool minus = at < text.size() && text[at] == '-';
  int hours = 0, minutes = 0;
  if ((!take('-') && !take('+')) || !number(1, 2, hours))
    return false;
  if (take(':') && !number(2, 2, minutes))
    return false;
  t.zone = (hours * 60 + minutes) * (minus ? -1 : 1);
  return at == text.size();
}

bool constructTimestamp(Node &node) {
  DateTime t;
  if (!parseTimestamp(node.text, t))
    return false;
  constexpr int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (t.year < 1 || t.month < 1 || t.month > 12 || t.day < 1)
    return false;
  bool leap = t.year % 4 == 0 && (t.year % 100 != 0 || t.year % 400 == 0);
  int days = lengths[t.month - 1] + (t.month == 2 && leap);
  if (t.day > days || t.hour > 23 || t.minute > 59 || t.second > 59 ||
      std::abs(t.zone) >= 24 * 60)
    return false;
  char text[64], repr[96];
  std::snprintf(text, sizeof text, "%04d-%02d-%02d", t.year, t.month, t.day);
  if (!t.hasTime) {
    std::snprintf(repr, sizeof repr, "datetime.date(%d, %d, %d)", t.year,
                  t.month, t.day);
    setPython(node, Other::Date, text, repr);
    return true;
  }
  std::string shown = text, form;
  std::snprintf(text, sizeof text, " %02d:%02d:%02d", t.hour, t.minute,
                t.second);
  shown += text;
  std::snprintf(repr, sizeof repr, "datetime.datetime(%d, %d, %d, %d, %d",
                t.year, t.month, t.day, t.hour, t.minute);
  form = repr;
  if (t.second || t.microsecond)
    form += ", " + std::to_string(t.second);
  if (t.microsecond) {
    std::snprintf(text, sizeof text, ".%06d", t.microsecond);
    shown += text;
    form += ", " + std::to_string(t.microsecond);
  }
  if (t.hasZone) {
    int size = std::abs(t.zone), seconds = t.zone * 60;
    std::snprintf(text, sizeof text, "%c%02d:%02d", t.zone < 0 ? '-' : '+',
                  size / 60, size % 60);
    shown += text;
    form += ", tzinfo=datetime.timezone";
    if (t.zone == 0)
      form += ".utc";
    else if (t.zone < 0)
      form += "(datetime.timedelta(days=-1, seconds=" +
              std::to_string(seconds + 86400) + "))";
    else
      form += "(datetime.timedelta(seconds=" + std::to_string(seconds) + "))";
  }
  setPython(node, Other::Date, shown, form + ")");
  return true;
}

/// base64.decodebytes: characters of other alphabets are skipped.
bool decodeBase64(std::string_view text, std::string &bytes) {
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  int position = 0, pads = 0;
  unsigned left = 0;
  for (char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80)
      return false; // not ASCII
  }
  for (char c : text) {
    if (c == '=') {
      if (position >= 2 && position + ++pads >= 4)
        return true;
      continue;
    }
    size_t value = alphabet.find(c);
    if (value == alphabet.npos)
      continue;
    pads = 0;
    unsigned six = static_cast<unsigned>(value);
    if (position > 0)
      bytes +=
          static_cast<char>(left << (2 * position) | six >> (6 - 2 * position));
    left = six & ((1u << (6 - 2 * position)) - 1);
    position = (position + 1) % 4;
  }
  return position == 0;
}

bool constructBinary(Node &node) {
  std::string bytes;
  if (!decodeBase64(node.text, bytes))
    return false;
  char quote = bytes.find('\'') != bytes.npos && bytes.find('"') == bytes.npos
                   ? '"'
                   : '\'';
  std::string repr = std::string("b") + quote;
  for (char c : bytes) {
    auto code = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      repr += '\\';
      repr += c;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      repr += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (code < 0x20 || code >= 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", code);
      repr += escape;
    } else {
      repr += c;
    }
  }
  repr += quote;
  setPython(node, Other::Bytes, repr, repr);
  return true;
}

} // namespace

std::string accel::yaml::decimalDigits(std::string_view digits, int base) {
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty())
    return "0";
  if (base == 10)
    return std::string(digits);
  if (digits.size() > 4 * mostDigits)
    return "";
  Natural value;
  for (char c : digits)
    value.multiplyAdd(base, digitValue(c));
  std::string text = value.text();
  return text.size() > mostDigits ? "" : text;
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
  case Tag::Timestamp:
    return constructTimestamp(node);
  case Tag::Binary:
    return constructBinary(node);
  default:
    return false;
  }
}
