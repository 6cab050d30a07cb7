//===- Place.h - Where in a YAML a cursor stands ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EDITOR_PLACE_H
#define ACCEL_TOOLS_DRIVER_EDITOR_PLACE_H

#include <string>
#include <string_view>
#include <vector>

namespace accel {

/// By indentation alone: a text that is being typed need not parse.
struct Place {
  std::vector<std::string> sections; // keys that the line is under
  std::string key;                   // of the line; empty: none is written yet
  bool inValue = false;              // the cursor is behind "key:"

  /// "fsdp_config.fsdp_version".
  std::string path() const;
};

/// `line` from 0, `unit` in UTF-16 units, as editors count.
Place placeAt(std::string_view text, int line, int unit);

/// A line without its end; empty where there is none.
std::string_view lineOf(std::string_view text, int line);

/// UTF-16 units of the first `characters` of a line.
int unitsOf(std::string_view line, int characters);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EDITOR_PLACE_H
