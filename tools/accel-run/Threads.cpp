//===- Threads.cpp - The CPUs that a rank computes on ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Threads.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <stdexcept>

namespace accel::run {

namespace {

/// More CPUs than a machine has.
constexpr int mostCpus = 1 << 14;

/// A set of CPUs of any size, as the kernel has it.
struct CpuSet {
  std::vector<cpu_set_t> words = std::vector<cpu_set_t>(mostCpus / CPU_SETSIZE);
  size_t bytes() const { return words.size() * sizeof(cpu_set_t); }
};

std::vector<int> availableCpus() {
  CpuSet set;
  std::vector<int> result;
  if (sched_getaffinity(0, set.bytes(), set.words.data()) == 0)
    for (int cpu = 0; cpu < mostCpus; ++cpu)
      if (CPU_ISSET_S(cpu, set.bytes(), set.words.data()))
        result.push_back(cpu);
  return result.empty() ? std::vector<int>{0} : result;
}

std::vector<std::vector<int>> numaNodes() {
  std::vector<std::vector<int>> nodes;
  for (int node = 0; node < mostCpus; ++node) {
    std::ifstream file("/sys/devices/system/node/node" + std::to_string(node) +
                       "/cpulist");
    std::string text;
    if (!std::getline(file, text))
      break;
    nodes.push_back(parseCpuList(text));
  }
  return nodes;
}

} // namespace

std::vector<int> parseCpuList(const std::string &text) {
  std::vector<int> cpus;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    int first = 0, last = 0;
    auto [next, bad] = std::from_chars(at, end, first);
    if (bad != std::errc())
      return {};
    last = first;
    if (next < end && *next == '-') {
      auto [after, wrong] = std::from_chars(next + 1, end, last);
      if (wrong != std::errc())
        return {};
      next = after;
    }
    if (first < 0 || last < first || last >= mostCpus ||
        (next < end && *next != ','))
      return {};
    for (int cpu = first; cpu <= last; ++cpu)
      cpus.push_back(cpu);
    at = next + 1;
  }
  return cpus;
}

std::vector<int> cpusOf(Bind bind, const std::vector<int> &available,
                        const std::vector<std::vector<int>> &nodes, int rank,
                        int ranks) {
  if (bind == Bind::None)
    return available;
  if (bind == Bind::Cores) {
    const size_t begin = available.size() * rank / ranks;
    const size_t end = available.size() * (rank + 1) / ranks;
    return {available.begin() + begin, available.begin() + end};
  }
  std::vector<std::vector<int>> usable;
  for (const std::vector<int> &node : nodes) {
    std::vector<int> both;
    for (int cpu : node)
      if (std::find(available.begin(), available.end(), cpu) != available.end())
        both.push_back(cpu);
    if (!both.empty())
      usable.push_back(std::move(both));
  }
  if (usable.empty())
    return {};
  return usable[usable.size() * rank / ranks];
}

bool placeThreads(const Environment &environment, Bind bind) {
  const std::vector<int> available = availableCpus();
  const int ranks = environment.localSize;
  const std::vector<int> own =
      cpusOf(bind, available,
             bind == Bind::Numa ? numaNodes() : std::vector<std::vector<int>>(),
             environment.localRank, ranks);
  if (own.empty())
    throw std::runtime_error(
        bind == Bind::Numa
            ? "--bind numa: the system tells no NUMA node of these CPUs"
            : "--bind cores: " + std::to_string(ranks) + " ranks have " +
                  std::to_string(available.size()) + " CPUs");
  if (bind != Bind::None) {
    CpuSet set;
    for (int cpu : own)
      CPU_SET_S(cpu, set.bytes(), set.words.data());
    if (sched_setaffinity(0, set.bytes(), set.words.data()) != 0)
      throw std::runtime_error(std::string("--bind: ") + std::strerror(errno));
  }
  const int all = static_cast<int>(available.size());
  if (!std::getenv("OMP_NUM_THREADS")) {
    const bool parts = bind == Bind::Cores;
    at::set_num_threads(
        std::max(1, parts ? static_cast<int>(own.size()) : all / ranks));
  }
  const int threads = at::get_num_threads();
  if (threads * ranks <= all)
    return false;
  if (environment.localRank != 0)
    return true;
  // Of one thread a rank has no fewer.
  const int fewer = std::max(1, all / ranks);
  const std::string fix =
      fewer < threads ? "set OMP_NUM_THREADS to " + std::to_string(fewer) +
                            (fewer * ranks > all ? " and start fewer ranks"
                                                 : ", or start fewer ranks")
                      : "start fewer ranks";
  std::fprintf(stderr,
               "accel-run: warning: %d ranks of %d compute threads share %d "
               "CPUs: each waits for the others; %s\n",
               ranks, threads, all, fix.c_str());
  return true;
}

} // namespace accel::run
