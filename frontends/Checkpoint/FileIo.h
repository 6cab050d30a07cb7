//===- FileIo.h - Files that are read and written at places -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_FILEIO_H
#define ACCEL_FRONTENDS_CHECKPOINT_FILEIO_H

#include "frontends/Checkpoint/Interrupts.h"
#include "frontends/Diagnostics/Diagnostics.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace accel::checkpoint {

/// Bytes that are copied at once.
constexpr size_t bufferBytes = size_t(4) << 20;

/// An open file; errno says why its last operation failed.
class File {
public:
  File(const std::string &path, int flags)
      : fd(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~File() {
    if (fd >= 0)
      ::close(fd);
  }
  File(const File &) = delete;
  bool good() const { return fd >= 0; }

  bool write(std::string_view bytes, int64_t at) {
    while (!bytes.empty()) {
      if (interrupted)
        return errno = EINTR, false;
      const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), at);
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return errno = n == 0 ? ENOSPC : errno, false;
      bytes.remove_prefix(size_t(n));
      at += n;
    }
    return true;
  }
  /// Bytes read; fewer than asked for at the end of the file, -1: failed.
  ssize_t read(char *into, size_t bytes, int64_t at) {
    if (interrupted)
      return errno = EINTR, -1;
    ssize_t n;
    do
      n = ::pread(fd, into, bytes, at);
    while (n < 0 && errno == EINTR);
    return n;
  }
  bool sync() { return ::fsync(fd) == 0; }

private:
  int fd;
};

/// Reports that `path` cannot be written, as errno says; where the disk is full
/// also how many bytes all tensors of the folder take. False.
inline bool reportUnwritten(const std::string &path, int64_t folderBytes,
                            DiagnosticEngine &diagnostics) {
  const int why = errno;
  diagnostics.error("write-failed", path, std::strerror(why),
                    why == ENOSPC ? "the tensors take " +
                                        std::to_string(folderBytes) + " bytes"
                                  : "");
  return false;
}

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_FILEIO_H
