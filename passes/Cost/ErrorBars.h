//===- ErrorBars.h - How far predictions have been off ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Intervals of predicted bytes and seconds, from the residuals of published
// runs whose family was left out: data/error_bars.json, which
// test/bench/error_bars.py derives and nobody writes.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_COST_ERRORBARS_H
#define ACCEL_PASSES_COST_ERRORBARS_H

#include <cstdint>
#include <string>
#include <vector>

namespace accel {

/// What is trained, as far as published runs tell kinds apart. Compiled: by
/// torch.compile, of which no published run of transformers says the bytes.
enum class TrainedKind { Full, Adapter, Quantised, Fp8, Compiled };
const char *toString(TrainedKind kind); // "full"

class ErrorBars {
public:
  enum class Figure { Bytes, Seconds };
  struct Interval {
    double low = 1, high = 1; // of what was predicted
  };

  /// What is predicted.
  struct Run {
    TrainedKind kind = TrainedKind::Full;
    std::string framework; // toString(FrameworkKind)
    std::string target;
    int64_t tokens = 0; // of a micro-batch on a rank
  };

  /// Where the framework or the target has no measured run, the kind none of
  /// two families, or the micro-batch is smaller than theirs, the bars are
  /// those of the family that is worst.
  ErrorBars(Figure figure, const Run &run);

  /// Holds a run with the probability `level`, half of the rest on each side.
  Interval interval(double level) const;
  /// The probability that a run takes no more than `factor` times what was
  /// predicted; within what the rows can tell, 0.005 to 0.995.
  double below(double factor) const;
  /// The largest prediction that fits into `bytes` with at least the
  /// probability `level`; never more than `bytes`.
  int64_t largestWithin(int64_t bytes, double level) const;
  /// Runs like it were measured.
  bool measured() const { return known; }

private:
  double factorAt(double level) const;

  bool known = false;
  std::vector<double> levels, logRatios; // ascending
};

} // namespace accel

#endif // ACCEL_PASSES_COST_ERRORBARS_H
