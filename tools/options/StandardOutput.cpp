//===- StandardOutput.cpp - What was printed is written -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/options/StandardOutput.h"

#include "tools/options/ExitCode.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace accel {

int checkStandardOutput(const char *program, int code, BrokenPipe brokenPipe) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return code;
  // The write that failed may be long ago: one more has its reason again.
  std::clearerr(stdout);
  std::fputc('\n', stdout);
  const bool failed = std::fflush(stdout) != 0;
  const int reason = failed ? errno : 0;
  if (reason == EPIPE && brokenPipe == BrokenPipe::Ignored)
    return code;
  std::fprintf(stderr, "%s: error: cannot write to standard output%s%s\n",
               program, failed ? ": " : "",
               failed ? std::strerror(reason) : "");
  return code == exitOk || code == exitDoesNotFit ? exitInvalid : code;
}

} // namespace accel
