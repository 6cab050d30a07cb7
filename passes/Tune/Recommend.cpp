//===- Recommend.cpp - What each change is worth --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/Recommend.h"

#include "passes/Tune/RecomputeFrontier.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace accel::tune {
namespace {

/// A change below this part of a step, or of the memory, is noise.
constexpr double noticeable = 0.005;

class ChangeFinder {
public:
  ChangeFinder(const Space &space, CachedEvaluator &evaluator,
               const ConfigEditor &editor, const Point &from, int64_t budget)
      : space(space), evaluator(evaluator), editor(editor), from(from),
        budget(budget), before(evaluator.evaluate(from)) {}

  void turn(Knob knob) {
    if (!space.open(knob))
      return;
    if (knob == Knob::Checkpoint)
      return checkpoint();
    std::vector<int> values = space.values(knob, from);
    const bool few = (knob == Knob::Mesh && space.mesh(from).whole()) ||
                     knob == Knob::Optimizer;
    if (values.size() > 4 && knob == Knob::Split)
      values = nearSplits(values);
    else if (values.size() > 4 && !few)
      values = {values.front(), values[values.size() / 2], values.back()};
    for (int value : values) {
      Point point = from;
      point[knob] = value;
      if (knob == Knob::Wrap) {
        std::vector<int> kept = space.values(Knob::Reshard, point);
        if (std::find(kept.begin(), kept.end(), point[Knob::Reshard]) ==
            kept.end())
          continue;
      }
      add(knob, point);
    }
  }

  /// The nearest smaller micro-batch, the smallest, and the nearest larger one.
  std::vector<int> nearSplits(const std::vector<int> &values) const {
    auto micro = [&](int value) { return space.splits[value].microBatch; };
    const int64_t own = micro(from[Knob::Split]);
    std::optional<int> near, least, larger;
    for (int value : values)
      if (micro(value) < own) {
        if (!near || micro(value) > micro(*near))
          near = value;
        if (!least || micro(value) < micro(*least))
          least = value;
      } else if (micro(value) > own &&
                 (!larger || micro(value) < micro(*larger))) {
        larger = value;
      }
    std::vector<int> result;
    for (const std::optional<int> &value : {near, least, larger})
      if (value &&
          std::find(result.begin(), result.end(), *value) == result.end())
        result.push_back(*value);
    return result;
  }

  Change make(Knob knob, const Point &point) {
    Change change;
    change.knob = knob;
    change.point = point;
    change.evaluation = evaluator.evaluate(point);
    change.text = editor.describe(knob, point);
    change.expression = editor.express(knob, point);
    change.caution = editor.caution(knob, point);
    change.bytes = change.evaluation.bytes - before.bytes;
    change.seconds = change.evaluation.seconds - before.seconds;
    change.fits = change.evaluation.bytes <= budget;
    return change;
  }

  /// The first step of the recompute frontier that fits.
  void recompute() {
    Point point = from;
    auto frontier =
        recomputeFrontier(space, from[Knob::Split], [&](int s, int g, int v) {
          return evaluator.cost(s, g, v);
        });
    size_t low = 0, high = frontier.size() - 1;
    auto fits = [&](size_t step) {
      point.counts = frontier[step];
      Evaluation j = evaluator.evaluate(point);
      return j.possible && j.bytes <= budget;
    };
    if (!fits(high))
      return;
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (fits(middle))
        high = middle;
      else
        low = middle + 1;
    }
    point.counts = frontier[high];
    add(Knob::Checkpoint, point);
  }

  std::vector<Change> changes;

private:
  void add(Knob knob, const Point &point) {
    if (point == from || !space.problem(point).empty())
      return;
    for (const Change &other : changes)
      if (other.point == point)
        return;
    Change change = make(knob, point);
    if (change.evaluation.possible)
      changes.push_back(std::move(change));
  }

  void checkpoint() {
    Point point = from;
    for (const std::vector<int> &counts : space.uniformCounts()) {
      point.counts = counts;
      add(Knob::Checkpoint, point);
    }
    if (!space.uniformCheckpoint)
      recompute();
  }

