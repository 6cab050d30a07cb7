//===- ScratchFile.cpp - A rank's file for states -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/storage/ScratchFile.h"

#include "runtime/plan/DiskLayout.h"
#include "runtime/storage/FileError.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace accel::run {

ScratchFile::ScratchFile(const std::string &folder, int rank, int64_t bytes) {
  const std::string whose =
      folder + ": the file for states of rank " + std::to_string(rank);
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code)
    throw FileError(folder + ": cannot be made for states of rank " +
                    std::to_string(rank) + ": " + code.message());
  std::string path =
      folder + "/accel-run-rank-" + std::to_string(rank) + "-XXXXXX";
  fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0)
    throw FileError(whose + " cannot be made: " + std::strerror(errno));
  unlink(path.c_str());
  name = whose;
  try {
    reserve(folder, bytes);
    tryDirect();
  } catch (...) {
    close(fd);
    throw;
  }
}

ScratchFile::~ScratchFile() {
  if (fd >= 0)
    close(fd);
}

void ScratchFile::reserve(const std::string &folder, int64_t bytes) {
  struct statvfs system = {};
  const bool known = fstatvfs(fd, &system) == 0;
  const auto available =
      static_cast<int64_t>(system.f_bavail * system.f_frsize);
  const std::string whole = std::to_string(bytes) + " bytes";
  auto tooSmall = [&] {
    return FileError(
        name + " takes " + whole + ", and " +
        (known ? std::to_string(available) + " are" : std::string("less is")) +
        " free there: make room in " + folder +
        ", or give another folder as the path of nvme");
  };
  if (known && available < bytes)
    throw tooSmall();
  const int code = bytes > 0 ? posix_fallocate(fd, 0, bytes) : 0;
  if (code == ENOSPC) // other ranks have taken it
    throw tooSmall();
  if (code != 0)
    throw FileError(name + " cannot have " + whole + ": " +
                    std::strerror(code));
}

/// A file system says in fcntl, or at the first write, that it takes none.
void ScratchFile::tryDirect() {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) != 0)
    return;
  direct = true;
  struct stat file = {};
  if (fstat(fd, &file) != 0 || file.st_size < plan::diskAlignment)
    return;
  const auto page = static_cast<size_t>(plan::diskAlignment);
  const std::unique_ptr<void, decltype(&std::free)> zeros(
      std::aligned_alloc(page, page), &std::free);
  std::memset(zeros.get(), 0, page);
  if (pwrite(fd, zeros.get(), page, 0) != static_cast<ssize_t>(page))
    leaveDirect();
}

void ScratchFile::leaveDirect() {
  if (!direct)
    return;
  direct = false;
  if (const int flags = fcntl(fd, F_GETFL); flags >= 0)
    fcntl(fd, F_SETFL, flags & ~O_DIRECT);
}

int64_t ScratchFile::bytes() const {
  struct stat file = {};
  return fstat(fd, &file) == 0 ? file.st_size : 0;
}

} // namespace accel::run
