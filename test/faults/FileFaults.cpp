//===- FileFaults.cpp - Faults at file operations -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Preloaded into accel-run (LD_PRELOAD), this counts what a rank does to files
// below a folder, and lets one operation fail. Environment:
//
//   FAULTS_DIR   the folder; other files are left alone
//   FAULTS_LOG   each operation is a line "N NAME PATH" of FAULTS_LOG.RANK
//   FAULTS_RANK  the rank whose operation FAULTS_AT meets
//   FAULTS_AT    its number, from 1
//   FAULTS_MODE  kill (SIGKILL before it), hang (it never ends), short (half of
//                a write), or an errno: EIO, ENOSPC; with a + (ENOSPC+) from
//                then on
//   FAULTS_THREAD beside FAULTS_RANK: its thread of this number, from 1, cannot
//                be started
//   FAULTS_LOWER seconds since 1970: folders that were made before are of the
//                lower layer of an overlay, so that renaming one gives EXDEV
//
//===----------------------------------------------------------------------===//
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace {

template <typename F> F *next(const char *name) {
  return reinterpret_cast<F *>(dlsym(RTLD_NEXT, name));
}

std::string variable(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

class Faults {
public:
  Faults()
      : folder(variable("FAULTS_DIR")), mode(variable("FAULTS_MODE")),
        counts(!folder.empty() && getenv("RANK")) {
    if (!counts)
      return;
    before = atof(variable("FAULTS_LOWER").c_str());
    const std::string rank = variable("RANK"), log = variable("FAULTS_LOG");
    if (variable("FAULTS_RANK") == rank)
      at = atoi(variable("FAULTS_AT").c_str());
    persistent = !mode.empty() && mode.back() == '+';
    if (persistent)
      mode.pop_back();
    if (!log.empty())
      logged = next<int(const char *, int, ...)>("open")(
          (log + "." + rank).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
          0644);
  }

  bool has(const char *path) const {
    return counts && path &&
           folder.compare(0, std::string::npos, path, folder.size()) == 0;
  }
  bool has(int file) const {
    return counts && !pathOf(file).empty() && has(pathOf(file).c_str());
  }
  static std::string pathOf(int file) {
    char text[4096];
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    const ssize_t size = readlink(link.c_str(), text, sizeof(text));
    return size > 0 ? std::string(text, size) : std::string();
  }

  /// Renaming it would cross layers.
  bool isLower(const char *path) const {
    struct statx info{};
    return before > 0 && has(path) &&
           statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_TYPE,
                 &info) == 0 &&
           S_ISDIR(info.stx_mode) && (info.stx_mask & STATX_BTIME) &&
           static_cast<double>(info.stx_btime.tv_sec) +
                   1e-9 * info.stx_btime.tv_nsec <
               before;
  }

  enum Answer { Go = 0, Short = -1 }; // or an errno
  int meet(const char *name, const std::string &path) {
    const int number = ++count;
    if (logged >= 0) {
      const std::string line =
          std::to_string(number) + " " + name + " " + path + "\n";
      if (next<ssize_t(int, const void *, size_t)>("write")(logged, line.data(),
                                                            line.size()) < 0)
        return Go;
    }
    if (at <= 0 || (persistent ? number < at : number != at))
      return Go;
    if (mode == "kill") {
      kill(getpid(), SIGKILL);
      pause();
    }
    while (mode == "hang")
      pause();
    if (mode == "short")
      return Short;
    return mode == "ENOSPC" ? ENOSPC : EIO;
  }

private:
  std::string folder, mode;
  bool counts, persistent = false;
  double before = 0;
  int at = 0, logged = -1;
  std::atomic<int> count{0};
};

Faults &faults() {
  // What --nproc tries before its ranks are forked is of no rank.
  if (!getenv("RANK")) {
    static Faults *none = new Faults;
    return *none;
  }
  static Faults *one = new Faults; // used until the last moment
  return *one;
}

/// True if the operation fails, with errno set.
bool fails(const char *name, const std::string &path) {
  const int answer = faults().meet(name, path);
  if (answer <= 0)
    return false;
  errno = answer;
  return true;
}

template <typename Call>
int onPath(const char *name, const char *path, Call &&call) {
  if (faults().has(path) && fails(name, path))
    return -1;
  return call();
}

ssize_t writeSome(const char *name, int file, size_t &size) {
  if (!faults().has(file))
    return 0;
  const int answer = faults().meet(name, Faults::pathOf(file));
  if (answer > 0) {
    errno = answer;
    return -1;
  }
  if (answer == Faults::Short && size > 1)
    size /= 2;
  return 0;
}

int openFile(const char *real, const char *path, int flags, mode_t mode) {
  const bool writes = (flags & (O_CREAT | O_WRONLY | O_RDWR)) != 0;
  if (writes && faults().has(path) && fails("open", path))
    return -1;
  return next<int(const char *, int, ...)>(real)(path, flags, mode);
}

} // namespace

