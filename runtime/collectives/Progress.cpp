//===- Progress.cpp - How far the main thread of a rank is ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Progress.h"

#include <cstdio>

namespace accel::run {

std::string Place::encode() const {
  return std::to_string(count) + (waits ? " waits " : " works ") +
         std::to_string(stillSeconds) + " " + text;
}

std::optional<Place> Place::decode(const std::string &line) {
  Place place;
  long long count = 0;
  char how[8] = {};
  int end = 0;
  if (std::sscanf(line.c_str(), "%lld %7s %lf %n", &count, how,
                  &place.stillSeconds, &end) != 3 ||
      end <= 0)
    return std::nullopt;
  place.count = count;
  place.waits = std::string(how) == "waits";
  place.text = line.substr(end);
  return place;
}

int missingRank(const std::vector<std::optional<Place>> &places,
                std::chrono::seconds limit) {
  const double least = static_cast<double>(limit.count());
  int missing = -1;
  bool waited = false;
  auto behind = [](const Place &a, const Place &b) {
    return a.count != b.count ? a.count < b.count : !a.waits && b.waits;
  };
  for (size_t rank = 0; rank < places.size(); ++rank) {
    if (!places[rank])
      continue;
    const Place &place = *places[rank];
    waited |= place.waits && place.stillSeconds >= least;
    if (missing < 0 || behind(place, *places[missing]))
      missing = static_cast<int>(rank);
  }
  if (missing < 0 || !waited)
    return -1;
  const Place &last = *places[missing];
  bool others = false;
  for (const auto &place : places)
    others |= place && behind(last, *place);
  return others && last.stillSeconds >= least ? missing : -1;
}

Progress &Progress::get() {
  static Progress progress;
  return progress;
}

Place Progress::place() {
  Place result;
  result.count = count.load();
  result.waits = waits.load();
  const int64_t now = result.count + ticks.load();
  if (now != seen) {
    seen = now;
    still.restart();
  }
  result.stillSeconds =
      std::chrono::duration<double>(still.look()).count();
  const int64_t number = step.load();
  if (number >= 0)
    result.text = "step " + std::to_string(number) + ", ";
  result.text += name.load();
  return result;
}

} // namespace accel::run
