//===- Environment.h - Who am I among the ranks -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_ENVIRONMENT_H
#define ACCEL_RUNTIME_COLLECTIVES_ENVIRONMENT_H

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace accel::run {

/// What a launcher told this process.
struct Environment {
  int rank = 0, worldSize = 1, localRank = 0, localSize = 1;
  std::string masterAddress; // empty only if worldSize is 1
  int masterPort = 0;
  /// torchrun's agent serves the store: no rank does.
  bool storeIsServed = false;
  /// All ranks are on this machine, started by --nproc.
  bool localOnly = false;
  /// Listening socket that rank 0 inherits from --nproc.
  std::optional<int> storeSocket;
  /// The least piece of an exchange that ranks of a machine read in one
  /// another's memory (ACCEL_RUN_PEER_BYTES); 0: none is (PeerMemory).
  int64_t leastPeerBytes = 64 << 10;
  /// How long a rank may be silent before the job ends (ACCEL_RUN_SILENCE_S):
  /// enough for a process that the system has stopped for a while.
  std::chrono::seconds silence{20};
  /// How long collectives may wait (ACCEL_RUN_TIMEOUT_S), whatever the plan
  /// says.
  std::optional<std::chrono::seconds> collectiveTimeout;
  std::string launcher; // "none", "accel-run", "torchrun", "srun", "mpirun"
};

/// Switches of CUDA jobs, set where they are 1: which collectives there are,
/// and by which library.
constexpr const char *selfGroups = "ACCEL_RUN_SELF_GROUPS";
constexpr const char *oneCommunicator = "ACCEL_RUN_ONE_COMMUNICATOR";
constexpr const char *hostCollectives = "ACCEL_RUN_HOST_COLLECTIVES";
constexpr const char *withoutGloo = "ACCEL_RUN_WITHOUT_GLOO";
constexpr const char *collectiveSwitches[] = {selfGroups, oneCommunicator,
                                              hostCollectives, withoutGloo};

using GetEnv = std::function<const char *(const char *)>;

/// Reads RANK and WORLD_SIZE (torchrun, Kubernetes), OMPI_COMM_WORLD_* (MPI),
/// or SLURM_* (srun), in this order; a process without any is alone. On
/// contradiction, a missing address or a value that says nothing returns false
/// with a sentence in `error`.
bool readEnvironment(const GetEnv &get, Environment &environment,
                     std::string &error);

/// The first host of a Slurm list: "gpu[003-005,9],cpu1" is "gpu003".
std::string firstHost(const std::string &nodeList);

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_ENVIRONMENT_H
