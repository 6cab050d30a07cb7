//===- InstructionTime.h - What an instruction took ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_INSTRUCTIONTIME_H
#define ACCEL_RUNTIME_EXECUTE_INSTRUCTIONTIME_H

#include <chrono>
#include <cstdint>
#include <vector>

namespace accel::run {

/// What one instruction of a program took, as `--profile` shows it, in seconds
/// of one clock. On CPUs it is the main thread's time, on a GPU that of its
/// streams, and of the host where that works beside it (Stream::Host).
struct InstructionTime {
  int instruction = -1;      // Program::instructions
  double begin = 0, end = 0; // on the compute stream, or of the host
  /// Of a collective or copy, on its own stream; 0 and 0 where that is not
  /// measured.
  double streamBegin = 0, streamEnd = 0;
  int64_t bytes = 0; // of own buffers after it

  /// Until they are resolved (Device::resolve): marks of the device.
  int beginMark = -1, endMark = -1, streamBeginMark = -1, streamEndMark = -1;
  /// And of the host's clock (hostSeconds); 0 where the device is timed.
  double hostBegin = 0, hostEnd = 0;
};

inline double hostSeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// By program run of an optimizer step; of a pipeline by part of the order of
/// its stage.
using InstructionTimes = std::vector<std::vector<InstructionTime>>;

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_INSTRUCTIONTIME_H
