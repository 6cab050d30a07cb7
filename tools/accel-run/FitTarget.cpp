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

/// "---" and "...", alone or before a blank.
static bool isMark(const std::string &line, std::string_view mark) {
  return line.rfind(mark, 0) == 0 &&
         (line.size() == mark.size() ||
          std::string_view(" \t\r").find(line[mark.size()]) !=
              std::string_view::npos);
}

/// The key of a line at column 0, without quotes around it.
static std::string keyOf(const std::string &line) {
  std::string key = line.substr(0, line.find(':'));
  key.erase(key.find_last_not_of(" \t") + 1);
  const bool isQuoted = key.size() >= 2 && key.front() == key.back() &&
                        (key.front() == '"' || key.front() == '\'');
  return isQuoted ? key.substr(1, key.size() - 2) : key;
}

/// Why sections cannot be written behind a line at column 0, or not in place of
/// the one before, `section`; "" where they can.
static std::string whyNot(const std::string &line, const std::string &section) {
  if (isMark(line, "...") || (isMark(line, "---") && !section.empty()))
    return "'" + line.substr(0, 3) +
           "' ends the YAML document, and what is measured is written behind "
           "it; remove this line and what follows it";
  const bool isReplaced =
      section == "overlap" || section == "drive" || section == "measured";
  const std::string_view wrong = isReplaced ? "{[?}]" : "{[?";
  if (wrong.find(line[0]) != std::string_view::npos)
    return "'KEY:' is expected at the start of the line, as 'accel-opt targets "
           "NAME --format yaml' prints it";
  return "";
}

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
    if (!line.empty() && line[0] == '#') {
      kept += line + "\n"; // it may be of what follows
      continue;
    }
    if (line.find_first_not_of(" \t\r") != std::string::npos &&
        line[0] != ' ') {
      if (const std::string why = whyNot(line, section); !why.empty()) {
        error = "line " + std::to_string(number) + " of the target: " + why;
        return "";
      }
      if (isMark(line, "---") || (line[0] == '%' && section.empty())) {
        kept += line + "\n"; // before all keys
        continue;
      }
      section = keyOf(line);
      if (section == "measured" && line[0] != 'm')
        line = section + line.substr(std::min(line.find(':'), line.size()));
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
