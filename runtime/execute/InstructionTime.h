//===- InstructionTime.h - What an instruction took ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_INSTRUCTIONTIME_H
#define ACCEL_RUNTIME_EXECUTE_INSTRUCTIONTIME_H

#include <cstdint>
#include <vector>

namespace accel::run {

/// What one instruction of a program took, as `--profile` shows it, in seconds
/// of one clock. On CPUs it is the main thread's time, on a GPU that of its
/// streams.
struct InstructionTime {
  int instruction = -1;      // Program::instructions
  double begin = 0, end = 0; // on the compute stream
  /// Of a collective, on its own stream; 0 and 0 where that is not measured.
  double streamBegin = 0, streamEnd = 0;
  int64_t bytes = 0; // of own buffers after it

  /// Until they are resolved (Device::resolve): marks of the device.
  int beginMark = -1, endMark = -1, streamBeginMark = -1, streamEndMark = -1;
};

/// By program run of an optimizer step; of a pipeline by part of the order of
/// its stage.
using InstructionTimes = std::vector<std::vector<InstructionTime>>;

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_INSTRUCTIONTIME_H
