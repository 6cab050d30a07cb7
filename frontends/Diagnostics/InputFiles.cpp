//===- InputFiles.cpp - What this process has read ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Diagnostics/InputFiles.h"

#include <filesystem>
#include <mutex>
#include <set>

namespace accel {
namespace {

struct Files {
  std::mutex lock;
  std::set<std::string> paths;
};

Files &files() {
  static Files all;
  return all;
}

} // namespace

void noteInputFile(const std::string &path) {
  Files &all = files();
  const std::lock_guard<std::mutex> held(all.lock);
  all.paths.insert(path);
}

std::string readAs(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (!fs::is_regular_file(path, code))
    return "";
  Files &all = files();
  const std::lock_guard<std::mutex> held(all.lock);
  if (all.paths.count(path))
    return path;
  for (const std::string &read : all.paths)
    if (fs::equivalent(path, read, code))
      return read;
  return "";
}

} // namespace accel
