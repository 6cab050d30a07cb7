//===- RuntimeRanks.h - Ranks as child processes ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_RUNTIMERANKS_H
#define ACCEL_TEST_UNIT_RUNTIMERANKS_H

#include "runtime/collectives/Groups.h"

#include <functional>
#include <vector>

namespace accel::test {

/// Runs `body` in one forked process a rank of `plan` (LibTorch's threads do
/// not survive a fork, so the tests' own process starts none) and returns what
/// each returned. An exception or a signal is a test failure.
std::vector<std::vector<double>>
onRanks(const plan::Plan &plan,
        const std::function<std::vector<double>(run::Groups &)> &body);

/// The same in one process without a job.
std::vector<double> inChild(const std::function<std::vector<double>()> &body);

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_RUNTIMERANKS_H
