//===- Options.h - accel-run's command line ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_OPTIONS_H
#define ACCEL_TOOLS_ACCEL_RUN_OPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

namespace accel::run {

constexpr int exitInvalid = 1, exitUnsupported = 4, exitUsage = 64;

struct Options {
  std::string plan;
  int nproc = 0;              // 0: a launcher, or alone
  int64_t steps = -1;         // -1: the plan's
  std::string resume;         // "", "auto" or a path
  std::string onNan = "stop"; // or "skip"
  std::string log, profile, summary, out;
  int64_t shardLimit = 5'000'000'000;
  bool help = false, version = false;
};

/// Reads argv[1...]; false with one sentence in `error` on a usage error.
bool parseOptions(const std::vector<std::string> &arguments, Options &options,
                  std::string &error);
const char *usage();

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_OPTIONS_H
