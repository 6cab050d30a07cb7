//===- Replay.cpp - How long what was queued takes ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/dry/Replay.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel::dry {

namespace {
using Seconds = std::function<PlaceSeconds(const std::string &)>;

/// When the messages of each channel arrive, in their order.
struct Channel {
  std::vector<double> arrivals;
  size_t received = 0;
};

class RankReplay {
public:
  RankReplay(const RankTrace &trace, double taken, const Seconds &seconds,
             int steps, std::map<std::string, Channel> &channels)
      : trace(trace), taken(taken), seconds(seconds),
        items(trace.step.size() * steps), channels(channels) {}

  bool isDone() const { return next == items; }

  /// To the end, or to a message that is not sent yet. Whether there was
  /// something to do.
  bool advance() {
    const size_t before = next;
    while (!isDone() && take(trace.step[next % trace.step.size()]))
      ++next;
    return next > before;
  }

  double end() const {
    double last = 0;
    for (const auto &[stream, at] : clock)
      last = std::max(last, at);
    return last;
  }

private:
  bool take(const TraceItem &item) {
    if (item.kind == TraceItem::Receive) {
      const Channel &channel = channels[item.channel];
      if (channel.received == channel.arrivals.size())
        return false;
    }
    if (item.place != place) {
      place = item.place;
      cost = place.empty() ? PlaceSeconds() : seconds(place);
      worked.clear();
    }
    double &now = clock[item.stream];
    switch (item.kind) {
    case TraceItem::Work:
      // All kernels of a place cost what the place costs, at the first one.
      if (worked.insert(item.stream).second)
        now += item.stream == trace.computes ? cost.compute : cost.before;
      break;
    case TraceItem::Collective:
      now = std::max(now, wire) + cost.transfer;
      wire = now;
      clock[trace.computes] += cost.transfer * taken;
      break;
    case TraceItem::Record:
      events[item.event] = now;
      break;
    case TraceItem::Wait:
      now = std::max(now, events[item.event]);
      break;
    case TraceItem::HostWait:
      break; // the host is ahead of the device
    case TraceItem::Send:
      now += cost.transfer;
      channels[item.channel].arrivals.push_back(now);
      break;
    case TraceItem::Receive: {
      Channel &channel = channels[item.channel];
      now = std::max(now, channel.arrivals[channel.received++]);
      break;
    }
    }
    return true;
  }

  const RankTrace &trace;
  const double taken;
  const Seconds &seconds;
  const size_t items;
  std::map<std::string, Channel> &channels;
  size_t next = 0;
  std::map<int, double> clock; // by stream: when it is free
  std::map<uint64_t, double> events;
  double wire = 0;
  std::string place;
  PlaceSeconds cost;
  std::set<int> worked; // streams that have had the work of this place
};
} // namespace

std::optional<double> replay(const std::vector<RankTrace> &ranks, double taken,
                             const Seconds &seconds, int steps) {
  std::map<std::string, Channel> channels;
  std::vector<RankReplay> replays;
  replays.reserve(ranks.size());
  for (const RankTrace &rank : ranks)
    replays.emplace_back(rank, taken, seconds, steps, channels);
  for (bool moved = true; moved;) {
    moved = false;
    for (RankReplay &rank : replays)
      moved |= rank.advance();
  }
  double last = 0;
  for (const RankReplay &rank : replays) {
    if (!rank.isDone())
      return std::nullopt;
    last = std::max(last, rank.end());
  }
  return last;
}

} // namespace accel::dry
