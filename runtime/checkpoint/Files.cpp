//===- Files.cpp - Writing that survives a crash --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Files.h"

#include "runtime/collectives/Progress.h"
#include "runtime/plan/Sha256.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::run {

namespace {
[[noreturn]] void fail(const std::string &path, int code) {
  throw FileError(path + ": " + std::strerror(code));
}
constexpr int64_t maxTransfer = int64_t(1) << 30;
} // namespace

File::File(const std::string &path, Mode mode) : name(path) {
  // Opening a pipe would wait for its other end.
  const int flags = mode == Mode::Read     ? O_RDONLY | O_NONBLOCK
                    : mode == Mode::Create ? O_WRONLY | O_CREAT | O_EXCL
                                           : O_WRONLY;
  fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (fd < 0)
    fail(path, errno);
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw FileError(path + ": is not a file");
  }
}

File::~File() {
  if (fd >= 0)
    ::close(fd);
}

int64_t File::size() const {
  struct stat info{};
  if (fstat(fd, &info) != 0)
    fail(name, errno);
  return info.st_size;
}

void File::readAt(int64_t offset, void *into, int64_t bytes) const {
  Progress::get().tick();
  char *at = static_cast<char *>(into);
  while (bytes > 0) {
    ssize_t n = pread(fd, at, std::min(bytes, maxTransfer), offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      fail(name, errno);
    if (n == 0)
      throw FileError(name + ": is truncated");
    at += n;
    offset += n;
    bytes -= n;
  }
}

void File::writeAt(int64_t offset, const void *from, int64_t bytes) {
  Progress::get().tick();
  const char *at = static_cast<const char *>(from);
  while (bytes > 0) {
    ssize_t n = pwrite(fd, at, std::min(bytes, maxTransfer), offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      fail(name, errno);
    if (digest) {
      if (offset != digested)
        throw FileError(name + ": is written out of order");
      digest->update({at, static_cast<size_t>(n)});
      digested += n;
    }
    at += n;
    offset += n;
    bytes -= n;
  }
}

void File::reserve(int64_t bytes) {
  int code = posix_fallocate(fd, 0, std::max<int64_t>(bytes, 1));
  // Some file systems cannot; then the writes will tell.
  if (code != 0 && code != EOPNOTSUPP && code != EINVAL)
    fail(name, code);
}

void File::sync() {
  if (fsync(fd) != 0)
    fail(name, errno);
}

void syncFolder(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    fail(path, errno);
  int code = fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (code != 0 && code != EINVAL) // not all file systems sync folders
    fail(path, code);
}

void renameDurably(const std::string &from, const std::string &to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    fail(to, errno);
  std::filesystem::path parent = std::filesystem::path(to).parent_path();
  syncFolder(parent.empty() ? "." : parent.string());
}

void replaceFolder(const std::string &from, const std::string &to,
                   const std::string &aside) {
  struct stat info{};
  if (lstat(to.c_str(), &info) != 0)
    return renameDurably(from, to);
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                RENAME_EXCHANGE) == 0) {
    const std::filesystem::path parent =
        std::filesystem::path(to).parent_path();
    syncFolder(parent.empty() ? "." : parent.string());
    return;
  }
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
    fail(to, errno);
  renameDurably(to, aside);
  renameDurably(from, to);
}

void writeTextDurably(const std::string &path, const std::string &text) {
  File file(path, File::Mode::Create);
  file.writeAt(0, text.data(), text.size());
  file.sync();
}

void makeFolders(const std::string &path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code)
    throw FileError(path + ": " + code.message());
}

void removeQuietly(const std::string &path) noexcept {
  std::error_code code;
  std::filesystem::remove_all(path, code);
}

} // namespace accel::run
