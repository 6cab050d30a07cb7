//===- LocalLauncher.cpp - Ranks on this machine --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/LocalLauncher.h"

#include "runtime/collectives/CudaModule.h"
#include "runtime/collectives/RankNames.h"
#include "runtime/collectives/StopSignal.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace accel::run {

namespace {

using Clock = std::chrono::steady_clock;

/// A listening socket on a free port of the loopback device: rank 0 inherits
/// it, so that no one else can take the port in between.
int listenLocally(int &port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0)
    return -1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)) != 0 ||
      listen(fd, 1024) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length) != 0) {
    close(fd);
    return -1;
  }
  port = ntohs(address.sin_port);
  return fd;
}

constexpr size_t numSignals = std::size(stopSignals);
/// How often the launcher got each of the stop signals.
volatile std::sig_atomic_t received[numSignals] = {};
void interrupt(int signal) {
  for (size_t i = 0; i < numSignals; ++i)
    if (stopSignals[i] == signal)
      received[i] = received[i] + 1;
}
bool hasReceived(int signal) {
  for (size_t i = 0; i < numSignals; ++i)
    if (stopSignals[i] == signal)
      return received[i] > 0;
  return false;
}

/// While it lives, stop signals wait.
class SignalsBlocked {
public:
  SignalsBlocked() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : stopSignals)
      sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, &before);
  }
  ~SignalsBlocked() { sigprocmask(SIG_SETMASK, &before, nullptr); }

private:
  sigset_t before;
};

void setNumber(const char *name, long value) {
  setenv(name, std::to_string(value).c_str(), 1);
}

[[noreturn]] void becomeRank(const std::function<int()> &run, int rank,
                             int count, int port, int socket, pid_t parent) {
  // Stop signals stay blocked until the rank has its own handlers: the
  // launcher's would only count them.
  for (int signal : stopSignals)
    std::signal(signal, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);
  setNumber("RANK", rank);
  setNumber("LOCAL_RANK", rank);
  setNumber("WORLD_SIZE", count);
  setNumber("LOCAL_WORLD_SIZE", count);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setNumber("MASTER_PORT", port);
  setenv("ACCEL_RUN_LOCAL", "1", 1);
  unsetenv("TORCHELASTIC_USE_AGENT_STORE");
  if (rank == 0)
    setNumber("ACCEL_RUN_STORE_FD", socket);
  else
    close(socket);
  endProcess(run());
}

void signalAll(const std::vector<pid_t> &ranks, int signal) {
  for (pid_t pid : ranks)
    if (pid > 0)
      kill(pid, signal);
}

} // namespace

void endProcess(int code) {
  std::fflush(nullptr);
  if (hasCudaModule())
    std::exit(code);
  std::quick_exit(code);
}

int runLocally(int count, const std::function<int()> &run) {
  int port = 0;
  int socket = listenLocally(port);
  if (socket < 0) {
    std::fprintf(stderr, "accel-run: no free port on this machine: %s\n",
                 std::strerror(errno));
    return 1;
  }
  struct sigaction action{};
  action.sa_handler = interrupt;
  for (int signal : stopSignals)
    sigaction(signal, &action, nullptr);
  // Ignored, as some supervisors leave it, no process could be waited for.
  std::signal(SIGCHLD, SIG_DFL);
  std::vector<pid_t> ranks(count, -1);
  const pid_t self = getpid();
  std::fflush(nullptr); // what is not written yet would be by each rank
  int failed = 0;       // exit code of the first failure
  {
    const SignalsBlocked blocked;
    for (int rank = 0; rank < count; ++rank) {
      ranks[rank] = fork();
      if (ranks[rank] == 0)
        becomeRank(run, rank, count, port, socket, self);
      if (ranks[rank] < 0) {
        std::fprintf(stderr, "accel-run: cannot start rank %d: %s\n", rank,
                     std::strerror(errno));
        failed = 1;
        break;
      }
    }
  }
  close(socket);

  Clock::time_point failedAt = Clock::now();
  bool killed = false, silent = failed != 0;
  std::sig_atomic_t forwarded[numSignals] = {}; // that the ranks know of
  bool stopped = false; // a rank has ended as it was asked to
  for (;;) {
    int left = 0;
    for (pid_t pid : ranks)
      left += pid > 0;
    if (left == 0)
      break;
    // Ranks write a checkpoint at the first one, however long that takes, and
    // end at once at a second SIGTERM or SIGINT.
    for (size_t i = 0; i < numSignals; ++i)
      if (received[i] != forwarded[i]) {
        forwarded[i] = received[i];
        signalAll(ranks, stopSignals[i]);
      }
    // Peers read the reason from the store, and end within a second or two; a
    // rank that was killed gave none.
    if (failed && !killed &&
        (silent || Clock::now() - failedAt > std::chrono::seconds(3))) {
      signalAll(ranks, SIGKILL);
      killed = true;
    }
    int status = 0;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    for (int rank = 0; rank < count; ++rank) {
      if (ranks[rank] != pid)
        continue;
      ranks[rank] = -1;
      const bool bySignal = WIFSIGNALED(status);
      if (!bySignal && WEXITSTATUS(status) == 0)
        break;
      if (!bySignal && WEXITSTATUS(status) == exitResume) {
        // Before the ranks have met, one that was asked alone tells no other.
        if (!stopped && std::none_of(received, received + numSignals,
                                     [](int times) { return times > 0; }))
          signalAll(ranks, SIGUSR1);
        stopped = true;
        break;
      }
      if (failed)
        break; // follows from the first one
      const bool wanted = bySignal && hasReceived(WTERMSIG(status));
      failed = wanted     ? 128 + WTERMSIG(status)
               : bySignal ? 1
                          : WEXITSTATUS(status);
      failedAt = Clock::now();
      silent = bySignal;
      if (bySignal && !wanted)
        std::fprintf(stderr,
                     "accel-run: %s was killed by signal %d (%s); the "
                     "other ranks are ended\n",
                     rankName(rank).c_str(), WTERMSIG(status),
                     strsignal(WTERMSIG(status)));
      break;
    }
  }
  return failed ? failed : stopped ? exitResume : 0;
}

} // namespace accel::run
