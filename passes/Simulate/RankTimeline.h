//===- RankTimeline.h - The streams of one rank -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// When a rank's streams do what programs say, instruction by instruction. Parts
// of several programs may take turns, as those of micro-batches do in a stage.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SIMULATE_RANKTIMELINE_H
#define ACCEL_PASSES_SIMULATE_RANKTIMELINE_H

#include "passes/Simulate/DriveQueue.h"
#include "passes/Simulate/Time.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace accel {

class RankTimeline {
  struct Flight {
    double end = 0;
    double finish = 0; // what the await itself computes
    bool isMessage = false;
  };

public:
  /// A program that has begun.
  struct Frame {
    Frame(const TimeModel &model, const plan::Program &program);
    const plan::Program *program;
    /// What its instructions so far have taken. `seconds` and `end` are filled
    /// by finish().
    ProgramTime time;

  private:
    friend class RankTimeline;
    std::vector<Flight> flights;
    std::optional<DriveQueue> drive;
  };

  /// All streams are free at 0; `before` says since when.
  explicit RankTimeline(const TimeModel &model,
                        const StepEnd *before = nullptr);
  RankTimeline(const RankTimeline &) = delete;
  RankTimeline &operator=(const RankTimeline &) = delete;

  /// The instruction's event, on any rank alone: a message takes nothing.
  TimelineEvent take(Frame &frame, size_t instruction);
  /// A message to another rank; when it is there.
  double send(Frame &frame, const plan::ProgramInstruction &instruction,
              const std::string &channel);
  /// One from another rank, which is there at `arrival`; the computation waits.
  void receive(const std::string &channel, double arrival);

  /// The instruction awaits a message to another rank.
  static bool awaitsMessage(const Frame &frame,
                            const plan::ProgramInstruction &instruction) {
    return instruction.kind == plan::ProgramInstructionKind::Await &&
           frame.flights[instruction.timepoint].isMessage;
  }

  double computeEnd() const { return compute; }
  /// Of all streams.
  double end() const;
  /// Everything is done: the frame's time is complete.
  void finish(Frame &frame) const;

private:
  void work(Frame &frame, double seconds);
  void call(Frame &frame, const plan::ProgramInstruction &instruction);
  void update(Frame &frame, const plan::ProgramInstruction &instruction,
              TimelineEvent &event);
  void norm(Frame &frame, const plan::ProgramInstruction &instruction);
  void collective(Frame &frame, const plan::ProgramInstruction &instruction,
                  TimelineEvent &event);
  void await(Frame &frame, const plan::ProgramInstruction &instruction,
             TimelineEvent &event);
  double &clockOf(const plan::ProgramInstruction &instruction) {
    return clock[static_cast<int>(instruction.stream)];
  }

  const TimeModel &model;
  std::array<double, plan::numStreams> clock{}; // by stream: when it is free
  double &compute = clock[static_cast<int>(plan::Stream::Compute)];
  std::map<std::string, double> messages; // by channel: when its stream is free
  std::vector<double> onHost;             // a unit's gradients are there
  double wire = 0, freed = 0;             // as in StepEnd
  std::vector<double> updated;            // the same
};

} // namespace accel

#endif // ACCEL_PASSES_SIMULATE_RANKTIMELINE_H
