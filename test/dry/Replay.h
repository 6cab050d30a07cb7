//===- Replay.h - How long what was queued takes ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What accel-run really queued on its streams, with the seconds of the cost
// model: discrete events over streams, events, a wire of each rank and messages
// between ranks. It knows nothing of the program but the place that each item
// comes from, so that it finds where accel-run overlaps less than
// passes/Simulate says.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_DRY_REPLAY_H
#define ACCEL_TEST_DRY_REPLAY_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace accel::dry {

struct TraceItem {
  enum Kind { Work, Collective, Record, Wait, HostWait, Send, Receive };
  Kind kind = Work;
  int stream = 0;
  uint64_t event = 0;
  std::string place;        // "train/12"; empty outside of programs
  std::string channel = {}; // of Send and Receive: from a rank to another
};

/// What a rank queued in a step.
struct RankTrace {
  std::vector<TraceItem> step;
  int computes = 0; // the stream on which functions run
};

/// Seconds of one step of a program.
struct PlaceSeconds {
  double compute = 0;  // of its kernels on the stream that computes
  double before = 0;   // of those on the collective's stream, before it
  double transfer = 0; // of the collective, alone on the wire
};

/// Seconds from the first item to the last of a step that was queued `steps`
/// times: those that follow find events and streams as they were left. `taken`
/// is the share of a transfer that is taken from the stream that computes.
/// The k-th message of a channel that is received is the k-th that was sent; a
/// message is on its way when it is sent, whether or not it is awaited. Nothing
/// where ranks wait for each other.
std::optional<double>
replay(const std::vector<RankTrace> &ranks, double taken,
       const std::function<PlaceSeconds(const std::string &)> &seconds,
       int steps = 1);

} // namespace accel::dry

#endif // ACCEL_TEST_DRY_REPLAY_H
