//===- Input.cpp - What libyaml reads -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Yaml/Input.h"
#include "frontends/Diagnostics/Utf8.h"

using namespace accel;
using namespace accel::yaml;

void accel::yaml::replaceAll(std::string &text, std::string_view what,
                             std::string_view with) {
  for (size_t at = text.find(what); at != text.npos;
       at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

std::string accel::yaml::unusedCharacter(std::string_view text) {
  std::string result;
  for (uint32_t code = 0xe000; code < 0xf900; ++code) {
    result.clear();
    appendUtf8(result, code);
    if (text.find(result) == text.npos)
      break;
  }
  return result;
}

bool accel::yaml::adaptDirectives(std::string &text) {
  // Those of YAML 1.1, each as its own.
  auto nextBreak = [&](size_t from) {
    // Not by find: what one line lacks may be missing in all of the file.
    std::string_view rest = text;
    for (size_t at = from; at < rest.size(); ++at) {
      if (rest[at] == '\r' || rest[at] == '\n')
        return at;
      for (std::string_view other :
           {"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"})
        if (rest[at] == other[0] && rest.substr(at).starts_with(other))
          return at;
    }
    return rest.size();
  };
  auto afterBreak = [&](size_t at) {
    if (at >= text.size())
      return at;
    return at + (text[at] == '\xc2' ? 2 : text[at] == '\xe2' ? 3 : 1);
  };
  auto isName = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z') || c == '-' || c == '_';
  };
  bool ignored = false;
  for (size_t at = 0; at < text.size();) {
    size_t end = nextBreak(at);
    size_t first = std::min(text.find_first_not_of(' ', at), end);
    if (first < end && text[first] != '#' && text[at] != '%')
      break;
    size_t name = at + 1;
    while (name < end && isName(text[name]))
      ++name;
    bool directive =
        text[at] == '%' && name > at + 1 && (name == end || text[name] == ' ');
    std::string word = directive ? text.substr(at + 1, name - at - 1) : "";
    if (word == "YAML") {
      size_t major = std::min(text.find_first_not_of(' ', name), end);
      size_t dot = major, stop = major;
      while (dot < end && text[dot] >= '0' && text[dot] <= '9')
        ++dot;
      stop = std::min(dot + 1, end);
      while (stop < end && text[stop] >= '0' && text[stop] <= '9')
        ++stop;
      size_t one = text.find_first_not_of('0', major);
      bool whole = dot < end && text[dot] == '.' && one + 1 == dot &&
                   text[one] == '1' && stop > dot + 1 &&
                   (stop == end || text[stop] == ' ');
      if (whole)
        text.replace(major, stop - major,
                     "1.1" + std::string(stop - major - 3, ' '));
    } else if (directive && word != "TAG") {
      text[at] = '#';
      ignored = true;
    }
    at = afterBreak(end);
  }
  return ignored;
}
