//===- StaticLibc.cpp - What a static program does without ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Linked statically, glibc still loads shared libraries for some functions:
// those of dlopen, and the modules of nsswitch.conf for users. They bring the C
// library of the machine that it runs on into a process that has another one.
// LLVM's Support calls both kinds; here they say that there is nothing. $HOME
// names the home folder, and plugins of mlir-opt were built against other
// copies of MLIR than the one in here.
//
//===----------------------------------------------------------------------===//
#include <cerrno>
#include <cstdint>
#include <dlfcn.h>
#include <malloc.h>
#include <pwd.h>

extern "C" {
// The prototypes are glibc's, with its exception specifications.
void *dlopen(const char *, int) noexcept { return nullptr; }
void *dlsym(void *__restrict, const char *__restrict) noexcept {
  return nullptr;
}
int dlclose(void *) noexcept { return -1; }
char *dlerror() noexcept {
  static char text[] = "accel-opt is linked statically and loads no libraries";
  return text;
}

int getpwnam_r(const char *, struct passwd *, char *, size_t,
               struct passwd **found) {
  *found = nullptr;
  return ENOENT;
}
int getpwuid_r(uid_t, struct passwd *, char *, size_t, struct passwd **found) {
  *found = nullptr;
  return ENOENT;
}

// jemalloc has no mallinfo2, and that of glibc would bring its malloc.
int mallctl(const char *name, void *old, size_t *oldBytes, void *value,
            size_t valueBytes);
struct mallinfo2 mallinfo2() noexcept {
  struct mallinfo2 info = {};
  // The numbers are those of the last epoch.
  uint64_t epoch = 1;
  size_t bytes = sizeof(epoch), allocated = 0;
  mallctl("epoch", &epoch, &bytes, &epoch, sizeof(epoch));
  bytes = sizeof(allocated);
  if (mallctl("stats.allocated", &allocated, &bytes, nullptr, 0) == 0)
    info.uordblks = allocated;
  return info;
}
}
