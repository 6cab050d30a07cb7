//===- ConversionReport.cpp - What a conversion changed -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/ConversionReport.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

using namespace accel::convert;
using llvm::formatv;

namespace accel {

using Json = nlohmann::ordered_json;

std::string renderConversion(const Conversion &conversion,
                             const std::string &file) {
  if (conversion.changes.empty())
    return "";
  std::string text;
  llvm::raw_string_ostream out(text);
  out << formatv("{0}: {1} to {2}\n\n", file,
                 conversion.from ? title(*conversion.from) : "nothing",
                 title(conversion.to));
  for (const Change &c : conversion.changes) {
    const std::string place = c.line ? "line " + std::to_string(c.line) : "new";
    const std::string edit = c.from.empty() ? c.to
                             : c.to.empty() ? c.from + "  ->  (removed)"
                                            : c.from + "  ->  " + c.to;
    out << formatv("  {0,-8} {1}\n           {2}\n", place, edit, c.why);
  }
  if (!conversion.differences.empty())
    out << "\nwhat the new job does otherwise:\n";
  for (const Difference &d : conversion.differences)
    out << formatv("  {0,-8} {1}\n    before: {2}\n    now:    {3}\n", d.area,
                   d.topic, d.before, d.after);
  return text;
}

std::string conversionJson(const std::optional<Conversion> &conversion,
                           const std::string &output,
                           const DiagnosticEngine &engine) {
  auto dump = [](const Json &json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  auto orNull = [](const std::string &text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  Json changes = Json::array(), differences = Json::array();
  if (conversion) {
    for (const Change &c : conversion->changes)
      changes.push_back({{"line", c.line ? Json(c.line) : Json(nullptr)},
                         {"key", c.key},
                         {"from", orNull(c.from)},
                         {"to", orNull(c.to)},
                         {"why", c.why}});
    for (const Difference &d : conversion->differences)
      differences.push_back({{"topic", d.topic},
                             {"area", d.area},
                             {"before", d.before},
                             {"after", d.after}});
  }
  const bool known = conversion && conversion->from;
  return "{\"from\": " + (known ? dump(toString(*conversion->from)) : "null") +
         ",\n\"to\": " +
         (conversion ? dump(toString(conversion->to)) : "null") +
         ",\n\"text\": " + (conversion ? dump(conversion->text) : "null") +
         ",\n\"output\": " + dump(orNull(output)) +
         ",\n\"changes\": " + dump(changes) +
         ",\n\"differences\": " + dump(differences) +
         ",\n\"diagnostics\": " + renderJson(engine) + "}\n";
}

} // namespace accel
