//===- Environment.cpp - Who am I among the ranks -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Environment.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

namespace accel::run {

namespace {

/// Reads integers from the environment, keeping the first error.
struct Reader {
  const GetEnv &get;
  std::string &error;

  std::string text(const char *name) const {
    const char *value = get(name);
    return value ? value : "";
  }
  bool has(const char *name) const { return !text(name).empty(); }
  int number(const char *name, int missing, int low, int high) {
    std::string value = text(name);
    if (value.empty())
      return missing;
    int result = 0;
    auto [end, code] =
        std::from_chars(value.data(), value.data() + value.size(), result);
    if (code != std::errc() || end != value.data() + value.size() ||
        result < low || result > high) {
      if (error.empty())
        error = std::string(name) + "='" + value + "' is not a number from " +
                std::to_string(low) + " to " + std::to_string(high);
      return missing;
    }
    return result;
  }
  void checkSwitch(const char *name) {
    const std::string value = text(name);
    if (!value.empty() && value != "0" && value != "1" && error.empty())
      error = std::string(name) + "='" + value + "' is neither 0 nor 1";
  }
};

constexpr int maxRanks = 1 << 24;
constexpr int defaultPort = 29500;
constexpr int day = 86400; // seconds

} // namespace

std::string firstHost(const std::string &nodeList) {
  std::string host;
  for (size_t i = 0; i < nodeList.size() && nodeList[i] != ','; ++i) {
    if (nodeList[i] != '[') {
      host += nodeList[i];
      continue;
    }
    size_t close = nodeList.find(']', i);
    size_t end = std::min(nodeList.find_first_of(",-]", i), nodeList.size());
    host += nodeList.substr(i + 1, end - i - 1);
    if (close == std::string::npos)
      break;
    i = close;
  }
  return host;
}

bool readEnvironment(const GetEnv &get, Environment &environment,
                     std::string &error) {
  error.clear();
  Reader env{get, error};
  Environment &e = environment;
  e = Environment();
  e.leastPeerBytes = env.number("ACCEL_RUN_PEER_BYTES",
                                static_cast<int>(e.leastPeerBytes), 0, 1 << 30);
  e.silence = std::chrono::seconds(env.number(
      "ACCEL_RUN_SILENCE_S", static_cast<int>(e.silence.count()), 1, day));
  if (const int timeout = env.number("ACCEL_RUN_TIMEOUT_S", 0, 1, day))
    e.collectiveTimeout = std::chrono::seconds(timeout);
  env.number("ACCEL_RUN_DISTURB", 0, 0, std::numeric_limits<int>::max());
  for (const char *name : collectiveSwitches)
    env.checkSwitch(name);
  if (!error.empty())
    return false;
  const char *sizeName = nullptr;
  if (env.has("RANK") || env.has("WORLD_SIZE")) {
    if (!env.has("RANK") || !env.has("WORLD_SIZE")) {
      error = env.has("RANK") ? "RANK is set, and WORLD_SIZE is not"
                              : "WORLD_SIZE is set, and RANK is not";
      return false;
    }
    e.launcher = env.has("ACCEL_RUN_LOCAL") ? "accel-run" : "torchrun";
    sizeName = "WORLD_SIZE";
    e.worldSize = env.number(sizeName, 1, 1, maxRanks);
    e.rank = env.number("RANK", 0, 0, maxRanks);
    e.localRank = env.number("LOCAL_RANK", 0, 0, maxRanks);
    e.localSize = env.number("LOCAL_WORLD_SIZE", 1, 1, maxRanks);
    std::string agent = env.text("TORCHELASTIC_USE_AGENT_STORE");
    e.storeIsServed = agent == "True" || agent == "true" || agent == "1";
    e.localOnly = env.has("ACCEL_RUN_LOCAL");
    if (env.has("ACCEL_RUN_STORE_FD") && e.rank == 0)
      e.storeSocket = env.number("ACCEL_RUN_STORE_FD", 0, 3, 1 << 20);
  } else if (env.has("OMPI_COMM_WORLD_RANK")) {
    e.launcher = "mpirun";
    sizeName = "OMPI_COMM_WORLD_SIZE";
    e.worldSize = env.number(sizeName, 1, 1, maxRanks);
    e.rank = env.number("OMPI_COMM_WORLD_RANK", 0, 0, maxRanks);
    e.localRank = env.number("OMPI_COMM_WORLD_LOCAL_RANK", 0, 0, maxRanks);
    e.localSize = env.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, 1, maxRanks);
  } else if (env.has("SLURM_PROCID") && env.has("SLURM_STEP_ID") &&
             (env.has("SLURM_STEP_NUM_TASKS") || env.has("SLURM_NTASKS"))) {
    // A batch script's own process has SLURM_PROCID=0 as well: only what srun
    // starts carries the number of tasks of its step.
    e.launcher = "srun";
    sizeName = env.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS"
                                               : "SLURM_NTASKS";
    e.worldSize = env.number(sizeName, 1, 1, maxRanks);
    e.rank = env.number("SLURM_PROCID", 0, 0, maxRanks);
    e.localRank = env.number("SLURM_LOCALID", 0, 0, maxRanks);
    std::string perNode = env.text("SLURM_STEP_TASKS_PER_NODE");
    if (perNode.empty())
      perNode = env.text("SLURM_TASKS_PER_NODE"); // "4(x2),3": this many a node
    std::from_chars(perNode.data(), perNode.data() + perNode.size(),
                    e.localSize);
    e.localSize = std::max(e.localSize, e.localRank + 1);
    e.masterAddress = firstHost(env.has("SLURM_STEP_NODELIST")
                                    ? env.text("SLURM_STEP_NODELIST")
                                    : env.text("SLURM_JOB_NODELIST"));
    // The same on every rank, other than another job's on this node.
    e.masterPort = 20000 + env.number("SLURM_JOB_ID", 0, 0, 1 << 30) % 20000;
  } else {
    e.launcher = "none";
    return true;
  }
  if (!error.empty())
    return false;
  if (e.rank >= e.worldSize) {
    error = "rank " + std::to_string(e.rank) + " of " +
            std::to_string(e.worldSize) + " (" + sizeName +
            ") cannot be: ranks count from 0";
    return false;
  }
  if (env.has("MASTER_ADDR"))
    e.masterAddress = env.text("MASTER_ADDR");
  e.masterPort = env.number(
      "MASTER_PORT", e.masterPort ? e.masterPort : defaultPort, 1, 65535);
  if (!error.empty())
    return false;
  if (e.masterAddress.empty() && e.worldSize > 1) {
    // mpirun on one machine needs no address: all ranks are here.
    if (e.launcher == "mpirun" && e.localSize == e.worldSize) {
      e.masterAddress = "127.0.0.1";
      return true;
    }
    error = "MASTER_ADDR is not set: rank " + std::to_string(e.rank) + " of " +
            std::to_string(e.worldSize) + " (" + e.launcher +
            ") does not know where the others are";
    return false;
  }
  return true;
}

} // namespace accel::run
