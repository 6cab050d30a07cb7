//===- FitTarget.cpp - Measured seconds in a target's file ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/FitTarget.h"

#include <charconv>
#include <sstream>

namespace accel::run {

std::string withMeasured(const std::string &target,
                         const std::map<std::string, double> &seconds,
                         const std::string &source, std::string &error) {
  // accel-opt reads the whole file; here only what belongs to `measured`.
  std::istringstream lines(target);
  std::string kept, line;
  std::map<std::string, double> all;
  bool inside = false, names = false;
  int number = 0;
  while (std::getline(lines, line)) {
    ++number;
    if (!line.empty() && line[0] != ' ') {
      inside = line.rfind("measured:", 0) == 0;
      names |= line.rfind("name:", 0) == 0;
    }
    if (!inside) {
      kept += line + "\n";
      continue;
    }
    const size_t open = line.find("    \""), close = line.rfind("\": ");
    if (open != 0 || close == std::string::npos)
      continue;
    double value = 0;
    const char *begin = line.data() + close + 3;
    const char *end = line.data() + line.size();
    const auto [stop, bad] = std::from_chars(begin, end, value);
    if (bad != std::errc() || stop != end) {
      error = "line " + std::to_string(number) +
              " of the target: seconds are expected after '\": '";
      return "";
    }
    all[line.substr(5, close - 5)] = value;
  }
  if (!names) {
    error = "this is no target: it has no 'name:'; 'accel-opt targets NAME "
            "--format yaml' prints one to start from";
    return "";
  }
  for (const auto &[key, value] : seconds)
    all[key] = value;
  std::string text =
      kept + "measured:\n  source: \"" + source + "\"\n  operators:\n";
  for (const auto &[key, value] : all) {
    char digits[32];
    const auto shown = std::to_chars(digits, digits + 32, value,
                                     std::chars_format::scientific, 3);
    text += "    \"" + key + "\": " + std::string(digits, shown.ptr) + "\n";
  }
  return text;
}

} // namespace accel::run
