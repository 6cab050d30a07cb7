//===- Chunks.h - Where the chunks of a pipeline are ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Which stage has which part of the model, and what follows from the name of a
// schedule. Compiler and runtime both ask here.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_CHUNKS_H
#define ACCEL_RUNTIME_PLAN_CHUNKS_H

#include "runtime/plan/Plan.h"

#include <string_view>

namespace accel::plan {

inline constexpr const char *oneFOneB = "1f1b";
inline constexpr const char *allForwardsFirst = "gpipe";
inline constexpr const char *interleaved1F1B = "interleaved-1f1b";
inline constexpr const char *zeroBubbleV = "zb-v";

/// The schedule of stages with so many chunks each. `forwardsFirst`: all of
/// them before the first backward, of one chunk.
const char *scheduleOf(bool splitBackward, int64_t chunks,
                       bool forwardsFirst = false);
/// Its backward is in two parts.
bool splitsBackward(const std::string &schedule);

/// Which stage has which chunk of the model. Chunks are numbered as the model
/// goes through them.
struct ChunkLayout {
  int stages = 1;
  int chunks = 1; // of each stage
  /// Through the stages and back (zb-v), so that the last stage's second chunk
  /// follows its first; else round and round.
  bool returns = false;

  ChunkLayout() = default;
  ChunkLayout(int stages, int chunks, std::string_view schedule)
      : stages(stages), chunks(chunks), returns(schedule == zeroBubbleV) {}

  int count() const { return stages * chunks; }
  int chunkOf(int number) const { return number / stages; }
  int stageOf(int number) const { return turned(number / stages, number); }
  int numberOf(int stage, int chunk) const {
    return chunk * stages + turned(chunk, stage);
  }

private:
  int turned(int chunk, int position) const {
    position %= stages;
    return returns && chunk % 2 ? stages - 1 - position : position;
  }
};
ChunkLayout chunkLayoutOf(const Plan &plan);

/// A send or a receive whose other end is the next chunk of the same ranks: a
/// copy that has no timepoint.
bool staysInStage(const Plan &plan, const Program &program,
                  const ProgramInstruction &instruction);
/// Bytes of a copy of the value.
int64_t denseBytes(const Value &value);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_CHUNKS_H
