//===- Threads.h - The CPUs that a rank computes on -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_THREADS_H
#define ACCEL_TOOLS_ACCEL_RUN_THREADS_H

#include "runtime/collectives/Environment.h"
#include "tools/accel-run/Options.h"

#include <string>
#include <vector>

namespace accel::run {

/// The numbers of "0-3,8,10-11", as Linux lists CPUs; empty for another text.
std::vector<int> parseCpuList(const std::string &text);

/// The CPUs of `available` that local rank `rank` of `ranks` gets: with Cores
/// equal parts, one after the other; with Numa those of its node, where `nodes`
/// are the CPUs of each and neighbouring ranks share one. Empty where there are
/// not enough.
std::vector<int> cpusOf(Bind bind, const std::vector<int> &available,
                        const std::vector<std::vector<int>> &nodes, int rank,
                        int ranks);

/// Binds this process, sets the number of compute threads, unless
/// OMP_NUM_THREADS does, and warns, once a machine, where its ranks have more
/// threads than CPUs. Before any other thread starts. Throws
/// std::runtime_error where it cannot be bound. True if they have more.
bool placeThreads(const Environment &environment, Bind bind);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_THREADS_H
