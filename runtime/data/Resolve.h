//===- Resolve.h - What files of data have in common ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_DATA_RESOLVE_H
#define ACCEL_RUNTIME_DATA_RESOLVE_H

#include "runtime/data/TokenFile.h"

#include <filesystem>
#include <string>

namespace accel::run {

/// A path of a plan whose folder is `baseDir`.
inline std::string resolvePath(const std::string &path,
                               const std::string &baseDir) {
  const std::filesystem::path given(path);
  return given.is_absolute()
             ? path
             : (std::filesystem::path(baseDir) / given).string();
}

/// That element `at` is not below `limit`; `name` is the array's, or empty for
/// tokens.
std::string outsideText(const TokenFile &file, int64_t at, int64_t limit,
                        const std::string &name);

} // namespace accel::run

#endif // ACCEL_RUNTIME_DATA_RESOLVE_H
