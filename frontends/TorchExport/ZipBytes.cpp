//===- ZipBytes.cpp - What minizip reads a zip from -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/ZipBytes.h"
#include "frontends/Diagnostics/InputFiles.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::torchexport {

namespace {
constexpr uint64_t windowBytes = 64 << 10;

/// pread that goes on after signals and short reads; negative on errors.
int64_t readAt(int file, char *into, uint64_t size, uint64_t at) {
  uint64_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(file, into + done, size - done, at + done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return -1;
    if (got == 0)
      break;
    done += uint64_t(got);
  }
  return int64_t(done);
}
} // namespace

std::unique_ptr<ZipBytes> ZipBytes::ofFile(const std::string &path,
                                           int64_t begin, int64_t bytes,
                                           std::string &error) {
  std::unique_ptr<ZipBytes> source(new ZipBytes);
  // Without O_NONBLOCK, opening a pipe waits for who writes.
  source->file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (source->file < 0 || ::fstat(source->file, &status) != 0) {
    error = std::strerror(errno);
    return nullptr;
  }
  if (!S_ISREG(status.st_mode)) {
    error = "Not a regular file";
    return nullptr;
  }
  noteInputFile(path);
  const uint64_t all = uint64_t(status.st_size);
  source->begin = std::min(uint64_t(std::max<int64_t>(begin, 0)), all);
  source->size = all - source->begin;
  if (bytes >= 0)
    source->size = std::min(source->size, uint64_t(bytes));
  return source;
}

std::unique_ptr<ZipBytes> ZipBytes::ofMemory(std::string_view bytes) {
  std::unique_ptr<ZipBytes> source(new ZipBytes);
  source->window = bytes;
  source->size = bytes.size();
  return source;
}

ZipBytes::~ZipBytes() {
  if (file >= 0)
    ::close(file);
}

bool ZipBytes::fill() {
  if (at >= windowAt && at - windowAt < window.size())
    return true;
  // A directory is read forwards, and found backwards: the window starts at a
  // multiple of its size.
  windowAt = at / windowBytes * windowBytes;
  buffer.resize(std::min(windowBytes, size - windowAt));
  const int64_t got =
      readAt(file, buffer.data(), buffer.size(), begin + windowAt);
  failed |= got < 0;
  window = std::string_view(buffer.data(), got < 0 ? 0 : size_t(got));
  return at - windowAt < window.size();
}

uint64_t ZipBytes::read(char *into, uint64_t bytes) {
  uint64_t done = 0;
  while (done < bytes && at < size && fill()) {
    const std::string_view some =
        window.substr(size_t(at - windowAt), size_t(bytes - done));
    std::memcpy(into + done, some.data(), some.size());
    done += some.size();
    at += some.size();
  }
  return done;
}

zlib_filefunc64_def ZipBytes::functions() {
  zlib_filefunc64_def made = {};
  made.opaque = this;
  made.zopen64_file = [](voidpf opaque, const void *, int) { return opaque; };
  made.zread_file = [](voidpf, voidpf stream, void *into, uLong bytes) {
    return uLong(static_cast<ZipBytes *>(stream)->read(
        static_cast<char *>(into), bytes));
  };
  made.zwrite_file = [](voidpf, voidpf, const void *, uLong) {
    return uLong(0);
  };
  made.ztell64_file = [](voidpf, voidpf stream) {
    return ZPOS64_T(static_cast<ZipBytes *>(stream)->at);
  };
  made.zseek64_file = [](voidpf, voidpf stream, ZPOS64_T offset, int origin) {
    auto *self = static_cast<ZipBytes *>(stream);
    const uint64_t from = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                          : origin == ZLIB_FILEFUNC_SEEK_CUR ? self->at
                                                             : self->size;
    if (offset > self->size || from > self->size - offset)
      return -1l;
    self->at = from + offset;
    return 0l;
  };
  made.zclose_file = [](voidpf, voidpf) { return 0; };
  made.zerror_file = [](voidpf, voidpf stream) {
    return int(static_cast<ZipBytes *>(stream)->failed);
  };
  return made;
}

} // namespace accel::torchexport
