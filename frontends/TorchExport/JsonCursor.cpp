//===- JsonCursor.cpp - A JSON value and how it was reached ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/JsonCursor.h"

#include "frontends/Diagnostics/Diagnostics.h"

#include <limits>

namespace accel::torchexport {

std::string JsonCursor::path() const {
  if (!parent)
    return std::string(key) + ":";
  std::string text = parent->path();
  if (!key)
    return text + "[" + std::to_string(index) + "]";
  text += parent->parent ? "." : " ";
  return text + printable(key);
}

double JsonCursor::number() const {
  if (json->is_number())
    return json->get<double>();
  if (json->is_string()) {
    const std::string &text = json->get_ref<const std::string &>();
    if (text == "Infinity")
      return std::numeric_limits<double>::infinity();
    if (text == "-Infinity")
      return -std::numeric_limits<double>::infinity();
    if (text == "NaN")
      return std::numeric_limits<double>::quiet_NaN();
  }
  expected("a number");
}

void JsonCursor::expected(const char *what) const {
  std::string got = json->type_name();
  if (json->is_string())
    got += " '" + printable(json->get_ref<const std::string &>()) + "'";
  else if (json->is_primitive() && !json->is_null())
    got += " " + printable(json->dump());
  fail("expected " + std::string(what) + ", not " + got);
}

} // namespace accel::torchexport
