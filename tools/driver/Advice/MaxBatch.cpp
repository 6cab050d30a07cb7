//===- MaxBatch.cpp - The largest micro-batch that fits -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Advice/MaxBatch.h"

namespace accel {

std::optional<MaxBatch>
findMaxBatch(const std::function<std::optional<StepPrediction>(int64_t)> &at,
             const std::function<bool(const StepPrediction &)> &fits) {
  MaxBatch result;
  int64_t low = 0, high = 1; // low fits, high does not
  std::optional<StepPrediction> fitting, over;
  // Sizes beyond this cannot be indexed with a model of any use.
  constexpr int64_t most = int64_t(1) << 20;
  while (high <= most) {
    std::optional<StepPrediction> p = at(high);
    if (!p)
      return std::nullopt;
    if (!fits(*p)) {
      over = p;
      break;
    }
    fitting = p;
    low = high;
    high *= 2;
  }
  while (over && high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    std::optional<StepPrediction> p = at(middle);
    if (!p)
      return std::nullopt;
    const bool holds = fits(*p);
    (holds ? low : high) = middle;
    (holds ? fitting : over) = p;
  }
  result.fits = low;
  if (fitting)
    result.at = *fitting;
  if (over)
    result.next = *over;
  return result;
}

} // namespace accel