#define ACCEL_MODE(flags)                                                      \
  mode_t mode = 0;                                                             \
  if (flags & O_CREAT) {                                                       \
    va_list list;                                                              \
    va_start(list, flags);                                                     \
    mode = va_arg(list, mode_t);                                               \
    va_end(list);                                                              \
  }

extern "C" {

int pthread_create(pthread_t *thread, const pthread_attr_t *how,
                   void *(*run)(void *), void *with) {
  static std::atomic<int> started{0};
  const int at = atoi(variable("FAULTS_THREAD").c_str());
  if (at > 0 && variable("FAULTS_RANK") == variable("RANK") && ++started == at)
    return EAGAIN;
  return next<decltype(pthread_create)>("pthread_create")(thread, how, run,
                                                          with);
}
int open(const char *path, int flags, ...) {
  ACCEL_MODE(flags)
  return openFile("open", path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  ACCEL_MODE(flags)
  return openFile("open64", path, flags, mode);
}
ssize_t pwrite(int file, const void *data, size_t size, off_t offset) {
  if (writeSome("write", file, size) != 0)
    return -1;
  return next<ssize_t(int, const void *, size_t, off_t)>("pwrite")(
      file, data, size, offset);
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset) {
  if (writeSome("write", file, size) != 0)
    return -1;
  return next<ssize_t(int, const void *, size_t, off64_t)>("pwrite64")(
      file, data, size, offset);
}
int posix_fallocate(int file, off_t offset, off_t size) {
  const int answer =
      faults().has(file) ? faults().meet("reserve", Faults::pathOf(file)) : 0;
  return answer > 0 ? answer
                    : next<int(int, off_t, off_t)>("posix_fallocate")(
                          file, offset, size);
}
int posix_fallocate64(int file, off64_t offset, off64_t size) {
  const int answer =
      faults().has(file) ? faults().meet("reserve", Faults::pathOf(file)) : 0;
  return answer > 0 ? answer
                    : next<int(int, off64_t, off64_t)>("posix_fallocate64")(
                          file, offset, size);
}
int fsync(int file) {
  if (faults().has(file) && fails("sync", Faults::pathOf(file)))
    return -1;
  return next<int(int)>("fsync")(file);
}
int rename(const char *from, const char *to) {
  if (faults().isLower(from)) {
    errno = EXDEV;
    return -1;
  }
  return onPath("rename", to, [&] {
    return next<int(const char *, const char *)>("rename")(from, to);
  });
}
int renameat2(int fromFolder, const char *from, int toFolder, const char *to,
              unsigned flags) {
  if (faults().isLower(from) || faults().isLower(to)) {
    errno = EXDEV;
    return -1;
  }
  return onPath("exchange", to, [&] {
    return next<int(int, const char *, int, const char *, unsigned)>(
        "renameat2")(fromFolder, from, toFolder, to, flags);
  });
}
int mkdir(const char *path, mode_t mode) {
  return onPath("mkdir", path, [&] {
    return next<int(const char *, mode_t)>("mkdir")(path, mode);
  });
}
int unlink(const char *path) {
  return onPath("remove", path,
                [&] { return next<int(const char *)>("unlink")(path); });
}
int rmdir(const char *path) {
  return onPath("remove", path,
                [&] { return next<int(const char *)>("rmdir")(path); });
}
int remove(const char *path) {
  return onPath("remove", path,
                [&] { return next<int(const char *)>("remove")(path); });
}
int unlinkat(int folder, const char *path, int flags) {
  const std::string whole = folder == AT_FDCWD || path[0] == '/'
                                ? path
                                : Faults::pathOf(folder) + "/" + path;
  return onPath("remove", whole.c_str(), [&] {
    return next<int(int, const char *, int)>("unlinkat")(folder, path, flags);
  });
}
}
