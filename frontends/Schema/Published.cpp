//===- Published.cpp - Where editors find our schemas ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Schema/Published.h"

#include <string_view>

using namespace accel;
using namespace accel::schema;

std::string accel::schema::addressOf(SchemaKind kind,
                                     AccelerateVersion version) {
  const char *name = kind == SchemaKind::Job ? "job" : "accelerate";
  return std::string(ACCEL_HOMEPAGE "/raw/main/docs/schemas/") + name + "-" +
         toString(version) + ".json";
}

std::string accel::schema::withModeline(const std::string &text,
                                        SchemaKind kind,
                                        AccelerateVersion version) {
  constexpr std::string_view modeline = "# yaml-language-server: $schema=";
  constexpr std::string_view mark = "\xef\xbb\xbf"; // a byte order mark
  if (version != newestAccelerate || text.find(modeline) != std::string::npos)
    return text;
  const size_t at = text.starts_with(mark) ? mark.size() : 0;
  std::string result = text;
  // Lines end as the file's own do.
  const size_t end = text.find_first_of("\r\n");
  const bool carriage =
      end != std::string::npos && text.compare(end, 2, "\r\n") == 0;
  result.insert(at, std::string(modeline) + addressOf(kind, version) +
                        (carriage ? "\r\n" : "\n"));
  return result;
}
