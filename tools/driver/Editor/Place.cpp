//===- Place.cpp - Where in a YAML a cursor stands ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Editor/Place.h"

#include <climits>

namespace accel {

std::string_view lineOf(std::string_view text, int line) {
  for (; line > 0; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos)
      return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  return !text.empty() && text.back() == '\r' ? text.substr(0, text.size() - 1)
                                              : text;
}

/// Bytes and UTF-16 units of the character that starts with `lead`.
static std::pair<size_t, int> sizesOf(char lead) {
  const auto c = static_cast<unsigned char>(lead);
  if (c >= 0xF0)
    return {4, 2};
  return {c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1, 1};
}

int unitsOf(std::string_view line, int characters) {
  int units = 0;
  for (size_t i = 0; i < line.size() && characters > 0; --characters) {
    const auto [bytes, width] = sizesOf(line[i]);
    i += bytes;
    units += width;
  }
  return units;
}

static size_t byteOf(std::string_view line, int unit) {
  size_t at = 0;
  while (at < line.size() && unit > 0) {
    const auto [bytes, width] = sizesOf(line[at]);
    at += bytes;
    unit -= width;
  }
  return std::min(at, line.size());
}

/// The key that a line writes; empty: none.
static std::string_view keyOf(std::string_view line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos || line[begin] == '#')
    return {};
  line.remove_prefix(begin);
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos ||
      (colon + 1 < line.size() && line[colon + 1] != ' '))
    return {};
  return line.substr(0, colon);
}

static size_t indentOf(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

std::string Place::path() const {
  std::string path;
  for (const std::string &section : sections)
    path += section + ".";
  return path + key;
}

Place placeAt(std::string_view text, int line, int unit) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; line >= 0 && begin <= text.size(); --line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  Place place;
  if (lines.empty() || line >= 0)
    return place;
  const std::string_view here = lines.back();
  const size_t cursor = byteOf(here, unit);
  place.key = keyOf(here);
  place.inValue =
      !place.key.empty() && cursor > indentOf(here) + place.key.size();
  // A blank line is as deep as the cursor.
  size_t indent =
      place.key.empty() ? std::min(indentOf(here), cursor) : indentOf(here);
  for (size_t i = lines.size() - 1; i-- > 0 && indent > 0;) {
    const std::string_view key = keyOf(lines[i]);
    if (key.empty() || indentOf(lines[i]) >= indent)
      continue;
    indent = indentOf(lines[i]);
    place.sections.emplace(place.sections.begin(), key);
  }
  return place;
}

} // namespace accel
