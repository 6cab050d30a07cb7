//===- LineLock.h - One run writes to a file of lines -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_LINELOCK_H
#define ACCEL_TOOLS_ACCEL_RUN_LINELOCK_H

#include <string>
#include <utility>

namespace accel::run {

/// 1 or 2 where standard output or error goes to the regular file at `path`,
/// else -1. What a program says stands in it: it is added to through that
/// descriptor alone, and nothing of it is read back or replaced.
int standardStreamOf(const std::string &path);

/// One run writes to a log or to predictions at a time: rank 0, or the one that
/// is alone, holds this from before it trains until it ends. A pipe, a device
/// and standard output have no lock, and on a file system that has none nobody
/// is kept out.
class LineLock {
public:
  LineLock() = default;
  /// Makes the file, which stays empty; nothing for an empty path, and where
  /// the file cannot be opened: who writes to it says so. Throws FileError,
  /// with `name` ("--log") before the path and `fix` at the end, where another
  /// run has the lock.
  LineLock(const std::string &name, const std::string &path,
           const std::string &fix);
  LineLock(LineLock &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  LineLock &operator=(LineLock &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~LineLock();
  /// plan::writeFileAtomically of the file that is held: the new one is held
  /// before it has its name.
  bool replaceFile(const std::string &path, const std::string &text,
                   std::string &error);

private:
  int fd = -1;
};

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_LINELOCK_H
