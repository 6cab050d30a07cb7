//===- Reach.cpp - Waiting for the rank that serves -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Reach.h"

#include "runtime/collectives/Backend.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
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

} // namespace

void waitForServer(const std::string &host, int port, const std::string &who,
                   const ReachLimits &limits) {
  using std::chrono::duration_cast;
  using std::chrono::seconds;
  const std::string where = host + ":" + std::to_string(port);
  const Clock::time_point begin = Clock::now();
  Clock::time_point next = begin + limits.first;
  bool resolved = false;
  for (auto pause = std::chrono::milliseconds(20);;
       pause = std::min(2 * pause, std::chrono::milliseconds(500))) {
    const std::string problem = reach(host, port, resolved);
    if (problem.empty())
      return;
    const auto now = Clock::now();
    const auto limit = resolved ? limits.serving : limits.resolving;
    if (now - begin > limit)
      throw CollectiveError(
          who + " cannot meet rank 0 at " + where + " within " +
          std::to_string(duration_cast<seconds>(limit).count()) +
          " s: " + problem);
    if (now > next) {
      next = now + limits.again;
      std::fprintf(
          stderr, "accel-run: %s waits for rank 0 at %s (%lld of %lld s): %s\n",
          who.c_str(), where.c_str(),
          static_cast<long long>(duration_cast<seconds>(now - begin).count()),
          static_cast<long long>(duration_cast<seconds>(limit).count()),
          problem.c_str());
    }
    std::this_thread::sleep_for(pause);
  }
}

} // namespace accel::run
