//===- HappensBefore.cpp - Order of accesses on streams -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/dry/HappensBefore.h"

#include <algorithm>

namespace accel::dry {

void Clock::tick(Actor actor) {
  if (static_cast<size_t>(actor) >= times.size())
    times.resize(actor + 1);
  ++times[actor];
}

void Clock::join(const Clock &other) {
  if (times.size() < other.times.size())
    times.resize(other.times.size());
  for (size_t i = 0; i < other.times.size(); ++i)
    times[i] = std::max(times[i], other.times[i]);
}

bool Clock::includes(const Clock &other) const {
  for (size_t i = 0; i < other.times.size(); ++i)
    if (of(static_cast<Actor>(i)) < other.times[i])
      return false;
  return true;
}

HappensBefore::HappensBefore() { addStream("the host"); }

Actor HappensBefore::addStream(std::string name) {
  clocks.emplace_back();
  names.push_back(std::move(name));
  return static_cast<Actor>(clocks.size()) - 1;
}

Moment HappensBefore::enqueue(Actor stream) {
  if (stream != host)
    clocks[stream].join(clocks[host]);
  clocks[stream].tick(stream);
  return {stream, clocks[stream].of(stream)};
}

void HappensBefore::record(uint64_t event, Actor stream) {
  clocks[stream].join(clocks[host]);
  events[event] = clocks[stream];
}

bool HappensBefore::wait(Actor stream, uint64_t event) {
  auto at = events.find(event);
  if (at == events.end())
    return false;
  clocks[stream].join(at->second);
  return true;
}

void HappensBefore::synchronize(Actor stream) {
  clocks[host].join(clocks[stream]);
}

bool HappensBefore::synchronizeEvent(uint64_t event) {
  return wait(host, event);
}

bool HappensBefore::hasPassed(uint64_t event) const {
  const auto at = events.find(event);
  return at == events.end() || clocks[host].includes(at->second);
}

void HappensBefore::synchronizeAll() {
  for (size_t i = 1; i < clocks.size(); ++i)
    clocks[host].join(clocks[i]);
}

void HappensBefore::split(uint64_t at) {
  auto next = memory.upper_bound(at);
  if (next == memory.begin()) {
    memory.emplace(at, Shadow());
    return;
  }
  auto under = std::prev(next);
  if (under->first != at)
    memory.emplace_hint(next, at, under->second);
}

int HappensBefore::intern(const std::string &text) {
  auto [at, isNew] = textIndex.emplace(text, texts.size());
  if (isNew)
    texts.push_back(text);
  return at->second;
}

void HappensBefore::race(const char *kind, const Access &first,
                         const Access &second) {
  ++total;
  ++found[std::string(kind) + ": '" + texts[first.what] + "' on " +
          names[first.actor] + " and '" + texts[second.what] + "' on " +
          names[second.actor]];
}

void HappensBefore::access(Actor stream, uint64_t begin, uint64_t end,
                           bool writes, const std::string &what) {
  if (begin >= end)
    return;
  ++accesses;
  const Clock &now = clocks[stream];
  Access access;
  access.actor = stream;
  access.time = now.of(stream);
  access.what = intern(what);
  split(begin);
  split(end);
  for (auto at = memory.find(begin); at != memory.end() && at->first < end;
       ++at) {
    Shadow &shadow = at->second;
    if (!shadow.write.before(now))
      race(writes ? "write after write" : "read after write", shadow.write,
           access);
    if (!writes) {
      auto own = std::find_if(
          shadow.reads.begin(), shadow.reads.end(),
          [&](const Access &read) { return read.actor == stream; });
      if (own == shadow.reads.end())
        shadow.reads.push_back(access);
      else
        *own = access;
      continue;
    }
    for (const Access &read : shadow.reads)
      if (!read.before(now))
        race("write after read", read, access);
    shadow.reads.clear();
    shadow.write = access;
  }
}

std::vector<std::pair<uint64_t, uint64_t>>
HappensBefore::writtenOtherwise(uint64_t begin, uint64_t end,
                                const std::vector<std::string> &known) {
  std::vector<std::pair<uint64_t, uint64_t>> parts;
  if (begin >= end)
    return parts;
  split(begin);
  split(end);
  for (auto at = memory.find(begin); at != memory.end() && at->first < end;) {
    const Access &write = at->second.write;
    const uint64_t from = at->first;
    const uint64_t to = ++at == memory.end() ? end : at->first;
    if (write.time != 0 &&
        std::find(known.begin(), known.end(), texts[write.what]) != known.end())
      continue;
    if (!parts.empty() && parts.back().second == from)
      parts.back().second = to;
    else
      parts.emplace_back(from, to);
  }
  return parts;
}

void HappensBefore::forget(uint64_t begin, uint64_t end) {
  if (begin >= end)
    return;
  split(begin);
  split(end);
  memory.erase(memory.find(begin), memory.find(end));
  // What was before `begin` must not reach into the range.
  memory.emplace(begin, Shadow());
}

} // namespace accel::dry
