//===- ModulePath.cpp - Names of modules in a model -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/ModulePath.h"

namespace accel::plan {

std::string withoutLayerNumbers(std::string_view path) {
  std::string text;
  for (bool last = path.empty(); !last;) {
    const size_t dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    // "/frozen" and its like stand behind the last part of a unit's name.
    const std::string_view name = part.substr(0, part.find('/'));
    const bool number = !name.empty() && name.find_first_not_of("0123456789") ==
                                             std::string_view::npos;
    text += number ? "*" : name;
    text += part.substr(name.size());
    last = dot == std::string_view::npos;
    if (!last) {
      text += '.';
      path.remove_prefix(dot + 1);
    }
  }
  return text;
}

} // namespace accel::plan
