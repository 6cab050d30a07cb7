//===- Keys.h - What can be written in a place ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EDITOR_KEYS_H
#define ACCEL_TOOLS_DRIVER_EDITOR_KEYS_H

#include "tools/driver/Editor/Place.h"

namespace accel {

struct Choice {
  std::string text; // as YAML
  std::string help;
  bool isSection = false; // keys go under it
};

/// Keys of a section, or values of a key, as the JSON Schema of the file's kind
/// has them.
std::vector<Choice> choicesAt(const Place &place, std::string_view text);

/// What a key is for; empty: it is not known.
std::string descriptionOf(const Place &place, std::string_view text);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EDITOR_KEYS_H
