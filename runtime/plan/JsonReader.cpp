//===- JsonReader.cpp - Strict reading with places ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/JsonReader.h"

#include <algorithm>

namespace accel::plan {

using nlohmann::json;

namespace {
/// A name that somebody else chose, without what upsets a terminal.
std::string printableKey(const char *key) {
  const std::string name = key;
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::none_of(name.begin(), name.end(), control))
    return name;
  return json(name).dump(-1, ' ', true, json::error_handler_t::replace);
}
} // namespace

std::string JsonNode::path() const {
  if (!parent)
    return key ? key : "";
  const std::string above = parent->path();
  if (!key)
    return above + "[" + std::to_string(index) + "]";
  if (above.empty())
    return printableKey(key);
  return above + (parent->parent || !parent->key ? "." : ": ") +
         printableKey(key);
}

void JsonNode::raise(const std::string &what, const std::string &hint,
                     bool unsupported) const {
  const std::string at = path();
  throw JsonError{at.empty() ? what : at + ": " + what, hint, unsupported};
}

std::string JsonNode::shown() const {
  switch (value.type()) {
  case json::value_t::object:
    return "an object";
  case json::value_t::array:
    return "a list";
  default:
    break;
  }
  const std::string text =
      value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

} // namespace accel::plan
