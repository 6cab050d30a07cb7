//===- Reach.cpp - Waiting for the rank that serves -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Reach.h"

#include "runtime/collectives/Backend.h"
#include "runtime/collectives/RunningTime.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <future>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace accel::run {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int attempt = 5000; // ms that one connection may take

/// 0, or the error of one connection.
int connectOnce(const addrinfo &address) {
  const int fd = socket(address.ai_family,
                        address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return errno;
  int code = connect(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (code == EINPROGRESS) {
    pollfd wait{fd, POLLOUT, 0};
    const int ready = poll(&wait, 1, attempt);
    socklen_t size = sizeof(code);
    if (ready == 0)
      code = ETIMEDOUT;
    else if (ready < 0 ||
             getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0)
      code = errno;
  }
  close(fd);
  return code;
}

/// What went wrong, or "".
std::string reach(const std::string &host, int port, bool &resolved) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *list = nullptr;
  const int code =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0)
    return "the name '" + host + "' (MASTER_ADDR) cannot be resolved: " +
           (code == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(code));
  resolved = true;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list,
                                                                 freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo *at = list; at; at = at->ai_next)
    if ((error = connectOnce(*at)) == 0)
      return "";
  return std::strerror(error);
}

/// A wait for the server.
class Wait {
public:
  Wait(const Server &server, const std::string &who, const ReachLimits &limits)
      : server(server.name + " at " + server.host + ":" +
               std::to_string(server.port)),
        who(who), next(limits.first), again(limits.again) {}

  /// It has lasted so long, for this reason: says so from time to time, and
  /// throws after `limit`.
  void lasts(Clock::duration waited, std::chrono::milliseconds limit,
             const std::string &problem) {
    if (waited > limit)
      throw CollectiveError(who + " cannot meet " + server + " within " +
                            std::to_string(seconds(limit)) + " s: " + problem);
    if (waited <= next)
      return;
    next = waited + again;
    std::fprintf(stderr, "accel-run: %s waits for %s (%lld of %lld s): %s\n",
                 who.c_str(), server.c_str(), seconds(waited), seconds(limit),
                 problem.c_str());
  }

private:
  static long long seconds(Clock::duration time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time).count();
  }
  std::string server, who;
  Clock::duration next, again;
};

} // namespace

void waitForServer(const Server &server, const std::string &who,
                   const ReachLimits &limits) {
  Wait wait(server, who, limits);
  const Clock::time_point begin = Clock::now();
  bool resolved = false;
  for (auto pause = std::chrono::milliseconds(20);;
       pause = std::min(2 * pause, std::chrono::milliseconds(500))) {
    const std::string problem = reach(server.host, server.port, resolved);
    if (problem.empty())
      return;
    wait.lasts(Clock::now() - begin,
               resolved ? limits.serving : limits.resolving, problem);
    std::this_thread::sleep_for(pause);
  }
}

void awaitAnswer(const Server &server, const std::string &who,
                 std::function<void()> ask, const ReachLimits &limits) {
  std::promise<void> promise;
  std::future<void> answer = promise.get_future();
  std::thread([ask = std::move(ask), promise = std::move(promise)]() mutable {
    try {
      ask();
      promise.set_value();
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }).detach();
  Wait wait(server, who, limits);
  RunningTime running;
  while (answer.wait_for(std::chrono::milliseconds(100)) !=
         std::future_status::ready)
    wait.lasts(running.look(), limits.serving,
               "it accepts connections and does not answer: it is stopped, or "
               "its machine is, or another program has this port");
  answer.get();
}

} // namespace accel::run
