//===- PredictionsFile.h - The file of predictions --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A run begins the file anew. So that this is never data, weights or somebody
// else's file, a file is replaced only where an evaluation has written it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_PREDICTIONSFILE_H
#define ACCEL_RUNTIME_PLAN_PREDICTIONSFILE_H

#include <filesystem>
#include <fstream>
#include <string>

namespace accel::plan {

/// True if nothing else is lost when `path` is replaced by predictions: it is
/// absent, empty, a device, or begins with a line of predictions.
inline bool mayHoldPredictions(const std::filesystem::path &path) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (fs::is_directory(status))
    return false;
  if (!fs::is_regular_file(status) || fs::file_size(path, code) == 0)
    return true;
  // {"step":10,"sample":0,"label":...
  std::string start(64, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(file.gcount());
  size_t at = 0;
  for (const char *key : {"{\"step\":", ",\"sample\":"}) {
    const std::string text = key;
    if (start.compare(at, text.size(), text) != 0)
      return false;
    at = start.find_first_not_of("0123456789", at + text.size());
    if (at == std::string::npos)
      return false;
  }
  return start.compare(at, 9, ",\"label\":") == 0;
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_PREDICTIONSFILE_H