  const Space &space;
  CachedEvaluator &evaluator;
  const ConfigEditor &editor;
  const Point &from;
  int64_t budget;
  Evaluation before;
};

} // namespace

std::vector<Change> turns(const Space &space, CachedEvaluator &evaluator,
                          const ConfigEditor &editor, const Point &from,
                          int64_t budgetBytes) {
  ChangeFinder finder(space, evaluator, editor, from, budgetBytes);
  for (int k = 0; k < numKnobs; ++k)
    finder.turn(static_cast<Knob>(k));
  return std::move(finder.changes);
}

std::vector<Change> worthTelling(std::vector<Change> all,
                                 const Evaluation &before, int64_t budgetBytes,
                                 size_t limit, bool estimated) {
  bool fitted = before.bytes <= budgetBytes;
  double smallSeconds = before.seconds * noticeable;
  double smallBytes = static_cast<double>(before.bytes) * noticeable;
  auto saves = [&](const Change &c) {
    return static_cast<double>(-c.bytes) > smallBytes;
  };
  std::erase_if(all, [&](const Change &c) {
    const bool faster = -c.seconds > smallSeconds;
    if (fitted)
      return !(c.fits && (faster || saves(c)));
    // Of an estimate, the idle parts of segments may be what a plan saves.
    return !saves(c) &&
           !(estimated && faster && static_cast<double>(c.bytes) <= smallBytes);
  });
  // Making it fit comes first, then time, then the price of a byte.
  auto rank = [&](const Change &c) {
    return !fitted ? (c.fits ? 0 : 1) : -c.seconds > smallSeconds ? 0 : 1;
  };
  auto price = [&](const Change &c) {
    if (rank(c) == 0)
      return c.seconds;
    if (!fitted)
      return static_cast<double>(c.bytes);
    return c.seconds / static_cast<double>(-c.bytes);
  };
  std::stable_sort(
      all.begin(), all.end(), [&](const Change &a, const Change &b) {
        return rank(a) != rank(b) ? rank(a) < rank(b) : price(a) < price(b);
      });
  std::vector<Change> result;
  for (Change &change : all) {
    auto same =
        std::count_if(result.begin(), result.end(), [&](const Change &c) {
          return c.knob == change.knob &&
                 c.caution.empty() == change.caution.empty() &&
                 c.expression.yaml.empty() == change.expression.yaml.empty();
        });
    if (same < (change.caution.empty() ? 2 : 1) && result.size() < limit)
      result.push_back(std::move(change));
  }
  return result;
}

/// The fastest of the knob's turns is what was refused.
static void refuse(Decided &decided, const std::vector<Change> &turns,
                   CachedEvaluator &evaluator) {
  const Change *best = nullptr;
  for (const Change &change : turns) {
    const Evaluation &j = change.evaluation;
    if (change.knob == decided.knob &&
        (!best || j.seconds < best->evaluation.seconds ||
         (j.seconds == best->evaluation.seconds &&
          j.bytes < best->evaluation.bytes)))
      best = &change;
  }
  if (!best)
    return;
  decided.refused = *best;
  if (!best->fits)
    decided.refusedAt = evaluator.predict(best->point, false).peakWhere;
}

std::vector<Decided> decisions(const Space &space, CachedEvaluator &evaluator,
                               const ConfigEditor &editor, const Point &chosen,
                               int64_t budgetBytes) {
  std::vector<Decided> result;
  ChangeFinder fromConfigured(space, evaluator, editor, space.configured,
                              budgetBytes);
  std::vector<Knob> changed = editor.differences(space.configured, chosen);
  for (int k = 0; k < numKnobs; ++k) {
    Knob knob = static_cast<Knob>(k);
    if (!space.open(knob))
      continue;
    Decided d;
    d.knob = knob;
    d.choice = editor.describe(knob, chosen);
    d.changed =
        std::find(changed.begin(), changed.end(), knob) != changed.end();
    if (d.changed) {
      Point alone = space.configured;
      if (knob == Knob::Checkpoint)
        alone.counts = chosen.counts;
      else
        alone[knob] = chosen[knob];
      d.alone = fromConfigured.make(knob, alone);
    }
    ChangeFinder fromChosen(space, evaluator, editor, chosen, budgetBytes);
    fromChosen.turn(knob);
    refuse(d, fromChosen.changes, evaluator);
    result.push_back(std::move(d));
  }
  return result;
}

