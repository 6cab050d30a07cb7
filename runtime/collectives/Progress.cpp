//===- Progress.cpp - How far the main thread of a rank is ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Progress.h"

#include "runtime/collectives/RankNames.h"

#include <algorithm>
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
  for (size_t rank = 0; rank < places.size(); ++rank) {
    if (!places[rank])
      continue;
    const Place &place = *places[rank];
    if (place.waits)
      waited |= place.stillSeconds >= least;
    else if (missing < 0 || place.count < places[missing]->count)
      missing = static_cast<int>(rank);
  }
  return waited && missing >= 0 && places[missing]->stillSeconds >= least
             ? missing
             : -1;
}

std::string crossedWaits(const std::vector<std::optional<Place>> &places,
                         std::chrono::seconds limit) {
  std::vector<std::pair<int, int64_t>> stands; // the first rank, and how many
  bool differ = false;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const std::optional<Place> &place = places[rank];
    if (!place || !place->waits ||
        place->stillSeconds < static_cast<double>(limit.count()))
      return "";
    differ |= place->count != places[0]->count;
    const auto same =
        std::find_if(stands.begin(), stands.end(), [&](const auto &stand) {
          return places[stand.first]->text == place->text;
        });
    if (same == stands.end())
      stands.emplace_back(static_cast<int>(rank), 1);
    else
      ++same->second;
  }
  if (!differ)
    return "";
  std::stable_sort(stands.begin(), stands.end(),
                   [&](const auto &a, const auto &b) {
                     return places[a.first]->count < places[b.first]->count;
                   });
  std::string text = "all ranks wait, and none has gone on for " +
                     std::to_string(limit.count()) + " s: ";
  constexpr size_t most = 4;
  for (size_t i = 0; i < std::min(stands.size(), most); ++i) {
    const auto &[first, count] = stands[i];
    text += (i ? "; " : "") + rankName(first) +
            (count > 1 ? " and " + std::to_string(count - 1) + " more" : "") +
            " at " + places[first]->text;
  }
  if (stands.size() > most)
    text += "; and others elsewhere";
  return text;
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
  result.stillSeconds = std::chrono::duration<double>(still.look()).count();
  const int64_t number = step.load();
  if (number >= 0)
    result.text = "step " + std::to_string(number) + ", ";
  result.text += name.load();
  return result;
}

} // namespace accel::run
