//===- Trainer.h - A rank's training run ------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_TRAINER_H
#define ACCEL_TOOLS_ACCEL_RUN_TRAINER_H

#include "runtime/checkpoint/BackgroundWriter.h"
#include "runtime/checkpoint/Buffers.h"
#include "runtime/checkpoint/RunFolder.h"
#include "runtime/checkpoint/Sharded.h"
#include "runtime/data/Loader.h"
#include "runtime/data/Prefetch.h"
#include "runtime/execute/Executor.h"
#include "tools/accel-run/Evaluation.h"
#include "tools/accel-run/Log.h"
#include "tools/accel-run/Options.h"
#include "tools/accel-run/Preflight.h"
#include "tools/accel-run/Summary.h"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace accel::run {

struct RunLocks;

class Trainer {
public:
  Trainer(const Input &input, const Options &options, const Start &begin,
          RunLocks &locks, Device &device, Groups &groups);
  /// Loads, trains, writes checkpoints, and on rank 0 prints the summary.
  /// Returns the exit code: not 0 where a signal has asked to stop.
  int run();

private:
  /// A step that is queued, and what of its record is known.
  struct InFlight {
    StepRecord record;
    double begin = 0, queued = 0; // when it began to be queued, and was
    Usage before, after;          // by then
    bool isBehind = false;        // another one was in flight
    bool isLine = false;          // of the log
    bool isSaved = false;
  };
  void start();
  void queueStep(int64_t step);
  /// The groups' rates once the optimizer has taken so many steps: a step that
  /// is left out does not advance the schedule, as in Accelerate.
  std::vector<double> ratesAfter(double taken) const;
  /// Whether the next step's rates are known only when the host knows that the
  /// last queued step was not left out.
  bool awaitsDecision() const;
  /// Waits for the oldest step in flight. What it and the steps since the last
  /// line of the log have done, where it ends a line; after steps in between,
  /// each rank knows its own numbers alone.
  std::optional<StepRecord> finishStep();
  /// Whether ranks reduce the numbers of the step. The same on all ranks.
  bool agreesAfter(const InFlight &flight, const StepResult &result) const;
  void note(const StepRecord &record);
  /// The loss of all ranks, and whether one was asked to stop.
  void agree(StepRecord &record, double loss);
  /// Whether the numbers of optimizer step `done` are a line of the log.
  bool endsLine(int64_t done) const;
  /// Whether a checkpoint is written, or the model evaluated, after `done`.
  bool saves(int64_t done) const;
  bool evaluates(int64_t done) const;
  /// Ranks that have a loss of their own: those of a pipeline's last stage.
  double lossRanks() const;
  /// Nothing where a rank was asked to end: it is then due in the next run.
  std::optional<EvalRecord> evaluate(int64_t done);
  /// The evaluation that the run before has broken off after its last step.
  void evaluateBefore();
  /// Saves a checkpoint; `behind`: while training goes on, if the plan says so.
  void save(int64_t done, bool behind);
  /// Completes a checkpoint that is on its way, once all ranks have written.
  void completeSave();
  /// Ends an optimizer step early, as a signal has asked; the exit code.
  int stop(int64_t done, bool saved);
  /// Throws where training cannot go on from what the step has computed;
  /// `agreed`: of numbers that all ranks have.
  void checkFinite(const StepRecord &record, double ownLoss, bool agreed);
  /// Throws where weights or states have values that are not finite, before
  /// they are saved as those after step `done`. Collective.
  void checkWeights(int64_t done);
  /// Of a search: on a rank that has found where the step's first number that
  /// is not finite comes from.
  void sayFirstNotFinite();
  /// The text of the mark in a model folder.
  void finish();

  const Input &input;
  const Options &options;
  const Start &begin;
  RunLocks &locks;
  const plan::Job &job;
  Device &device;
  Groups &groups;
  Executor executor;
  Loader data;
  std::optional<Prefetch> ahead; // of `data`
  Buffers buffers;
  std::optional<Evaluation> evaluation;
  std::optional<BackgroundWriter> writer;
  bool othersWrite = false; // some rank still writes a checkpoint's file
  std::unique_ptr<Log> log; // rank 0
  int64_t firstStep = 0, lastStep = 0;
  int64_t firstMicroBatch = 0;
  std::optional<int64_t> lastSaved; // step of the last checkpoint
  int64_t soundStep = -1;     // after which the weights are known to be finite
  int stopSignal = 0;         // that a rank was sent; known to all
  bool evaluationDue = false; // of the last step that was done
  Measured measured;
  std::vector<double> stepSeconds, stepCpu, stepFaults, stepTokens;
  InstructionTimes profile;
  std::deque<InFlight> inFlight; // oldest first
  LineSteps line;                // since the last line of the log
  bool hasLines = false;         // one was written
  double lastEnd = 0;            // when the step before was finished
  Usage lastUsage;               // by then
};

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_TRAINER_H
