//===- StopSignal.h - Ending when a scheduler asks --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Schedulers announce the end of a job by a signal: SIGTERM (Kubernetes,
// torchrun), SIGUSR1 (Slurm's --signal), SIGINT (a person). The first one asks
// a rank to finish its step, to write a checkpoint and to end with exitResume;
// a second SIGTERM or SIGINT ends it at once. Before ranks train nothing is
// lost by ending: then the first one ends a process at once.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_STOPSIGNAL_H
#define ACCEL_RUNTIME_COLLECTIVES_STOPSIGNAL_H

#include <string>

namespace accel::run {

/// Exit code of a job that was asked to end and can be continued with
/// `--resume auto`: EX_TEMPFAIL of sysexits.h, "try again later".
constexpr int exitResume = 75;

constexpr int stopSignals[] = {15, 2, 10}; // SIGTERM, SIGINT, SIGUSR1

/// From now on a signal ends the process with a line and exit code 128 + the
/// signal, also one that has waited because the launcher had blocked it.
void catchStopSignals();
/// Until it trains: the line begins with `who` (empty: there is none), and with
/// `resumes` the exit code is exitResume.
void setStopBefore(const std::string &who, bool resumes);
/// From now on the signals ask. A SIGTERM or SIGINT within two seconds of the
/// first one of both is the same request: a terminal and a launcher send it.
void deferStopSignals();
/// All ranks train from now on.
void beginTraining();
/// For a rank that waits in vain for another one. What is asked of all ranks
/// ends one that has not come so far at once: before training this one ends in
/// the same way, if it is asked too.
void endIfAskedBefore();
/// The signal that has asked, or 0.
int stopAsked();
/// "SIGTERM".
std::string signalName(int signal);

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_STOPSIGNAL_H
