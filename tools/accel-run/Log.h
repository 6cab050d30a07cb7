//===- Log.h - What a run says while it trains ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_LOG_H
#define ACCEL_TOOLS_ACCEL_RUN_LOG_H

#include <cstdint>
#include <cstdio>
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

struct StepRecord {
  int64_t step = 0; // from 1, as on the terminal and in names of checkpoints
  double loss = 0;
  std::optional<double> gradNorm;
  double lr = 0, tokensPerSecond = 0, seconds = 0;
  int64_t peakBytes = 0;
  bool skipped = false;
  std::optional<EvalRecord> eval;
};

/// One JSON object; a value that is not finite becomes null.
std::string toJsonLine(const StepRecord &record);

/// Rank 0's log file and progress; the other ranks have none.
class Log {
public:
  /// `path` may be empty. When resuming after `doneSteps`, their lines stay.
  /// `items` are what is counted per second: "tokens" or "samples".
  /// Throws FileError.
  Log(const std::string &path, bool resuming, int64_t doneSteps,
      int64_t lastStep, const char *items);
  ~Log();
  void write(const StepRecord &record);
  /// Ends the progress line, for other output.
  void clear();

private:
  /// Prints what an evaluation has found.
  void say(const StepRecord &record);
  std::FILE *file = nullptr;
  std::string path;
  bool terminal;
  bool shown = false;
  bool complained = false; // that a line could not be written
  int64_t doneSteps, lastStep;
  const char *items;
  double meanSeconds = 0;
};

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_LOG_H
