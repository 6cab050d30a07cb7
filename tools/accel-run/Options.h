//===- Options.h - accel-run's command line ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_OPTIONS_H
#define ACCEL_TOOLS_ACCEL_RUN_OPTIONS_H

#include "runtime/storage/TransferQueue.h"
#include "tools/options/ExitCode.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace accel::run {

/// What to do at a step whose loss or gradients are not finite.
enum class OnNan { Stop, Skip };
const char *toString(OnNan onNan);

/// Which CPUs the threads of a rank run on: all, an equal part of them, or
/// those of a NUMA node.
enum class Bind { None, Cores, Numa };

/// Paths that are not given are empty.
struct Options {
  std::string plan;
  std::optional<int64_t> nproc; // unset: a launcher, or alone
  std::optional<int64_t> steps; // unset: the plan's
  std::string resume;           // "", "auto" or a path
  std::optional<OnNan> onNan;   // unset: the plan's
  std::string log, profile, summary, out, calibrate, fit;
  bool calibrates() const { return !calibrate.empty() || !fit.empty(); }
  int64_t shardLimitBytes = 5'000'000'000;
  Bind bind = Bind::None;
  DiskIo diskIo = DiskIo::Auto;
  bool debugNan = false; // search the operator
  /// Kernels whose results do not vary, whatever the plan says.
  bool deterministic = false;
};

/// Options that each rank must be given alike, and their values: they change
/// which collectives a rank issues, what it computes or what is written. All
/// others are each rank's own, or rank 0's alone. `profilesTogether`: all ranks
/// take part in a profile of this plan.
std::map<std::string, std::string> sharedOptions(const Options &options,
                                                 bool profilesTogether);

/// Reads argv[1...]. False where help or the version was printed (`exitCode`
/// 0), or the command line is wrong, which was printed (64).
bool parseOptions(const std::vector<std::string> &arguments, Options &options,
                  int &exitCode);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_OPTIONS_H
