//===- FitTarget.cpp - Measured seconds in a target's file ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/FitTarget.h"

#include "runtime/storage/FileError.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace accel::run {

/// Of the section `measured`, beside its figures.
constexpr std::string_view knownLines[] = {
    "measured:",      "  source: ",   "  operators:",
    "  collectives:", "  overheads:", "  moves:"};

std::string withMeasured(const std::string &target, const Fitted &fitted,
                         const std::string &source, std::string &error) {
  // accel-opt reads the whole file; here only what is written anew.
  std::istringstream lines(target);
  std::string kept, line, section, part;
  Fitted all;
  bool names = false;
  int number = 0;
  auto isNew = [&] {
    return (section == "overlap" && fitted.overlap) ||
           (section == "drive" && fitted.drive);
  };
  while (std::getline(lines, line)) {
    ++number;
    if (!line.empty() && line[0] != ' ' && line[0] != '#') {
      section = line.substr(0, line.find(':'));
      section.erase(section.find_last_not_of(" \t") + 1);
      names |= section == "name";
      if (isNew())
        continue;
    }
    if (isNew() && !line.empty())
      continue; // its values and source
    if (section != "measured") {
      kept += line + "\n";
      continue;
    }
    if (line.size() > 2 && line.rfind("  ", 0) == 0 && line[2] != ' ')
      part = line.substr(2, line.find(':') - 2);
    const size_t open = line.find("    \""), close = line.rfind("\": ");
    const size_t text = line.find_first_not_of(" \t\r");
    if (text == std::string::npos || line[text] == '#')
      continue;
    if (open != 0 || close == std::string::npos) {
      // What is not read here would be lost.
      if (std::none_of(std::begin(knownLines), std::end(knownLines),
                       [&](std::string_view known) {
                         return line.rfind(known, 0) == 0;
                       }) ||
          line.find('{') != std::string::npos) {
        error =
            "line " + std::to_string(number) +
            " of the target: 'measured' is written as accel-run --fit does "
            "it, each figure on a line of its own as '    \"NAME\": NUMBER'";
        return "";
      }
      continue;
    }
    double value = 0;
    const char *begin = line.data() + close + 3;
    const char *end = line.data() + line.size();
    const auto [stop, bad] = std::from_chars(begin, end, value);
    if (bad != std::errc() || stop != end) {
      error = "line " + std::to_string(number) +
              " of the target: seconds are expected after '\": '";
      return "";
    }
    (part == "collectives" ? all.collectives
     : part == "overheads" ? all.overheads
     : part == "moves"     ? all.moves
                           : all.operators)[line.substr(5, close - 5)] = value;
  }
  if (!names) {
    error = "this is no target: it has no 'name:'; 'accel-opt targets NAME "
            "--format yaml' prints one to start from";
    return "";
  }
  auto shown = [](double value,
                  std::chars_format format = std::chars_format::scientific) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + 32, value, format, 3);
    return std::string(digits, end.ptr);
  };
  std::string text = kept;
  auto write = [&](const char *key, const std::optional<double> &value) {
    if (value)
      text += std::string(key) +
              ":\n  value: " + shown(*value, std::chars_format::fixed) +
              "\n  source: \"" + source + "\"\n";
  };
  write("overlap", fitted.overlap);
  if (fitted.drive)
    text += "drive:\n  read_bandwidth: " + shown(fitted.drive->read) +
            "\n  write_bandwidth: " + shown(fitted.drive->written) +
            "\n  source: \"" + source + "\"\n";
  text += "measured:\n  source: \"" + source + "\"\n";
  auto list = [&](const char *key, std::map<std::string, double> &seconds,
                  const std::map<std::string, double> &measured) {
    for (const auto &[name, value] : measured)
      seconds[name] = value;
    if (seconds.empty())
      return;
    text += std::string("  ") + key + ":\n";
    for (const auto &[name, value] : seconds)
      text += "    \"" + name + "\": " + shown(value) + "\n";
  };
  list("operators", all.operators, fitted.operators);
  list("collectives", all.collectives, fitted.collectives);
  list("overheads", all.overheads, fitted.overheads);
  list("moves", all.moves, fitted.moves);
  return text;
}

std::string readTarget(const std::string &path, const std::string &device) {
  std::ifstream file(path);
  if (!file)
    throw FileError(path + ": cannot be opened");
  std::stringstream target;
  target << file.rdbuf();
  std::string error;
  if (withMeasured(target.str(), {}, "", error).empty())
    throw FileError(path + ": " + error);
  // accel-opt reads YAML; here a kind in another form is none.
  std::string line, kind;
  while (kind.empty() && std::getline(target, line))
    if (line.rfind("kind: ", 0) == 0)
      std::istringstream(line.substr(6)) >> kind;
  std::erase_if(kind, [](char c) { return c == '"' || c == '\''; });
  if (kind.empty() || kind[0] == '#')
    throw FileError(path +
                    ": the target's kind cannot be read: a line must "
                    "begin with 'kind: " +
                    device + "', as 'accel-opt targets NAME --format yaml' " +
                    "prints it");
  if (kind != device)
    throw FileError(path + ": the target is of kind '" + kind +
                    "', and the plan runs on '" + device +
                    "': seconds of one say nothing of the other; give a "
                    "target of kind '" +
                    device + "'");
  return target.str();
}

} // namespace accel::run
