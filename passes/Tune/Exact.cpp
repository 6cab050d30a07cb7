//===- Exact.cpp - Every setting, for small cases -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/Exact.h"

#include <algorithm>

namespace accel::tune {
namespace {

/// Calls `visit` with every point; stops where it returns false.
class Enumerator {
public:
  Enumerator(const Space &space,
             const std::function<bool(const Point &)> &visit)
      : space(space), visit(visit) {}

  bool run() { return knob(0, space.configured); }

private:
  bool knob(int index, Point point) {
    // Reshard's values follow from the wrap, which comes before it.
    if (index == numKnobs) {
      // None of the counts, of which there are many, is possible then.
      if (!space.problemBesideCounts(point).empty())
        return true;
      return space.open(Knob::Checkpoint) && space.uniformCheckpoint
                 ? uniform(point)
                 : counts(0, 0, 0, point);
    }
    Knob k = static_cast<Knob>(index);
    if (k == Knob::Checkpoint)
      return knob(index + 1, point);
    for (int value : space.values(k, point)) {
      point[k] = value;
      if (!knob(index + 1, point))
        return false;
    }
    return true;
  }

  bool uniform(Point &point) {
    for (const std::vector<int> &counts : space.uniformCounts()) {
      point.counts = counts;
      if (space.problem(point).empty() && !visit(point))
        return false;
    }
    return true;
  }

  bool counts(size_t g, size_t v, int used, Point &point) {
    if (!space.open(Knob::Checkpoint) || g == space.groups.size())
      return !space.problem(point).empty() || visit(point);
    const LayerGroup &group = space.groups[g];
    int left = static_cast<int>(group.calls.size()) - used;
    if (v + 1 == group.variants.size()) {
      if (left && !group.allowed[v])
        return true;
      point.counts[group.offset + v] = left;
      return counts(g + 1, 0, 0, point);
    }
    const bool full =
        group.layer && space.offloadNeedsFull && point[Knob::ActivationOffload];
    for (int n = 0; n <= (group.allowed[v] && !full ? left : 0); ++n) {
      point.counts[group.offset + v] = n;
      if (!counts(g, v + 1, used + n, point))
        return false;
    }
    return true;
  }

  const Space &space;
  const std::function<bool(const Point &)> &visit;
};

} // namespace

int64_t countPoints(const Space &space, int64_t limit) {
  int64_t n = 0;
  bool whole =
      Enumerator(space, [&](const Point &) { return ++n <= limit; }).run();
  return whole ? n : -1;
}

SearchResult enumerate(const Space &space, const Evaluate &evaluate,
                       int64_t budgetBytes) {
  SearchResult result;
  result.configured = {space.configured, evaluate(space.configured)};
  result.smallest = result.configured; // where nothing is possible
  std::vector<Verdict> all;
  Enumerator(space, [&](const Point &point) {
    Verdict v = {point, evaluate(point)};
    ++result.evaluations;
    if (!v.evaluation.possible)
      return true;
    if (all.empty() || v.evaluation.bytes < result.smallest.evaluation.bytes)
      result.smallest = v;
    if (v.evaluation.bytes <= budgetBytes &&
        (!result.best ||
         v.evaluation.seconds < result.best->evaluation.seconds))
      result.best = v;
    all.push_back(std::move(v));
    // Only the front is wanted: keep the list short.
    if (all.size() > (1u << 16))
      all = paretoFront(std::move(all));
    return true;
  }).run();
  result.front = paretoFront(std::move(all));
  return result;
}

int quickestOptimizer(const Space &space, const Evaluate &evaluate) {
  Point point = space.configured;
  int quickest = point[Knob::Optimizer];
  double least = evaluate(point).seconds;
  for (int option : space.values(Knob::Optimizer, point)) {
    point[Knob::Optimizer] = option;
    const Evaluation with = evaluate(point);
    if (with.possible && with.seconds < least) {
      quickest = option;
      least = with.seconds;
    }
  }
  return quickest;
}

std::vector<Verdict> paretoFront(std::vector<Verdict> all) {
  std::sort(all.begin(), all.end(), [](const Verdict &a, const Verdict &b) {
    if (a.evaluation.bytes != b.evaluation.bytes)
      return a.evaluation.bytes < b.evaluation.bytes;
    if (a.evaluation.seconds != b.evaluation.seconds)
      return a.evaluation.seconds < b.evaluation.seconds;
    return a.point < b.point;
  });
  std::vector<Verdict> front;
  for (Verdict &v : all)
    if (front.empty() || v.evaluation.seconds < front.back().evaluation.seconds)
      front.push_back(std::move(v));
  return front;
}

} // namespace accel::tune
