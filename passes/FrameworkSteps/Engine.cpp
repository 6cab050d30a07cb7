//===- Engine.cpp - Streams, links and bytes of a step --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Engine.h"

#include "passes/Cost/ExchangeCost.h"

#include <cmath>

namespace accel {

Picoseconds toPicoseconds(double seconds) {
  constexpr double longest = 100.0 * 24 * 3600 / 1e4; // a hundredth of a step
  if (!(seconds > 0))
    return 0;
  return static_cast<Picoseconds>(
      std::llround(std::min(seconds, longest) * 1e12));
}

std::string exchangesOf(const Candidate &candidate) {
  plan::Mesh mesh = candidate.mesh;
  // Megatron's experts are shared by ranks of no axis of their own.
  const int64_t experts =
      candidate.megatron.experts * candidate.megatron.expertTensor;
  if (experts > 1 && mesh.size(plan::expertAxis) == 1)
    mesh.resize(plan::expertAxis, experts);
  return exchangesOver(mesh);
}

void Engine::reset(bool fold) {
  folding = fold;
  now.level.fill(0);
  now.pool.fill(0);
  now.total = 0;
  now.lane.fill(0);
  now.wire.fill(0);
  now.events.fill(0);
  now.queue.clear();
  now.computed = began = 0;
  now.exposed.fill(0);
  now.place = {};
  window = Window();
  exposedAt.clear();
}

std::array<int64_t, numHoldings + numPools>
Engine::difference(const State &before) const {
  std::array<int64_t, numHoldings + numPools> grown{};
  for (int h = 0; h < numHoldings; ++h)
    grown[h] = now.level[h] - before.level[h];
  for (int p = 0; p < numPools; ++p)
    grown[numHoldings + p] = now.pool[p] - before.pool[p];
  return grown;
}

/// Clocks that this iteration moved stand to the compute stream's as they did
/// before it; those it left alone play no part in the repetition.
bool Engine::sameShape(const State &before) const {
  const Picoseconds step = now.lane[0] - before.lane[0];
  auto same = [&](Picoseconds after, Picoseconds start) {
    return after == start || after - start == step;
  };
  for (int i = 0; i < numLanes; ++i)
    if (!same(now.lane[i], before.lane[i]))
      return false;
  for (int i = 0; i < numWires; ++i)
    if (!same(now.wire[i], before.wire[i]))
      return false;
  for (int i = 0; i < numEvents; ++i)
    if (!same(now.events[i], before.events[i]))
      return false;
  if (now.queue.size() != before.queue.size())
    return false;
  for (size_t i = 0; i < now.queue.size(); ++i)
    if (now.queue[i] - before.queue[i] != step)
      return false;
  return true;
}

/// Adds `times` iterations like the one since `before`.
void Engine::skip(const State &before, int64_t times, int stride) {
  if (times <= 0)
    return;
  auto grow = [&](int64_t &value, int64_t start) {
    value += (value - start) * times;
  };
  int64_t total = now.total - before.total;
  // The last iteration's peak: this one's, on a level that grew.
  if (total > 0) {
    window.peak.total += total * times;
    for (int h = 0; h < numHoldings; ++h)
      window.peak.level[h] += (now.level[h] - before.level[h]) * times;
    window.peak.place.call += stride * static_cast<int>(times);
  }
  for (int p = 0; p < numPools; ++p)
    window.pool[p] +=
        std::max<int64_t>(0, now.pool[p] - before.pool[p]) * times;
  for (int h = 0; h < numHoldings; ++h)
    grow(now.level[h], before.level[h]);
  for (int p = 0; p < numPools; ++p)
    grow(now.pool[p], before.pool[p]);
  grow(now.total, before.total);
  for (int i = 0; i < numLanes; ++i)
    grow(now.lane[i], before.lane[i]);
  for (int i = 0; i < numWires; ++i)
    grow(now.wire[i], before.wire[i]);
  for (int i = 0; i < numEvents; ++i)
    grow(now.events[i], before.events[i]);
  for (size_t i = 0; i < now.queue.size(); ++i)
    grow(now.queue[i], before.queue[i]);
  grow(now.computed, before.computed);
  for (int c = 0; c < numCauses; ++c)
    grow(now.exposed[c], before.exposed[c]);
}

void Engine::merge(Window &into, const Window &from) {
  if (from.peak.total > into.peak.total)
    into.peak = from.peak;
  for (int p = 0; p < numPools; ++p)
    into.pool[p] = std::max(into.pool[p], from.pool[p]);
}

} // namespace accel
