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
#include <vector>

namespace accel::run {

namespace fs = std::filesystem;

namespace {
[[noreturn]] void fail(const std::string &path, int code) {
  throw FileError(path + ": " + std::strerror(code));
}
constexpr int64_t maxTransfer = int64_t(1) << 30;

std::string parentOf(const std::string &path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

/// A file, link or folder; its name is durable once the folder is synced.
void copyDurably(const fs::path &from, const fs::path &to) {
  std::error_code code;
  const fs::file_status status = fs::symlink_status(from, code);
  if (fs::is_symlink(status)) {
    fs::copy_symlink(from, to, code);
  } else if (fs::is_directory(status)) {
    makeFolders(to.string());
    std::vector<fs::path> entries;
    for (const fs::directory_entry &entry : fs::directory_iterator(from, code))
      entries.push_back(entry.path());
    for (const fs::path &path : entries)
      copyDurably(path, to / path.filename());
    syncFolder(to.string());
  } else {
    fs::copy_file(from, to, code);
    int fd = code ? -1 : ::open(to.c_str(), O_WRONLY | O_CLOEXEC);
    if (!code && fd < 0)
      fail(to.string(), errno);
    if (fd >= 0) {
      const int synced = fsync(fd) == 0 ? 0 : errno;
      ::close(fd);
      if (synced != 0)
        fail(to.string(), synced);
    }
  }
  if (code)
    throw FileError(to.string() + ": " + code.message());
}
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

bool tryRename(const std::string &from, const std::string &to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    if (errno == EXDEV)
      return false;
    fail(to, errno);
  }
  syncFolder(parentOf(to));
  return true;
}

void renameDurably(const std::string &from, const std::string &to) {
  if (!tryRename(from, to))
    throw FileError(from + " cannot be renamed to " + to +
                    ": they are on different file systems, or in different "
                    "layers of one; give a folder that is on one, with "
                    "--out DIR");
}

void removeInPlace(const std::string &folder, const FolderMark &mark) {
  const bool markFirst = mark.says == FolderMark::Says::Complete;
  const fs::path marked = fs::path(folder) / mark.file;
  std::vector<fs::path> rest;
  std::error_code code;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, code))
    if (entry.path() != marked)
      rest.push_back(entry.path());
  auto remove = [&](const fs::path &path) {
    if (!code)
      fs::remove_all(path, code);
    if (code)
      throw FileError(path.string() + ": " + code.message());
  };
  if (markFirst) {
    remove(marked);
    syncFolder(folder);
  }
  for (const fs::path &path : rest)
    remove(path);
  if (!markFirst) {
    syncFolder(folder);
    remove(marked);
  }
  remove(folder);
  syncFolder(parentOf(folder));
}

void moveFolder(const std::string &from, const std::string &to,
                const FolderMark &mark) {
  if (tryRename(from, to))
    return;
  const bool markLast = mark.says == FolderMark::Says::Complete;
  std::error_code code;
  auto copyMark = [&] {
    const fs::path marked = fs::path(from) / mark.file;
    if (fs::exists(marked, code)) // not in an empty folder
      copyDurably(marked, fs::path(to) / mark.file);
    syncFolder(to);
  };
  makeFolders(to);
  if (!markLast)
    copyMark();
  for (const fs::directory_entry &entry : fs::directory_iterator(from, code))
    if (entry.path().filename() != mark.file)
      copyDurably(entry.path(), fs::path(to) / entry.path().filename());
  if (code)
    throw FileError(from + ": " + code.message());
  syncFolder(to);
  if (markLast)
    copyMark();
  syncFolder(parentOf(to));
  removeInPlace(from, mark);
}

void replaceFolder(const std::string &from, const std::string &to,
                   const std::string &aside, const FolderMark &mark) {
  struct stat info{};
  if (lstat(to.c_str(), &info) != 0)
    return renameDurably(from, to);
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                RENAME_EXCHANGE) == 0)
    return syncFolder(parentOf(to));
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP &&
      errno != EXDEV)
    fail(to, errno);
  moveFolder(to, aside, mark);
  renameDurably(from, to);
}

std::string sha256Of(const File &file) {
  const int64_t bytes = file.size();
  plan::Sha256 hash;
  std::vector<char> buffer(std::min<int64_t>(bytes, 4 << 20));
  for (int64_t at = 0; at < bytes;) {
    const int64_t n = std::min<int64_t>(buffer.size(), bytes - at);
    file.readAt(at, buffer.data(), n);
    hash.update({buffer.data(), static_cast<size_t>(n)});
    at += n;
  }
  return hash.hexDigest();
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
