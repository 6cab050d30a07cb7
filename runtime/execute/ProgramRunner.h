//===- ProgramRunner.h - Runs a program of the plan -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_PROGRAMRUNNER_H
#define ACCEL_RUNTIME_EXECUTE_PROGRAMRUNNER_H

#include "runtime/collectives/Backend.h"
#include "runtime/execute/FunctionRunner.h"
#include "runtime/execute/HostValues.h"
#include "runtime/execute/InstructionTime.h"
#include "runtime/execute/UnitStorage.h"
#include "runtime/plan/Plan.h"

#include <functional>
#include <string>
#include <vector>

namespace accel::run {

class Executor;

/// What a program leaves for the runtime; a storage ends with its tensor.
/// Undefined where the program has none.
struct ProgramResults {
  at::Tensor loss, predictions;
};

class ProgramRunner {
public:
  /// Resolves the program against the executor's units and functions; connects
  /// the communicators that it needs, so all ranks must make their runners in
  /// the same order. Throws PlanError or CollectiveError.
  ProgramRunner(Executor &executor, const plan::Program &program);

  struct Compiled;
  struct InFlight {
    Pending pending;
    const Compiled *start = nullptr;
  };
  /// One micro-batch: its values, and what is under way for it. Of a pipeline's
  /// program there are several.
  struct Frame {
    std::vector<at::Tensor> values;
    std::vector<InFlight> inFlight; // by timepoint
    int number = 0;                 // among those that are there at once
  };

  /// Runs with `inputs` in the order of Program::inputs, and gives them up.
  ProgramResults run(std::vector<at::Tensor> inputs,
                     std::vector<InstructionTime> *times = nullptr);
  /// The same part by part, by its position (Plan::positionOf). Frames that are
  /// there at once have numbers of their own.
  Frame start(std::vector<at::Tensor> inputs, int number);
  void run(Frame &of, size_t part, std::vector<InstructionTime> *times);
  bool isLast(size_t part) const { return part + 2 == parts.size(); }
  ProgramResults finish(Frame &of);

  const plan::Program &program() const { return source; }

  struct Compiled {
    plan::ProgramInstructionKind kind;
    plan::Stream stream;
    UnitStorage *unit = nullptr;
    plan::Role role;
    int timepoint = -1;
    bool accumulate = false;
    bool allToAll = false;
    Communicator *group = nullptr;
    std::vector<std::pair<int64_t, int64_t>> zeros; // Alloc: element ranges
    FunctionRunner *function = nullptr;
    int peer = -1;      // Send, Receive: in the group
    bool stays = false; // Send, Receive: the other end is this rank
    const plan::ProgramInstruction *source = nullptr;
    std::vector<at::Tensor> params, gradients;
    std::string label; // how profilers see it: "train/12 all_gather layers.1"
  };

private:
  Compiled compile(const plan::ProgramInstruction &instruction);
  std::vector<std::pair<int64_t, int64_t>>
  gapsOf(const plan::ProgramInstruction &instruction) const;
  void execute(const Compiled &instruction);
  void call(const Compiled &instruction);
  void reduceScatter(const Compiled &instruction);
  void allReduce(const Compiled &instruction);
  void finishReduce(const Compiled &instruction);
  void send(const Compiled &instruction);
  void receive(const Compiled &instruction);
  /// A copy of a value, for the next chunk of this rank.
  void handOver(const Compiled &instruction);
  void await(int timepoint);
  /// Of the device: those of frames that are there at once differ.
  int timepoint(int own) const;
  Frame begin(std::vector<at::Tensor> inputs);
  void runPart(Frame &of, size_t from, size_t to,
               std::vector<InstructionTime> *times);

  Executor &executor;
  const plan::Program &source;
  std::vector<Compiled> instructions;
  const std::vector<size_t> parts; // where they begin, and the end
  size_t timepoints = 0;
  HostValues hostValues;
  Frame *frame = nullptr; // of the micro-batch that runs
  InstructionTime *timing =
      nullptr; // of the instruction that runs, where it is timed
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_PROGRAMRUNNER_H
