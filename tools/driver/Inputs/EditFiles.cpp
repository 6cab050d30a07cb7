//===- EditFiles.cpp - Lines of an advice in their files ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/EditFiles.h"

#include "frontends/Scripts/TrlConfigs.h"
#include "tools/options/Values.h"

namespace accel {
namespace {

using convert::Path;
using convert::Rewriter;
using convert::Value;

Value valueOf(const std::string &text) {
  if (text == "true" || text == "false")
    return Value::boolean(text == "true");
  if (text == "null") // a key that is not set, which no value of one is named
    return Value::null();
  int64_t number = 0;
  return parseInteger(text, number) ? Value::integer(number)
                                    : Value::string(text);
}

Path split(const std::string &key) {
  Path path;
  size_t begin = 0;
  for (size_t dot; (dot = key.find('.', begin)) != std::string::npos;
       begin = dot + 1)
    path.push_back(key.substr(begin, dot - begin));
  path.push_back(key.substr(begin));
  return path;
}

bool write(Rewriter &rewriter, const tune::YamlLine &line) {
  const Path path = split(line.key);
  Value value = valueOf(line.value);
  if (rewriter.find(path))
    return rewriter.set(path, value);
  // The sections that are there already; the others are added in one.
  size_t there = path.size() - 1;
  while (there > 0 && !rewriter.find(Path(path.begin(), path.begin() + there)))
    --there;
  if (there == 0 && path.size() == 2)
    return rewriter.insertSection(path[0], {{path[1], value}});
  for (size_t i = path.size() - 1; i > there; --i)
    value = Value::mapping(path[i], value);
  return rewriter.insert(Path(path.begin(), path.begin() + there), path[there],
                         value);
}

bool isMapping(const std::string &file, const std::string &text) {
  DiagnosticEngine ignored;
  auto document = yaml::parseText(file, text, ignored);
  return document && document->root() && document->root()->isMapping();
}

} // namespace

Rewriter *FileEditor::open(const std::string &file) {
  auto [at, isNew] = edited.try_emplace(file);
  if (!isNew)
    return at->second.get();
  std::optional<std::string> text = read(file);
  if (text && isMapping(file, *text)) {
    at->second = std::make_unique<Rewriter>(file, *text);
    return at->second.get();
  }
  if (text)
    reason = "the file holds no keys";
  edited.erase(at);
  return nullptr;
}

std::optional<std::string> FileEditor::read(const std::string &file) {
  if (auto given = known.find(file); given != known.end())
    return given->second;
  if (auto own = scripts::trlConfigText(file))
    return own;
  std::string text;
  if (yaml::readWholeFile(file, yaml::Limits().bytes, text, reason))
    return text;
  return std::nullopt;
}

bool FileEditor::set(const tune::YamlLine &line) {
  Rewriter *rewriter = open(line.file);
  if (!rewriter)
    return false;
  if (write(*rewriter, line))
    return true;
  reason = rewriter->why().empty() ? "its section is missing" : rewriter->why();
  return false;
}

bool FileEditor::set(const std::vector<tune::YamlLine> &lines) {
  for (const tune::YamlLine &line : lines)
    if (!set(line))
      return false;
  return true;
}

std::string FileEditor::text(const std::string &file) {
  if (auto at = edited.find(file); at != edited.end())
    return at->second->text();
  return read(file).value_or("");
}

yaml::FileTexts FileEditor::texts() const {
  yaml::FileTexts all = known;
  for (const auto &[file, rewriter] : edited)
    all[file] = rewriter->text();
  return all;
}

} // namespace accel
