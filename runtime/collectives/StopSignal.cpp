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
volatile std::sig_atomic_t ends = 0; // SIGTERM and SIGINT have come
volatile time_t endsAt = 0;

/// Before training.
volatile std::sig_atomic_t defers = 0, trains = 0, resumable = 0;
char speaker[64] = "accel-run";

time_t seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

/// Calls only what a handler may call.
[[noreturn]] void endBefore(int signal) {
  if (speaker[0]) {
    char line[256] = "";
    std::strcat(line, speaker);
    std::strcat(line, " stops before training, as ");
    std::strcat(line, signal == SIGTERM  ? "SIGTERM"
                      : signal == SIGINT ? "SIGINT"
                                         : "SIGUSR1");
    std::strcat(
        line, resumable ? " asked; nothing is lost: start it again as before\n"
                        : " asked\n");
    // The exit code says it too, where no one can read the line.
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, line, std::strlen(line));
  }
  _exit(resumable ? exitResume : 128 + signal);
}

void note(int signal) {
  if (!defers)
    endBefore(signal);
  if (!asked)
    asked = signal;
  if (signal == SIGUSR1)
    return;
  if (!ends) {
    endsAt = seconds();
    ends = 1;
  } else if (seconds() - endsAt > sameRequest) {
    _exit(128 + signal);
  }
}

/// Of the stop signals.
sigset_t stopSet() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : stopSignals)
    sigaddset(&set, signal);
  return set;
}

} // namespace

void catchStopSignals() {
  struct sigaction action{};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  action.sa_mask = stopSet();
  for (int signal : stopSignals)
    sigaction(signal, &action, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &action.sa_mask, nullptr);
}

void setStopBefore(const std::string &who, bool resumes) {
  const sigset_t set = stopSet();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &set, &before);
  speaker[who.copy(speaker, sizeof(speaker) - 1)] = '\0';
  resumable = resumes;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void deferStopSignals() { defers = 1; }

void beginTraining() { trains = 1; }

void endIfAskedBefore() {
  if (defers && asked && !trains)
    endBefore(asked);
}

int stopAsked() { return asked; }

std::string signalName(int signal) {
  const char *name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

} // namespace accel::run
