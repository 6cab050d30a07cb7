//===- LineLock.cpp - One run writes to a file of lines -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/LineLock.h"

#include "runtime/plan/PlanJson.h"
#include "runtime/storage/FileError.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::run {

/// Whether `path` still names the open file.
static bool isAt(const std::string &path, int fd) {
  struct stat named{}, open{};
  return stat(path.c_str(), &named) == 0 && fstat(fd, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

int standardStreamOf(const std::string &path) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open{};
    if (fstat(stream, &open) == 0 && S_ISREG(open.st_mode) &&
        isAt(path, stream))
      return stream;
  }
  return -1;
}

LineLock::LineLock(const std::string &name, const std::string &path,
                   const std::string &fix) {
  struct stat status{};
  if (path.empty() || standardStreamOf(path) >= 0 ||
      (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)))
    return;
  // The holder may just have put another file in its place. (Some file systems
  // give a file another number each time.)
  for (int tries = 0; tries < 10 && (fd < 0 || !isAt(path, fd)); ++tries) {
    if (fd >= 0)
      ::close(fd);
    fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
      return;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(fd);
      throw FileError(name + " " + path +
                      ": another accel-run writes to this file; wait for its "
                      "end, or " +
                      fix);
    }
    // Other errors: a file system without locks.
  }
}

LineLock::~LineLock() {
  if (fd >= 0)
    ::close(fd);
}

bool LineLock::replaceFile(const std::string &path, const std::string &text,
                           std::string &error) {
  int next = -1;
  const bool done = plan::writeFileAtomically(path, text, error, [&](int file) {
    if (fd >= 0)
      next = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (next >= 0)
      flock(next, LOCK_EX | LOCK_NB); // nobody else knows this file
  });
  if (done && next >= 0)
    std::swap(fd, next);
  if (next >= 0)
    ::close(next);
  return done;
}

} // namespace accel::run
