//===- JsonDocument.cpp - A JSON file with positions ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/ConfigJson/JsonDocument.h"

#include "frontends/Diagnostics/InputFiles.h"
#include "frontends/Yaml/Yaml.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace accel::huggingface;

/// Makes JSON of a value that stands at `key`, and notes where each part is.
nlohmann::json JsonDocument::convert(const yaml::Node &node,
                                     const std::string &key) {
  positions[key] = {node.range.begin.line, node.range.begin.column};
  auto inside = [&](const std::string &name) {
    // Far below what any reader asks for: deep nesting stays linear.
    if (key.size() > 512)
      return key;
    return key.empty() ? name : key + "." + name;
  };
  switch (node.kind) {
  case yaml::Kind::Mapping: {
    nlohmann::json object = nlohmann::json::object();
    for (const yaml::Entry &entry : node.entries)
      object[entry.key->text] = convert(*entry.value, inside(entry.key->text));
    return object;
  }
  case yaml::Kind::Sequence: {
    nlohmann::json list = nlohmann::json::array();
    for (const yaml::Node *item : node.items)
      list.push_back(convert(*item, inside(std::to_string(list.size()))));
    return list;
  }
  case yaml::Kind::Bool:
    return node.boolean;
  case yaml::Kind::Int:
    if (node.huge)
      return node.number;
    // As nlohmann's own parser types them.
    if (node.integer >= 0)
      return static_cast<uint64_t>(node.integer);
    return node.integer;
  case yaml::Kind::Float:
    return node.number;
  case yaml::Kind::String:
    return node.text;
  case yaml::Kind::Null:
  case yaml::Kind::Other:
    break;
  }
  return nullptr;
}

std::optional<JsonDocument> JsonDocument::parse(std::string_view text,
                                                JsonError &error) {
  DiagnosticEngine problems;
  const yaml::Limits limits = {.bytes = text.size(), .nodes = 10'000'000};
  const auto parsed = yaml::parseText("text.json", text, problems, limits);
  if (!parsed) {
    for (const Diagnostic &problem : problems.all())
      if (problem.severity == Severity::Error) {
        error = {{std::max(problem.line, 1), std::max(problem.column, 1)},
                 problem.message};
        break;
      }
    return std::nullopt;
  }
  JsonDocument document;
  if (parsed->root())
    document.tree = document.convert(*parsed->root(), "");
  return document;
}

TextPosition JsonDocument::position(const std::string &key) const {
  for (std::string prefix = key;;) {
    auto it = positions.find(prefix);
    if (it != positions.end())
      return it->second;
    size_t dot = prefix.rfind('.');
    if (prefix.empty())
      return {1, 1};
    prefix.resize(dot == std::string::npos ? 0 : dot);
  }
}

void accel::huggingface::reportFile(const std::string &path, int code,
                                    DiagnosticEngine &diagnostics) {
  if (code == ENOENT)
    diagnostics.error("file-not-found", path, "no such file");
  else
    diagnostics.error("file-unreadable", path,
                      std::string("cannot read this file: ") +
                          (code == EINVAL ? "it is not a regular file"
                                          : std::strerror(code)));
}

bool accel::huggingface::readFile(const std::string &path, uint64_t limit,
                                  std::string &text,
                                  DiagnosticEngine &diagnostics) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  int code = file < 0 ? errno : 0;
  struct stat status = {};
  if (!code && ::fstat(file, &status) != 0)
    code = errno;
  if (!code && !S_ISREG(status.st_mode))
    code = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
  bool tooLarge = !code && uint64_t(status.st_size) > limit;
  if (!code && !tooLarge) {
    text.resize(size_t(status.st_size));
    size_t done = 0;
    while (done < text.size() && !code) {
      ssize_t n = ::read(file, text.data() + done, text.size() - done);
      if (n > 0)
        done += size_t(n);
      else if (n == 0)
        break; // it became shorter; the reader of the text will notice
      else if (errno != EINTR)
        code = errno;
    }
    text.resize(done);
  }
  if (file >= 0) {
    noteInputFile(path);
    ::close(file);
  }
  if (code)
    reportFile(path, code, diagnostics);
  else if (tooLarge)
    diagnostics.error("file-unreadable", path,
                      "cannot read this file: it is larger than " +
                          std::to_string(limit / 1000000) + " MB");
  return !code && !tooLarge;
}
