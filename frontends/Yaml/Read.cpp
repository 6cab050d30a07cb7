//===- Read.cpp - Files and their text ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/InputFiles.h"
#include "frontends/Diagnostics/Utf8.h"
#include "frontends/Yaml/Builder.h"
#include "frontends/Yaml/FileTexts.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>

using namespace accel;
using namespace accel::yaml;

namespace {

/// What PyYAML's reader lets through.
bool isPrintable(uint32_t c) {
  return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c <= 0x7e) ||
         c == 0x85 || (c >= 0xa0 && c <= 0xd7ff) ||
         (c >= 0xe000 && c <= 0xfffd) || c >= 0x10000;
}

/// Reports bytes that are no text; true if there are none.
bool checkText(const std::string &file, std::string_view input, bool json,
               DiagnosticEngine &engine) {
  constexpr int most = 5; // a binary file has millions
  int found = 0;
  for (size_t i = 0; i < input.size() && found < most;) {
    auto byte = static_cast<unsigned char>(input[i]);
    if (byte >= 0x20 && byte < 0x7f) {
      ++i;
      continue;
    }
    uint32_t code = 0;
    size_t length = utf8Length(input, i, code);
    if (length == 0 || (!json && !isPrintable(code))) {
      char what[80];
      if (length == 0)
        std::snprintf(what, sizeof what, "byte 0x%02x is not valid UTF-8",
                      byte);
      else
        std::snprintf(what, sizeof what,
                      "control character U+%04X is not allowed",
                      static_cast<unsigned>(code));
      Diagnostic d;
      d.file = file;
      d.code = "file-encoding";
      d.setRange(engine.rangeOf(file, i, i));
      d.message = what;
      d.hint = length == 0 ? "save the file as UTF-8"
                           : "remove it; is this a text file?";
      engine.report(std::move(d));
      ++found;
      if (length && code == 0)
        break; // it is not
    }
    i += length ? length : 1;
  }
  return found == 0;
}

std::string megabytes(uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

/// Parses the text that the engine has.
std::unique_ptr<Document> parseSource(const std::string &file,
                                      DiagnosticEngine &engine,
                                      const Limits &limits) {
  std::string_view text = engine.source(file);
  bool json = file.ends_with(".json");
  if (!checkText(file, text, json, engine))
    return nullptr;
  return json ? readJson(file, text, engine, limits)
              : readYaml(file, text, engine, limits);
}

} // namespace

std::unique_ptr<Document> accel::yaml::parseText(const std::string &file,
                                                 std::string_view text,
                                                 DiagnosticEngine &engine,
                                                 const Limits &limits) {
  if (text.size() > limits.bytes) {
    engine.error("yaml-limit", file,
                 "the text is larger than " + megabytes(limits.bytes));
    return nullptr;
  }
  engine.addSource(file, std::string(text));
  return parseSource(file, engine, limits);
}

bool accel::yaml::readWholeFile(const std::string &file, uint64_t limit,
                                std::string &text, std::string &error) {
  struct stat info;
  if (stat(file.c_str(), &info) != 0) {
    error = errno == ENOENT ? "no such file" : std::strerror(errno);
    return false;
  }
  if (S_ISDIR(info.st_mode)) {
    error = "this is a folder";
    return false;
  }
  if (S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) > limit) {
    error = "larger than " + megabytes(limit);
    return false;
  }
  std::FILE *stream = std::fopen(file.c_str(), "rb");
  if (!stream) {
    error = std::strerror(errno);
    return false;
  }
  noteInputFile(file);
  text.clear();
  char buffer[1 << 16];
  bool good = true;
  while (size_t count = std::fread(buffer, 1, sizeof buffer, stream)) {
    text.append(buffer, count);
    if (text.size() > limit) {
      error = "larger than " + megabytes(limit);
      good = false;
      break;
    }
  }
  if (good && std::ferror(stream)) {
    error = std::strerror(errno);
    good = false;
  }
  std::fclose(stream);
  return good;
}

std::unique_ptr<Document> accel::yaml::parseFile(const std::string &file,
                                                 DiagnosticEngine &engine,
                                                 const Limits &limits) {
  std::string text, error;
  if (!readWholeFile(file, limits.bytes, text, error)) {
    if (error == "no such file")
      engine.error("file-not-found", file, error);
    else if (error.starts_with("larger than"))
      engine.error("yaml-limit", file, "the file is " + error);
    else
      engine.error("file-unreadable", file, "cannot read this file: " + error);
    return nullptr;
  }
  engine.addSource(file, std::move(text));
  return parseSource(file, engine, limits);
}

std::unique_ptr<Document> accel::yaml::parseFile(const std::string &file,
                                                 const FileTexts &instead,
                                                 DiagnosticEngine &engine) {
  auto text = instead.find(file);
  return text == instead.end() ? parseFile(file, engine)
                               : parseText(file, text->second, engine);
}
