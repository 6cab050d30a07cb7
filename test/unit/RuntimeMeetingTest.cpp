//===- RuntimeMeetingTest.cpp - Who a rank is, and where it goes ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Backend.h"
#include "runtime/collectives/Environment.h"
#include "runtime/collectives/Reach.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>

using namespace accel::run;

namespace {

std::string read(const std::map<std::string, std::string> &variables,
                 Environment &environment) {
  std::string error;
  auto get = [&](const char *name) -> const char * {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  return readEnvironment(get, environment, error) ? "" : error;
}

TEST(RuntimeEnvironment, Launchers) {
  Environment e;
  EXPECT_EQ(read({}, e), "");
  EXPECT_EQ(e.worldSize, 1);
  EXPECT_EQ(e.launcher, "none");
  EXPECT_EQ(read({{"RANK", "3"},
                  {"WORLD_SIZE", "8"},
                  {"LOCAL_RANK", "1"},
                  {"LOCAL_WORLD_SIZE", "2"},
                  {"MASTER_ADDR", "node0"},
                  {"MASTER_PORT", "1234"},
                  {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
                 e),
            "");
  EXPECT_EQ(e.rank, 3);
  EXPECT_EQ(e.worldSize, 8);
  EXPECT_EQ(e.localRank, 1);
  EXPECT_EQ(e.localSize, 2);
  EXPECT_EQ(e.masterAddress, "node0");
  EXPECT_EQ(e.masterPort, 1234);
  EXPECT_TRUE(e.storeIsServed);
  EXPECT_EQ(read({{"SLURM_PROCID", "5"},
                  {"SLURM_STEP_ID", "0"},
                  {"SLURM_NTASKS", "16"},
                  {"SLURM_LOCALID", "1"},
                  {"SLURM_JOB_ID", "20017"},
                  {"SLURM_STEP_NODELIST", "gpu[007-010],cpu2"},
                  {"SLURM_STEP_TASKS_PER_NODE", "4(x4)"}},
                 e),
            "");
  EXPECT_EQ(e.rank, 5);
  EXPECT_EQ(e.worldSize, 16);
  EXPECT_EQ(e.localSize, 4);
  EXPECT_EQ(e.masterAddress, "gpu007");
  EXPECT_EQ(e.masterPort, 20017);
  EXPECT_EQ(read({{"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "2"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
                 e),
            "");
  EXPECT_EQ(e.masterAddress, "127.0.0.1");
  EXPECT_EQ(e.leastPeerBytes, 65536);
  EXPECT_EQ(
      read({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"ACCEL_RUN_PEER_BYTES", "0"}},
           e),
      "");
  EXPECT_EQ(e.leastPeerBytes, 0);
  for (const char *wrong : {"64k", "-5"})
    EXPECT_EQ(read({{"RANK", "0"},
                    {"WORLD_SIZE", "1"},
                    {"ACCEL_RUN_PEER_BYTES", wrong}},
                   e),
              "ACCEL_RUN_PEER_BYTES='" + std::string(wrong) +
                  "' is not a number from 0 to 1073741824");
}

TEST(RuntimeEnvironment, ValuesThatSayNothingAreRefused) {
  Environment e;
  EXPECT_EQ(read({}, e), "");
  EXPECT_EQ(e.silence, std::chrono::seconds(20));
  EXPECT_FALSE(e.collectiveTimeout);
  EXPECT_EQ(read({{"ACCEL_RUN_SILENCE_S", "4"},
                  {"ACCEL_RUN_TIMEOUT_S", "86400"},
                  {"ACCEL_RUN_SELF_GROUPS", "1"},
                  {"ACCEL_RUN_WITHOUT_GLOO", "0"},
                  {"ACCEL_RUN_DISTURB", "7"}},
                 e),
            "");
  EXPECT_EQ(e.silence, std::chrono::seconds(4));
  EXPECT_EQ(e.collectiveTimeout, std::chrono::seconds(86400));
  for (const std::string name : {"ACCEL_RUN_SILENCE_S", "ACCEL_RUN_TIMEOUT_S"})
    for (const char *wrong : {"0", "-3", "20s", "abc", "1.5", "86401"})
      EXPECT_EQ(read({{name, wrong}}, e),
                name + "='" + wrong + "' is not a number from 1 to 86400");
  for (const std::string name :
       {"ACCEL_RUN_SELF_GROUPS", "ACCEL_RUN_ONE_COMMUNICATOR",
        "ACCEL_RUN_HOST_COLLECTIVES", "ACCEL_RUN_WITHOUT_GLOO"})
    EXPECT_EQ(read({{name, "true"}}, e), name + "='true' is neither 0 nor 1");
  EXPECT_NE(read({{"ACCEL_RUN_DISTURB", "x"}}, e).find("is not a number"),
            std::string::npos);
}

TEST(RuntimeEnvironment, ContradictionsAreNamed) {
  Environment e;
  EXPECT_EQ(read({{"RANK", "0"}}, e), "RANK is set, and WORLD_SIZE is not");
  EXPECT_EQ(read({{"RANK", "x"}, {"WORLD_SIZE", "2"}}, e).rfind("RANK='x'", 0),
            0u);
  EXPECT_NE(read({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}, e)
                .find("rank 2 of 2"),
            std::string::npos);
  EXPECT_NE(read({{"RANK", "1"}, {"WORLD_SIZE", "2"}}, e).find("MASTER_ADDR"),
            std::string::npos);
}

TEST(RuntimeEnvironment, FirstHost) {
  EXPECT_EQ(firstHost("a1,b2"), "a1");
  EXPECT_EQ(firstHost("gpu[003-005,9],c"), "gpu003");
  EXPECT_EQ(firstHost("gpu[3,9]-ib"), "gpu3-ib");
  EXPECT_EQ(firstHost("node"), "node");
}

TEST(RuntimeReach, WhatCannotBeMetIsNamed) {
  using std::chrono::milliseconds;
  const ReachLimits limits = {milliseconds(50), milliseconds(50),
                              milliseconds(10), milliseconds(10)};
  auto problem = [&](const char *host, int port) -> std::string {
    try {
      waitForServer({host, port}, "rank 1", limits);
    } catch (const CollectiveError &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(problem("no-such-host.invalid", 29500)
                .find("rank 1 cannot meet rank 0 at no-such-host.invalid:29500 "
                      "within 0 s: the name 'no-such-host.invalid' "
                      "(MASTER_ADDR) cannot be resolved"),
            std::string::npos);
  EXPECT_NE(problem("127.0.0.1", 1).find("Connection refused"),
            std::string::npos);
}

TEST(RuntimeReach, AServerThatDoesNotAnswerIsNamed) {
  using std::chrono::milliseconds;
  ReachLimits limits = {milliseconds(0), milliseconds(300), milliseconds(100),
                        milliseconds(10000)};
  const Server server{"node0", 29500};
  auto answer = std::make_shared<std::promise<void>>();
  testing::internal::CaptureStderr();
  try {
    awaitAnswer(
        server, "rank 1", [answer] { answer->get_future().wait(); }, limits);
    ADD_FAILURE() << "no answer is one";
  } catch (const CollectiveError &error) {
    EXPECT_STREQ(error.what(),
                 "rank 1 cannot meet rank 0 at node0:29500 within 0 s: it "
                 "accepts connections and does not answer: it is stopped, or "
                 "its machine is, or another program has this port");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "accel-run: rank 1 waits for rank 0 at node0:29500 (0 of 0 s): it "
            "accepts connections and does not answer: it is stopped, or its "
            "machine is, or another program has this port\n");
  answer->set_value(); // the thread ends
  bool asked = false;
  awaitAnswer(server, "rank 1", [&] { asked = true; }, limits);
  EXPECT_TRUE(asked);
  EXPECT_THROW(
      awaitAnswer(
          server, "rank 1", [] { throw CollectiveError("gone"); }, limits),
      CollectiveError);
}

} // namespace
