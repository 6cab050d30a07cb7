//===- JsonText.h - JSON of an archive --------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_JSONTEXT_H
#define ACCEL_FRONTENDS_TORCHEXPORT_JSONTEXT_H

#include <nlohmann/json.hpp>

#include <set>
#include <string>

namespace accel::torchexport {

/// Parses `text` without the members of objects that are named in `without`.
/// Throws FormatError at "`entry`:" where it is no JSON, nests deeper than 100
/// or has more than ten million values.
nlohmann::json parseJson(const std::string &text, const std::string &entry,
                         const std::set<std::string> &without);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_JSONTEXT_H
