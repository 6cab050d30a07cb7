//===- EarlierOutput.h - What an output may replace -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A run begins the files of its outputs anew. So that none of them is data,
// weights or somebody else's file, a file is replaced only where a run has
// written it: where it begins as that output does.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_EARLIEROUTPUT_H
#define ACCEL_RUNTIME_PLAN_EARLIEROUTPUT_H

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

namespace accel::plan {

/// How a trace begins, of a plan's step and of a measured one.
inline constexpr std::string_view traceStart =
    "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";

/// The first `bytes` of a file, or what it has of them.
inline std::string startOf(const std::filesystem::path &path, size_t bytes) {
  std::string start(bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(file.gcount()));
  return start;
}

/// True if `path` is absent, empty or a device.
inline bool holdsNothing(const std::filesystem::path &path) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (fs::is_directory(status))
    return false;
  return !fs::is_regular_file(status) || fs::file_size(path, code) == 0;
}

/// True if nothing else is lost when `path` is replaced: it holds nothing, or
/// begins with `start`.
inline bool mayHoldText(const std::filesystem::path &path,
                        std::string_view start) {
  return holdsNothing(path) || startOf(path, start.size()) == start;
}

/// The same, of a line that has numbers for the first `keys`, and `next` behind
/// them.
inline bool mayHoldLines(const std::filesystem::path &path,
                         std::initializer_list<std::string_view> keys,
                         std::string_view next) {
  if (holdsNothing(path))
    return true;
  const std::string start = startOf(path, 64);
  size_t at = 0;
  for (const std::string_view key : keys) {
    if (start.compare(at, key.size(), key) != 0)
      return false;
    at = start.find_first_not_of("0123456789", at + key.size());
    if (at == std::string::npos)
      return false;
  }
  return start.compare(at, next.size(), next) == 0;
}

/// Of predictions: {"step":10,"sample":0,"label":...
inline bool mayHoldPredictions(const std::filesystem::path &path) {
  return mayHoldLines(path, {"{\"step\":", ",\"sample\":"}, ",\"label\":");
}

/// Of a run's log: {"step":10,"loss":...
inline bool mayHoldLog(const std::filesystem::path &path) {
  return mayHoldLines(path, {"{\"step\":"}, ",\"loss\":");
}

/// Of --summary, --profile and --calibrate, as accel-run writes them.
inline bool mayHoldSummary(const std::filesystem::path &path) {
  return mayHoldText(path, "{\n  \"measured\": {");
}
inline bool mayHoldTrace(const std::filesystem::path &path) {
  return mayHoldText(path, traceStart);
}
inline bool mayHoldTimes(const std::filesystem::path &path) {
  return mayHoldText(path, "{\n \"format\": 2,\n \"device\": ");
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_EARLIEROUTPUT_H
