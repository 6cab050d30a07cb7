//===- InputFiles.h - What this process has read ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Readers of files note what they open here, so that no command writes over
// what it has read, whichever reader found the file.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_INPUTFILES_H
#define ACCEL_RUNTIME_PLAN_INPUTFILES_H

#include "runtime/plan/OutputModel.h"

#include <mutex>
#include <set>

namespace accel::plan {

struct InputFiles {
  std::mutex lock;
  std::set<std::string> paths;
};

inline InputFiles &inputFiles() {
  static InputFiles files;
  return files;
}

/// `path` is read by this process.
inline void noteInputFile(const std::string &path) {
  InputFiles &files = inputFiles();
  const std::lock_guard<std::mutex> held(files.lock);
  files.paths.insert(path);
}

/// The path by which the file `path` was read, or "". Links, hard links and
/// other spellings of a path are the same file.
inline std::string readAs(const std::string &path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code))
    return "";
  InputFiles &files = inputFiles();
  const std::lock_guard<std::mutex> held(files.lock);
  if (files.paths.count(path))
    return path;
  for (const std::string &read : files.paths)
    if (isSameFile(path, read))
      return read;
  return "";
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_INPUTFILES_H
