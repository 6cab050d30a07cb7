//===- OutputModel.h - The folder of the trained model ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A job writes the trained model to `model` in its checkpoint folder and
// replaces what stands there. So that this is never the base model or somebody
// else's folder, each folder that accel-run writes holds a mark. The compiler
// and the runtime both refuse a job that would replace another one, and output
// files in the place of what a run itself writes.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_OUTPUTMODEL_H
#define ACCEL_RUNTIME_PLAN_OUTPUTMODEL_H

#include <cstring>
#include <filesystem>
#include <string>

namespace accel::plan {

constexpr const char *outputModel = "model";
/// {"format", "run", "step", "files"} of the training that wrote the folder.
constexpr const char *outputModelMark = "accel-run.json";

/// Other names in a run's folder: checkpoints are this and digits, the file
/// that names the run, and the one that a process locks.
constexpr const char *checkpointPrefix = "step-";
constexpr const char *runFile = "run.json";
constexpr const char *lockFile = ".lock";
/// Suffixes of what is being written, is replaced by one of the same name that
/// is not in its place yet, and is about to be removed. The last two are
/// removed when a run starts, so nobody gives them to a copy of their own.
constexpr const char *partialSuffix = ".partial";
constexpr const char *replacedSuffix = ".accel-run-replaced";
constexpr const char *removedSuffix = ".accel-run-removed";
/// The suffix of what accel-run takes out of its way and never removes.
constexpr const char *keptSuffix = ".kept";

/// Runs are named by 16 hexadecimal digits, those of converted checkpoints with
/// this before them.
constexpr const char *convertedRun = "converted-";
inline bool isRunName(const std::string &name) {
  const size_t digits =
      name.starts_with(convertedRun) ? std::strlen(convertedRun) : 0;
  return name.size() == digits + 16 &&
         name.find_first_not_of("0123456789abcdef", digits) ==
             std::string::npos;
}

/// True if `name` is a checkpoint's.
inline bool isCheckpointName(const std::string &name) {
  const size_t digits = std::strlen(checkpointPrefix);
  return name.rfind(checkpointPrefix, 0) == 0 && name.size() > digits &&
         name.size() <= digits + 18 &&
         name.find_first_not_of("0123456789", digits) == std::string::npos;
}

/// The name in a run's folder that something is written for, replaced under or
/// removed from.
inline std::string withoutSuffixes(std::string name) {
  for (const char *suffix : {removedSuffix, replacedSuffix, partialSuffix})
    if (name.ends_with(suffix))
      name.resize(name.size() - std::strlen(suffix));
  return name;
}

/// True if a trained model may take the place of `folder`: it is absent, empty,
/// or was written by accel-run. What others have added to it since is kept
/// elsewhere.
inline bool mayReplace(const std::filesystem::path &folder) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (!fs::exists(fs::symlink_status(folder, code)))
    return true;
  return fs::is_directory(folder, code) &&
         (fs::is_empty(folder, code) ||
          fs::is_regular_file(folder / outputModelMark, code));
}

/// The one spelling of a path, whether or not it exists; links are followed.
/// Of a relative path that does not exist weakly_canonical alone stays
/// relative.
inline std::filesystem::path canonicalPath(const std::filesystem::path &path) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::path whole = fs::absolute(path, code);
  fs::path one = fs::weakly_canonical(whole, code);
  if (code) // /dev/stdout is a link to a pipe, which has no path
    one = whole.lexically_normal();
  return one.has_filename() ? one : one.parent_path(); // a trailing slash
}

/// True if what is written to one path is read from the other: hard links too.
inline bool isSameFile(const std::filesystem::path &a,
                       const std::filesystem::path &b) {
  std::error_code code;
  return canonicalPath(a) == canonicalPath(b) ||
         std::filesystem::equivalent(a, b, code);
}

/// True if `path` is `folder` or lies in it; links are followed.
inline bool isWithin(const std::filesystem::path &path,
                     const std::filesystem::path &folder) {
  const std::filesystem::path inner = canonicalPath(path);
  const std::filesystem::path outer = canonicalPath(folder);
  auto i = inner.begin();
  for (auto o = outer.begin(); o != outer.end(); ++o, ++i) {
    if (i == inner.end() || *i != *o)
      return false;
  }
  return true;
}

/// Where `path` is, or lies in, what a run itself writes into its folder of
/// checkpoints, the name of that: the model, checkpoints, and the files by
/// which the folder counts, also while they are written and removed.
/// Otherwise "".
inline std::string ownName(const std::filesystem::path &path,
                           const std::filesystem::path &runFolder) {
  if (!isWithin(path, runFolder))
    return "";
  const std::filesystem::path inside =
      canonicalPath(path).lexically_relative(canonicalPath(runFolder));
  const std::string name = inside.begin()->string();
  const std::string kind = withoutSuffixes(name);
  const bool isOwn = isCheckpointName(kind) || kind == outputModel ||
                     kind == runFile || kind == lockFile;
  return isOwn ? name : "";
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_OUTPUTMODEL_H
