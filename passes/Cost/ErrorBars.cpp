//===- ErrorBars.cpp - How far predictions have been off ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/ErrorBars.h"

#include "passes/Cost/ErrorBarsData.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace accel {

namespace {

bool names(const nlohmann::json &list, const std::string &name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// Of y at `x` between the points, which ascend; the ends' values beyond them.
double interpolate(const std::vector<double> &xs, const std::vector<double> &ys,
                   double x) {
  const size_t above = std::lower_bound(xs.begin(), xs.end(), x) - xs.begin();
  if (above == 0)
    return ys.front();
  if (above == xs.size())
    return ys.back();
  const double span = xs[above] - xs[above - 1];
  const double part = span > 0 ? (x - xs[above - 1]) / span : 1;
  return ys[above - 1] + part * (ys[above] - ys[above - 1]);
}

} // namespace

const char *toString(TrainedKind kind) {
  switch (kind) {
  case TrainedKind::Full:
    return "full";
  case TrainedKind::Adapter:
    return "adapter";
  case TrainedKind::Quantised:
    return "quantised";
  case TrainedKind::Fp8:
    return "fp8";
  case TrainedKind::Compiled:
    return "compiled";
  }
  return "";
}

ErrorBars::ErrorBars(Figure figure, const Run &run) {
  static const auto data = nlohmann::json::parse(errorBarsData);
  const auto &bars = data[figure == Figure::Bytes ? "bytes" : "seconds"];
  const auto own = bars["kinds"].find(toString(run.kind));
  known = own != bars["kinds"].end() &&
          run.tokens >= bars["least_tokens"].get<int64_t>() &&
          names(bars["frameworks"], run.framework) &&
          names(bars["targets"], run.target);
  levels = data["levels"].get<std::vector<double>>();
  logRatios = (known ? (*own)["log_ratio"] : bars["log_ratio_elsewhere"])
                  .get<std::vector<double>>();
}

double ErrorBars::factorAt(double level) const {
  return std::exp(interpolate(levels, logRatios, level));
}

ErrorBars::Interval ErrorBars::interval(double level) const {
  return {factorAt((1 - level) / 2), factorAt((1 + level) / 2)};
}

double ErrorBars::below(double factor) const {
  if (factor <= 0)
    return levels.front();
  const double ratio = std::log(factor) + 1e-12; // of exp(x), x
  // Of equal ratios the last: all these levels are reached.
  const auto after =
      std::upper_bound(logRatios.begin(), logRatios.end(), ratio);
  if (after == logRatios.begin())
    return levels.front();
  const size_t at = after - logRatios.begin() - 1;
  if (after == logRatios.end())
    return levels.back();
  const double span = logRatios[at + 1] - logRatios[at];
  return levels[at] +
         (ratio - logRatios[at]) / span * (levels[at + 1] - levels[at]);
}

int64_t ErrorBars::largestWithin(int64_t bytes, double level) const {
  const double largest =
      std::floor(static_cast<double>(bytes) / factorAt(level));
  return std::min(bytes, static_cast<int64_t>(largest));
}

} // namespace accel
