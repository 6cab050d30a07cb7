//===- StopSignal.cpp - Ending when a scheduler asks ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/StopSignal.h"

#include <csignal>
#include <cstring>
#include <ctime>
#include <unistd.h>

namespace accel::run {

static_assert(stopSignals[0] == SIGTERM && stopSignals[1] == SIGINT &&
              stopSignals[2] == SIGUSR1);

namespace {

constexpr time_t sameRequest = 2; // seconds
volatile std::sig_atomic_t asked = 0;
volatile time_t askedAt = 0;

time_t seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

void note(int signal) {
  if (!asked) {
    askedAt = seconds();
    asked = signal;
  } else if (signal != SIGUSR1 && seconds() - askedAt > sameRequest) {
    _exit(128 + signal);
  }
}

} // namespace

void catchStopSignals() {
  struct sigaction action{};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (int signal : stopSignals)
    sigaction(signal, &action, nullptr);
}

int stopAsked() { return asked; }

std::string signalName(int signal) {
  const char *name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

} // namespace accel::run
