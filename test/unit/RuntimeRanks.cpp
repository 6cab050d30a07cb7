//===- RuntimeRanks.cpp - Ranks as child processes ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/RuntimeRanks.h"

#include "runtime/collectives/Rendezvous.h"
#include "runtime/execute/Allocator.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstdio>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace accel::test {

namespace {
struct Child {
  pid_t pid;
  int fd;
};

Child start(const std::function<std::vector<double>()> &body) {
  int ends[2];
  if (pipe(ends) != 0)
    return {-1, -1};
  pid_t pid = fork();
  if (pid != 0) {
    close(ends[1]);
    return {pid, ends[0]};
  }
  close(ends[0]);
  int code = 0;
  try {
    run::Allocator::install();
    at::set_num_threads(1);
    std::vector<double> values = body();
    const size_t bytes = values.size() * sizeof(double);
    if (write(ends[1], values.data(), bytes) != static_cast<ssize_t>(bytes))
      code = 3;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "child: %s\n", error.what());
    code = 2;
  }
  std::fflush(nullptr);
  _exit(code);
}

std::vector<double> finish(Child child) {
  std::vector<double> values;
  double value;
  while (read(child.fd, &value, sizeof(value)) == sizeof(value))
    values.push_back(value);
  close(child.fd);
  int status = 0;
  waitpid(child.pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "a child ended with status " << status;
  return values;
}
} // namespace

std::vector<double> inChild(const std::function<std::vector<double>()> &body) {
  return finish(start(body));
}

std::vector<std::vector<double>>
onRanks(const plan::Plan &plan,
        const std::function<std::vector<double>(run::Groups &)> &body) {
  const int count = static_cast<int>(plan.ranks());
  if (count == 1)
    return {inChild([&] {
      run::Groups groups(plan);
      return body(groups);
    })};
  // Rank 0 inherits a listening socket, so no port is taken twice.
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr *>(&address), length), 0);
  EXPECT_EQ(listen(fd, 64), 0);
  getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length);
  std::vector<Child> children;
  for (int rank = 0; rank < count; ++rank)
    children.push_back(start([&, rank] {
      run::Environment environment;
      environment.rank = environment.localRank = rank;
      environment.worldSize = environment.localSize = count;
      environment.masterAddress = "127.0.0.1";
      environment.masterPort = ntohs(address.sin_port);
      environment.localOnly = true;
      if (rank == 0)
        environment.storeSocket = fd;
      run::Rendezvous rendezvous(environment, std::chrono::seconds(30));
      run::Groups groups(plan, environment, rendezvous);
      std::vector<double> result = body(groups);
      groups.barrier();
      usleep(rank == 0 ? 200000 : 0); // the store goes last
      return result;
    }));
  close(fd);
  std::vector<std::vector<double>> results;
  for (const Child &child : children)
    results.push_back(finish(child));
  return results;
}

} // namespace accel::test
