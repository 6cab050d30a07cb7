//===- Progress.cpp - What is done of a search ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Text/Progress.h"

#include <cstdio>
#include <unistd.h>

namespace accel {

Progress::Progress(std::string what)
    : what(std::move(what)), begin(std::chrono::steady_clock::now()),
      terminal(isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (shown)
    std::fputs("\r\033[K", stderr);
}

void Progress::show(int64_t done, int64_t of) {
  constexpr std::chrono::seconds quiet(2);
  constexpr int64_t width = 30;
  if (!terminal || of < 1 || std::chrono::steady_clock::now() - begin < quiet)
    return;
  shown = true;
  const auto full = static_cast<size_t>(done * width / of);
  const std::string bar =
      std::string(full, '#') + std::string(width - full, '.');
  std::fprintf(stderr, "\r  %s [%s] %lld of %lld", what.c_str(), bar.c_str(),
               static_cast<long long>(done), static_cast<long long>(of));
}

} // namespace accel