std::vector<Decided> configuredDecisions(const Space &space,
                                         CachedEvaluator &evaluator,
                                         const ConfigEditor &editor,
                                         const std::vector<Change> &turns) {
  std::vector<Decided> result;
  for (int k = 0; k < numKnobs; ++k) {
    Knob knob = static_cast<Knob>(k);
    if (!space.open(knob))
      continue;
    Decided d;
    d.knob = knob;
    d.choice = editor.describe(knob, space.configured);
    refuse(d, turns, evaluator);
    if (d.refused)
      result.push_back(std::move(d));
  }
  return result;
}

std::optional<Change> solvedCheckpointing(const Space &space,
                                          CachedEvaluator &evaluator,
                                          const ConfigEditor &editor,
                                          const Point &from,
                                          int64_t budgetBytes) {
  Point start = from;
  start[Knob::ActivationOffload] = 0;
  ChangeFinder finder(space, evaluator, editor, start, budgetBytes);
  finder.recompute();
  if (finder.changes.empty())
    return std::nullopt;
  Change change = std::move(finder.changes.front());
  const Evaluation before = evaluator.evaluate(from);
  change.bytes = change.evaluation.bytes - before.bytes;
  change.seconds = change.evaluation.seconds - before.seconds;
  int64_t kept = 0, all = 0;
  for (size_t g = 0; g < space.groups.size(); ++g) {
    const LayerGroup &group = space.groups[g];
    for (size_t v = 0; group.layer && v < group.variants.size(); ++v) {
      auto cost = [&](size_t variant) {
        return evaluator
            .cost(start[Knob::Split], static_cast<int>(g),
                  static_cast<int>(variant))
            .bytes;
      };
      int n =
          space.count(change.point, static_cast<int>(g), static_cast<int>(v));
      kept += n * cost(v);
      all += n * cost(0);
    }
  }
  const int64_t hundredths =
      all ? (100 * kept + all / 2) / all : 100; // rounded
  change.expression.yaml.clear();
  const bool onHost =
      start[Knob::ParameterOffload] || start[Knob::OptimizerOffload];
  change.expression.notExpressibleInYaml =
      std::string(onHost ? ""
                         : "accel-opt plan --executor accel-run --tune; ") +
      "with torch.compile activation_memory_budget = " +
      std::string(hundredths >= 100 ? "1.0"
                  : hundredths < 10 ? "0.0" + std::to_string(hundredths)
                                    : "0." + std::to_string(hundredths));
  return change;
}

void spreadFront(std::vector<Verdict> &front, const Point *best, size_t most) {
  const size_t n = front.size();
  if (n <= most || most < 2)
    return;
  std::vector<bool> told(n, false);
  for (size_t i = 0; i < most; ++i)
    told[i * (n - 1) / (most - 1)] = true;
  std::vector<Verdict> rows;
  for (size_t i = 0; i < n; ++i)
    if (told[i] || (best && front[i].point == *best))
      rows.push_back(std::move(front[i]));
  front = std::move(rows);
}

void keepFront(std::vector<Verdict> &verdicts) {
  std::stable_sort(verdicts.begin(), verdicts.end(),
                   [](const Verdict &a, const Verdict &b) {
                     return a.evaluation.bytes != b.evaluation.bytes
                                ? a.evaluation.bytes < b.evaluation.bytes
                                : a.evaluation.seconds < b.evaluation.seconds;
                   });
  std::vector<Verdict> front;
  for (Verdict &verdict : verdicts)
    if (front.empty() ||
        verdict.evaluation.seconds < front.back().evaluation.seconds)
      front.push_back(std::move(verdict));
  verdicts = std::move(front);
}

} // namespace accel::tune
