//===- PlanFile.cpp - Plan files on disk ----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanJson.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::plan {

namespace {
/// A plan of 405B parameters has 2 MB; what is much larger is something else.
constexpr int64_t maxPlanFileBytes = int64_t(256) << 20;

std::string reason() { return std::strerror(errno); }

class Descriptor {
public:
  explicit Descriptor(int fd) : fd(fd) {}
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  int release() {
    int result = fd;
    fd = -1;
    return result;
  }
  int fd;
};

bool writeAll(int fd, const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      errno = n == 0 ? ENOSPC : errno;
      return false;
    }
    done += n;
  }
  return true;
}

} // namespace

bool readPlan(const std::string &path, Plan &plan, std::string &error) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) {
    error = path + ": cannot open the plan: " + reason();
    return false;
  }
  if (S_ISDIR(status.st_mode)) {
    error = path + ": this is a folder, not a plan";
    return false;
  }
  std::string text;
  char chunk[65536];
  while (true) {
    ssize_t n = ::read(file.fd, chunk, sizeof(chunk));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      error = path + ": cannot read the plan: " + reason();
      return false;
    }
    if (n == 0)
      break;
    text.append(chunk, n);
    if (static_cast<int64_t>(text.size()) > maxPlanFileBytes) {
      error = path + ": too large to be a plan";
      return false;
    }
  }
  if (fromJson(text, plan, error))
    return true;
  error = path + ": " + error;
  return false;
}

namespace {
/// Where a file is written: beside what it replaces.
struct Place {
  std::string path; // not of a link, but of what it points to
  mode_t mode = 0;
  bool isReplaced = true; // false: a pipe or a terminal, which is written to
};

std::optional<Place> placeOf(const std::string &wanted, std::string &error) {
  Place place;
  place.path = wanted;
  struct stat status;
  // mkostemp makes private files; a plan is as public as any other output, and
  // a file that is replaced stays as public as it was.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  place.mode = 0666 & ~mask;
  if (::stat(wanted.c_str(), &status) != 0)
    return place;
  if (S_ISDIR(status.st_mode)) {
    error = wanted + ": cannot write the file: a folder has this name";
    return std::nullopt;
  }
  place.isReplaced = S_ISREG(status.st_mode);
  place.mode = status.st_mode & 07777;
  if (char *resolved =
          place.isReplaced ? ::realpath(wanted.c_str(), nullptr) : nullptr) {
    place.path = resolved;
    ::free(resolved);
  }
  return place;
}

/// A new file beside `path`, whose name is put in `temporary`.
int makeBeside(const std::string &path, std::string &temporary,
               std::string &error) {
  temporary = path + ".tmp-XXXXXX";
  const int file = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0)
    error = path + ": cannot create the file: " + reason();
  return file;
}
} // namespace

bool canWriteFile(const std::string &path, std::string &error) {
  const std::optional<Place> place = placeOf(path, error);
  if (!place || !place->isReplaced)
    return place.has_value();
  std::string temporary;
  const Descriptor file(makeBeside(place->path, temporary, error));
  if (file.fd >= 0)
    ::unlink(temporary.c_str());
  return file.fd >= 0;
}

bool writeFileAtomically(const std::string &wanted, const std::string &text,
                         std::string &error,
                         const std::function<void(int)> &before) {
  const std::optional<Place> place = placeOf(wanted, error);
  if (!place)
    return false;
  const std::string &path = place->path;
  if (!place->isReplaced) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.fd >= 0 && writeAll(file.fd, text))
      return true;
    error = path + ": cannot write the file: " + reason();
    return false;
  }
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  std::string temporary;
  Descriptor file(makeBeside(path, temporary, error));
  if (file.fd < 0)
    return false;
  auto fail = [&](const char *what) {
    error = path + ": cannot " + what + ": " + reason();
    ::unlink(temporary.c_str());
    return false;
  };
  if (::fchmod(file.fd, place->mode) != 0 || !writeAll(file.fd, text) ||
      ::fsync(file.fd) != 0)
    return fail("write the file");
  if (before)
    before(file.fd);
  // Some file systems report a full disk only now.
  if (::close(file.release()) != 0 ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    error = path + ": cannot write the file: " + reason();
    ::unlink(temporary.c_str());
    return false;
  }
  // The rename itself must survive a crash; where a folder cannot be synced
  // (some network file systems) the file is still complete.
  Descriptor directory(
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.fd >= 0)
    ::fsync(directory.fd);
  return true;
}

} // namespace accel::plan
