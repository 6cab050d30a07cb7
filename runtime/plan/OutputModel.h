//===- OutputModel.h - The folder of the trained model ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A job writes the trained model to `model` in its checkpoint folder and
// replaces what stands there. So that this is never the base model or somebody
// else's folder, each folder that accel-run writes holds a mark. The compiler
// and the runtime both refuse a job that would replace another one.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_OUTPUTMODEL_H
#define ACCEL_RUNTIME_PLAN_OUTPUTMODEL_H

#include <filesystem>
#include <string>

namespace accel::plan {

constexpr const char *outputModel = "model";
/// {"format", "run", "step"} of the training that wrote the folder.
constexpr const char *outputModelMark = "accel-run.json";

/// True if nothing is lost when `folder` is replaced: it is absent, empty, or
/// was written by accel-run.
inline bool mayReplace(const std::filesystem::path &folder) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (!fs::exists(fs::symlink_status(folder, code)))
    return true;
  return fs::is_directory(folder, code) &&
         (fs::is_empty(folder, code) ||
          fs::is_regular_file(folder / outputModelMark, code));
}

/// True if `path` is `folder` or lies in it; links are followed.
inline bool isWithin(const std::filesystem::path &path,
                     const std::filesystem::path &folder) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::path inner = fs::weakly_canonical(path, code);
  const fs::path outer = fs::weakly_canonical(folder, code);
  auto i = inner.begin();
  for (auto o = outer.begin(); o != outer.end(); ++o, ++i) {
    if (o->empty()) // a trailing slash
      break;
    if (i == inner.end() || *i != *o)
      return false;
  }
  return true;
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_OUTPUTMODEL_H
