//===- Log.h - What a run says while it trains ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_LOG_H
#define ACCEL_TOOLS_ACCEL_RUN_LOG_H

#include "tools/accel-run/LineFile.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace accel::run {

/// A text that the model has written.
struct SampleRecord {
  std::vector<int64_t> prompt, tokens; // ids
  std::optional<std::string> promptText, text;
};

struct EvalRecord {
  double loss = 0;
  std::optional<double> accuracy, perplexity;
  std::vector<SampleRecord> samples;
};

/// A line of the log: an optimizer step, and what the steps since the line
/// before have done.
struct StepRecord {
  int64_t step = 0; // from 1, as on the terminal and in names of checkpoints
  double loss = 0;  // the mean over ranks and over the line's steps
  std::optional<double> gradNorm;          // of `step`
  double lr = 0;                           // of `step`
  double tokensPerSecond = 0, seconds = 0; // means of the steps
  int64_t peakBytes = 0;
  int64_t skipped = 0; // of the steps, those whose update was left out
  std::optional<EvalRecord> eval;
};

/// The steps since the last line of the log, as one rank knows them.
class LineSteps {
public:
  /// A step with the rank's own loss.
  void add(double loss, bool skipped);
  /// What that step took.
  void addSeconds(double more) { seconds += more; }
  /// The mean loss of this rank: of the steps that were not skipped, or of all
  /// where each one was.
  double meanLoss() const;
  double meanSeconds() const {
    return seconds / static_cast<double>(all.steps);
  }
  int64_t skipped() const { return all.steps - taken.steps; }

private:
  struct Losses {
    double sum = 0;
    int64_t steps = 0;
  };
  Losses all, taken;
  double seconds = 0;
};

/// One JSON object; a value that is not finite becomes null.
std::string toJsonLine(const StepRecord &record);

/// Rank 0's log file and progress; the other ranks have none.
class Log {
public:
  /// `path` may be empty; `lock` holds it. When resuming after `doneSteps`,
  /// their lines stay. `items` are what is counted per second: "tokens" or
  /// "samples". Throws FileError.
  Log(const std::string &path, LineLock *lock, bool resuming, int64_t doneSteps,
      int64_t lastStep, const char *items);
  ~Log();
  void write(const StepRecord &record);
  /// Adds an evaluation to the line of `step`, the last one, which a run before
  /// has written without it.
  void amend(int64_t step, const EvalRecord &eval);
  /// Ends the progress line, for other output.
  void clear();

private:
  /// Prints what an evaluation has found.
  void say(const StepRecord &record);
  /// Warns once; with nothing that is wrong, does nothing.
  void complain(const std::string &wrong);
  std::optional<LineFile> file;
  bool terminal;
  bool shown = false;
  bool complained = false; // that a line could not be written
  int64_t doneSteps, lastStep;
  int64_t writtenStep; // of the line before; at first `doneSteps`
  int64_t printedStep; // the same, of what a person has read
  int64_t unsaid = 0;  // skipped steps behind it
  const char *items;
  double meanSeconds = 0;
};

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_LOG_H
