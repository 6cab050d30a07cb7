//===- Progress.h - What is done of a search --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_TEXT_PROGRESS_H
#define ACCEL_TOOLS_DRIVER_TEXT_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <string>

namespace accel {

/// A bar on a terminal's standard error, from two seconds on; its line is
/// empty again in the end.
class Progress {
public:
  explicit Progress(std::string what);
  ~Progress();
  void show(int64_t done, int64_t of);

  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

private:
  std::string what;
  std::chrono::steady_clock::time_point begin;
  bool terminal = false, shown = false;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_TEXT_PROGRESS_H
