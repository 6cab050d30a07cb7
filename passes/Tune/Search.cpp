//===- Search.cpp - The fastest setting that fits -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/Search.h"

#include "passes/Tune/Exact.h"
#include "passes/Tune/RecomputeFrontier.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace accel::tune {
namespace {

/// Knobs that bound whole parts of the space, and those that are solved within.
const Knob coarse[] = {Knob::Mesh,
                       Knob::Split,
                       Knob::Precision,
                       Knob::ZeroStage,
                       Knob::Loss,
                       Knob::ParameterOffload,
                       Knob::OptimizerOffload,
                       Knob::Accumulation};
const Knob fine[] = {Knob::Reshard,         Knob::Wrap,
                     Knob::ForwardPrefetch, Knob::BackwardPrefetch,
                     Knob::Bucket,          Knob::ActivationOffload,
                     Knob::Optimizer,       Knob::Reductions};
/// The most generous setting of a part is not quite a bound: coarser units or
/// another prefetch may still win this much.
constexpr double boundSlack = 0.9;
/// Of the bytes, what a cut of the loss must leave at most to be searched.
constexpr double noteworthy = 0.99;
/// Parts whose best points are worth exchanging changes in.
constexpr size_t polished = 3;
/// Variants between which a layer is exchanged: positions apart by bytes, and
/// both ends.
constexpr size_t nearVariants = 3;
/// Budgets at which the exact knapsack is tried around a point.
constexpr int sharesTried = 4;

bool faster(const Evaluation &a, const Evaluation &b) {
  return a.seconds != b.seconds ? a.seconds < b.seconds : a.bytes < b.bytes;
}

int nearestOf(const std::vector<int> &values, int wanted) {
  return *std::min_element(values.begin(), values.end(), [&](int a, int b) {
    return std::abs(a - wanted) < std::abs(b - wanted);
  });
}

class Searcher {
public:
  Searcher(const Space &space, const Evaluate &evaluate, const CostOf &costOf,
           const SearchOptions &options)
      : space(space), evaluate(evaluate), costOf(costOf), options(options) {}

  SearchResult run() {
    if (options.enumerateUpTo > 0 &&
        countPoints(space, options.enumerateUpTo) > 0)
      return runExact();
    result.configured = {space.configured, evaluated(space.configured)};
    offer(result.configured);
    for (const Point &start : options.starts)
      offer({start, evaluated(start)});
    std::vector<Verdict> solved;
    if (best && !options.starts.empty())
      solved.push_back(*best);
    const std::vector<Part> parts = bounds();
    for (const Part &part : parts) {
      if (!spare() ||
          (best && part.fast.seconds * boundSlack >= best->evaluation.seconds))
        break;
      if (std::optional<Verdict> v = solvePart(part.point))
        solved.push_back(std::move(*v));
    }
    std::stable_sort(solved.begin(), solved.end(),
                     [](const Verdict &a, const Verdict &b) {
                       return faster(a.evaluation, b.evaluation);
                     });
    for (size_t i = 0; i < solved.size() && i < polished; ++i)
      polish(solved[i]);
    simplify();
    fillFront(parts);
    result.best = best;
    finish();
    return std::move(result);
  }

private:
  /// One setting of the coarse knobs.
  struct Part {
    Point point;
    Evaluation fast; // the most generous setting of the fine knobs
  };

  bool fits(const Evaluation &j) const {
    return j.possible && j.bytes <= options.budgetBytes;
  }
  bool spare() const { return result.evaluations < options.maxEvaluations; }

  Evaluation evaluated(const Point &point) {
    auto it = known.find(point);
    if (it != known.end())
      return it->second;
    Evaluation j;
    j.possible = false;
    if (!spare()) {
      result.complete = false;
      return j;
    }
    if (space.problem(point).empty()) {
      j = evaluate(point);
      ++result.evaluations;
    }
    known.emplace(point, j);
    return j;
  }

  bool offer(const Verdict &verdict) {
    if (!fits(verdict.evaluation) ||
        (best && !faster(verdict.evaluation, best->evaluation)))
      return false;
    best = verdict;
    return true;
  }

  const std::vector<std::vector<int>> &recompute(int split) {
    auto [it, isNew] = frontiers.try_emplace(split);
    if (isNew)
      it->second = recomputeFrontier(space, split, costOf);
    return it->second;
  }

  SearchResult runExact() {
    SearchResult exact = enumerate(space, evaluate, options.budgetBytes);
    best = exact.best;
    known.emplace(space.configured, exact.configured.evaluation);
    simplify();
    exact.best = best;
    exact.exact = true;
    return exact;
  }

  //===--- Parts ----------------------------------------------------------===//

  std::vector<Point> coarsePoints() const {
    std::vector<Point> points = {space.configured};
    for (Knob knob : coarse) {
      std::vector<Point> more;
      for (const Point &point : points)
        for (int value : space.values(knob, point)) {
          more.push_back(point);
          more.back()[knob] = value;
        }
      points = std::move(more);
    }
    // Too many: only those that turn few coarse knobs.
    for (int turns = static_cast<int>(std::size(coarse));
         points.size() * 4 > static_cast<size_t>(options.maxEvaluations) &&
         turns > 0;
         --turns)
      std::erase_if(points, [&](const Point &point) {
        int n = 0;
        for (Knob knob : coarse)
          n += point[knob] != space.configured[knob];
        return n >= turns;
      });
    return points;
  }

  /// A form of the loss that saves no time and next to no bytes, because the
  /// peak is elsewhere, need not be searched.
  bool frees(Point point) {
    if (point[Knob::Loss] == space.configured[Knob::Loss])
      return true;
    const Evaluation here = evaluated(point);
    point[Knob::Loss] = space.configured[Knob::Loss];
    const Evaluation whole = evaluated(point);
    const bool fewer = static_cast<double>(here.bytes) <
                       static_cast<double>(whole.bytes) * noteworthy;
    return here.possible && (fewer || here.seconds < whole.seconds ||
                             (fits(here) && !fits(whole)));
  }

  std::vector<Part> bounds() {
    int finest = 0;
    for (int w : space.values(Knob::Wrap, space.configured))
      if (space.wraps[w].perLayer < space.wraps[finest].perLayer)
        finest = w;
    const int quickest = quickestOptimizer(space, evaluate);
    std::vector<Part> parts;
    for (Point point : coarsePoints()) {
      if (!point[Knob::ParameterOffload] && !point[Knob::OptimizerOffload])
        point[Knob::Optimizer] = quickest;
      const auto &frontier = recompute(point[Knob::Split]);
      Point small = point, fast = point;
      if (space.open(Knob::Wrap))
        small[Knob::Wrap] = finest;
      for (Knob knob :
           {Knob::Reshard, Knob::ForwardPrefetch, Knob::BackwardPrefetch}) {
        small[knob] = space.values(knob, small).front();
        fast[knob] = space.values(knob, fast).back();
      }
      small[Knob::Reductions] = space.values(Knob::Reductions, small).back();
      fast[Knob::Reductions] = space.values(Knob::Reductions, fast).front();
      small.counts = frontier.back();
      fast.counts = frontier.front();
      fast[Knob::ActivationOffload] =
          space.values(Knob::ActivationOffload, fast).front();
      Evaluation fastEvaluation = evaluated(fast);
      if (!frees(small) && !frees(fast))
        continue;
      if (fits(fastEvaluation)) {
        offer({fast, fastEvaluation});
        parts.push_back({point, fastEvaluation});
        continue;
      }
      bool any = fits(evaluated(small));
      for (size_t back = 1; !any && back < nearLast(frontier); back *= 2) {
        small.counts = frontier[frontier.size() - 1 - back];
        any = fits(evaluated(small));
      }
      small.counts = frontier.back();
      if (!any) {
        small[Knob::ActivationOffload] =
            space.values(Knob::ActivationOffload, small).back();
        any = fits(evaluated(small));
      }
      for (int o : space.values(Knob::Optimizer, small))
        any = any || fits(evaluated(turned(small, Knob::Optimizer, o)));
      if (any && fastEvaluation.possible)
        parts.push_back({point, fastEvaluation});
    }
    std::stable_sort(
        parts.begin(), parts.end(),
        [](const Part &a, const Part &b) { return faster(a.fast, b.fast); });
    return parts;
  }

  //===--- One part -------------------------------------------------------===//

  /// The first step from `point` on that fits `budget`.
  std::optional<Verdict> climb(Point point, int64_t budget) {
    const auto &frontier = recompute(point[Knob::Split]);
    auto at = [&](size_t step) {
      point.counts = frontier[step];
      return evaluated(point);
    };
    auto within = [&](size_t step) {
      Evaluation j = at(step);
      return j.possible && j.bytes <= budget;
    };
    size_t high = frontier.size() - 1;
    // What is recomputed takes memory too: one before the last may fit.
    for (size_t back = 1; !within(high); back *= 2) {
      if (back >= nearLast(frontier))
        return std::nullopt;
      high = frontier.size() - 1 - back;
    }
    if (space.offloadNeedsFull && point[Knob::ActivationOffload])
      return Verdict{point, at(high)};
    size_t low = 0; // the answer is in [low, high]
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (within(middle))
        high = middle;
      else
        low = middle + 1;
    }
    Evaluation j = at(high);
    return Verdict{point, j};
  }

  Point turned(Point point, Knob knob, int value) const {
    point[knob] = value;
    if (knob == Knob::ActivationOffload && value && space.offloadNeedsFull &&
        space.open(Knob::Checkpoint))
      for (const LayerGroup &group : space.groups)
        if (group.layer) {
          auto counts = point.counts.begin() + group.offset;
          std::fill_n(counts, group.variants.size(), 0);
          counts[group.variants.size() - 1] =
              static_cast<int>(group.calls.size());
        }
    if (knob == Knob::Wrap)
      point[Knob::Reshard] =
          nearestOf(space.values(Knob::Reshard, point), point[Knob::Reshard]);
    return point;
  }

  std::optional<Verdict> solvePart(const Point &part) {
    Point start = part;
    start[Knob::Reshard] = space.values(Knob::Reshard, start).front();
    std::optional<Verdict> here = climb(start, options.budgetBytes);
    if (!here) {
      for (Knob knob : {Knob::ForwardPrefetch, Knob::BackwardPrefetch})
        start[knob] = space.values(knob, start).front();
      here = climb(start, options.budgetBytes);
    }
    if (!here && space.open(Knob::Reductions)) {
      start[Knob::Reductions] = space.values(Knob::Reductions, start).back();
      here = climb(start, options.budgetBytes);
    }
    if (!here && space.open(Knob::ActivationOffload)) {
      start[Knob::ActivationOffload] =
          space.values(Knob::ActivationOffload, start).back();
      here = climb(start, options.budgetBytes);
    }
    for (Knob knob : {Knob::Wrap, Knob::Optimizer})
      for (int value : space.values(knob, start))
        if (!here)
          here = climb(turned(start, knob, value), options.budgetBytes);
    if (!here)
      return std::nullopt;
    bool better = true;
    for (int round = 0; better && round < 4; ++round) {
      better = false;
      for (Knob knob : fine)
        better |= descend(knob, *here);
    }
    offer(*here);
    return here;
  }

  /// Tries the values of one knob, each with its own step, near the best all.
  bool descend(Knob knob, Verdict &here) {
    std::vector<int> values = space.values(knob, here.point);
    if (values.size() < 2)
      return false;
    bool better = false;
    auto attempt = [&](int value) {
      if (value == here.point[knob])
        return;
      std::optional<Verdict> v =
          climb(turned(here.point, knob, value), options.budgetBytes);
      if (v && faster(v->evaluation, here.evaluation)) {
        here = *v;
        better = true;
      }
    };
    for (int value : spread(values, 6))
      attempt(value);
    // Towards the neighbours, in halving strides.
    for (size_t stride = values.size() / 6; stride >= 1; stride /= 2) {
      auto at = std::find(values.begin(), values.end(), here.point[knob]);
      if (at == values.end())
        break;
      size_t i = at - values.begin();
      if (i >= stride)
        attempt(values[i - stride]);
      if (i + stride < values.size())
        attempt(values[i + stride]);
    }
    return better;
  }

  //===--- Exchanges ------------------------------------------------------===//

  std::vector<Point> neighbours(const Point &point) const {
    std::vector<Point> result;
    for (int k = 0; k < numKnobs; ++k) {
      Knob knob = static_cast<Knob>(k);
      // The optimizer's form trades with nothing else.
      if (knob == Knob::Checkpoint || knob == Knob::Optimizer ||
          !space.open(knob))
        continue;
      std::vector<int> values = space.values(knob, point);
      auto at = std::find(values.begin(), values.end(), point[knob]);
      if (at == values.end())
        continue;
      std::vector<int> tried = {values.front(), values.back()};
      if (values.size() <= 4)
        tried = values;
      if (at != values.begin())
        tried.push_back(*(at - 1));
      if (at + 1 != values.end())
        tried.push_back(*(at + 1));
      std::sort(tried.begin(), tried.end());
      tried.erase(std::unique(tried.begin(), tried.end()), tried.end());
      for (int value : tried)
        if (value != point[knob])
          result.push_back(turned(point, knob, value));
    }
    if (space.open(Knob::Checkpoint) && !space.uniformCheckpoint)
      shifts(point, result);
    return result;
  }

  void shifts(const Point &point, std::vector<Point> &result) const {
    for (const LayerGroup &group : space.groups)
      for (size_t a = 0; a < group.variants.size(); ++a)
        for (size_t b = 0; b < group.variants.size(); ++b) {
          int available = point.counts[group.offset + a];
          if (a == b || !group.allowed[b])
            continue;
          if (b != 0 && b + 1 != group.variants.size() &&
              std::max(a, b) - std::min(a, b) > nearVariants)
            continue;
          for (int n = 1; n <= available;
               n = n < available && n * 4 > available ? available : n * 4) {
            result.push_back(point);
            result.back().counts[group.offset + a] -= n;
            result.back().counts[group.offset + b] += n;
          }
        }
  }

  int64_t bytesOf(const Point &point) const {
    int64_t bytes = 0;
    for (size_t g = 0; g < space.groups.size(); ++g)
      for (size_t v = 0; v < space.groups[g].variants.size(); ++v)
        if (int n =
                space.count(point, static_cast<int>(g), static_cast<int>(v)))
          bytes += n * costOf(point[Knob::Split], static_cast<int>(g),
                              static_cast<int>(v))
                           .bytes;
    return bytes;
  }

  /// What the knapsack makes of the bytes that the point's checkpointing and
  /// the rest of the budget are. The peak need not grow byte by byte with what
  /// is kept, so a share that turns out too large is tried smaller.
  void share(Verdict &here) {
    if (!options.shareOut || !space.open(Knob::Checkpoint) ||
        space.uniformCheckpoint)
      return;
    int64_t bytes =
        bytesOf(here.point) + options.budgetBytes - here.evaluation.bytes;
    for (int i = 0; i < sharesTried && bytes >= 0 && spare(); ++i) {
      Verdict v = here;
      v.point.counts = options.shareOut(v.point[Knob::Split], bytes);
      if (v.point.counts.empty() || v.point == here.point)
        return;
      v.evaluation = evaluated(v.point);
      if (fits(v.evaluation) && faster(v.evaluation, here.evaluation))
        here = v;
      if (!v.evaluation.possible || fits(v.evaluation))
        return;
      bytes = std::min(bytes, bytesOf(v.point)) -
              (v.evaluation.bytes - options.budgetBytes);
    }
  }

  void polish(Verdict here) {
    share(here);
    for (int round = 0; round < 16 && spare(); ++round) {
      Verdict from = here;
      auto accept = [&](const Point &point) {
        Verdict v = {point, evaluated(point)};
        if (fits(v.evaluation) && faster(v.evaluation, here.evaluation))
          here = v;
        return v;
      };
      std::vector<Verdict> tempting; // faster, but too big
      for (const Point &point : neighbours(from.point)) {
        Verdict v = accept(point);
        if (v.evaluation.possible && !fits(v.evaluation) &&
            v.evaluation.seconds < from.evaluation.seconds)
          tempting.push_back(std::move(v));
      }
      if (here.point != from.point)
        continue;
      std::stable_sort(tempting.begin(), tempting.end(),
                       [](const Verdict &a, const Verdict &b) {
                         return a.evaluation.bytes < b.evaluation.bytes;
                       });
      if (tempting.size() > 12)
        tempting.resize(12);
      for (const Verdict &v : tempting)
        for (const Point &point : neighbours(v.point))
          if (spare())
            accept(point);
      if (here.point == from.point)
        break;
    }
    offer(here);
  }

  /// Takes back what is not worth a line of configuration.
  void simplify() {
    if (!best)
      return;
    double limit = best->evaluation.seconds * (1 + options.worthwhile);
    auto accept = [&](const Point &point) {
      Evaluation j = evaluated(point);
      if (fits(j) && j.seconds <= limit)
        best = Verdict{point, j};
    };
    if (best->point.counts != space.configured.counts) {
      Point same = best->point;
      same.counts = space.configured.counts;
      accept(same);
      for (const LayerGroup &group : space.groups) {
        same = best->point;
        std::copy_n(space.configured.counts.begin() + group.offset,
                    group.variants.size(), same.counts.begin() + group.offset);
        accept(same);
      }
    }
    for (int k = numKnobs; k-- > 0;) {
      Knob knob = static_cast<Knob>(k);
      if (knob != Knob::Checkpoint && space.open(knob) &&
          best->point[knob] != space.configured[knob])
        accept(turned(best->point, knob, space.configured[knob]));
    }
  }

  //===--- The front ------------------------------------------------------===//

  void fillFront(const std::vector<Part> &parts) {
    int64_t least = 0, most = 0;
    for (const auto &[point, j] : known)
      if (j.possible) {
        least = least ? std::min(least, j.bytes) : j.bytes;
        most = std::max(most, j.bytes);
      }
    std::vector<Point> seeds;
    if (best)
      seeds.push_back(best->point);
    for (size_t i = 0; i < parts.size() && i < 2; ++i)
      seeds.push_back(parts[i].point);
    for (const Point &seed : seeds)
      for (int level = 1; level <= options.frontLevels && spare(); ++level) {
        int64_t budget = least + (most - least) * level / options.frontLevels;
        for (int kept : spread(space.values(Knob::Reshard, seed), 2))
          climb(turned(seed, Knob::Reshard, kept), budget);
      }
  }

  /// Of points that are as good, the one that changes less.
  void simplifyFront() {
    for (const Verdict &v : paretoFront(possible()))
      for (Knob knob : {Knob::ForwardPrefetch, Knob::BackwardPrefetch})
        if (space.open(knob))
          evaluated(turned(v.point, knob, space.configured[knob]));
  }

  std::vector<Verdict> possible() const {
    std::vector<Verdict> all;
    for (const auto &[point, j] : known)
      if (j.possible)
        all.push_back({point, j});
    return all;
  }

  int changes(const Point &point) const {
    int n = point.counts != space.configured.counts;
    for (int k = 0; k < numKnobs; ++k)
      n += point.at[k] != space.configured.at[k];
    return n;
  }

  void finish() {
    simplifyFront();
    const std::vector<Verdict> all = possible();
    result.smallest = result.configured;
    for (const Verdict &v : all)
      if (!result.smallest.evaluation.possible ||
          v.evaluation.bytes < result.smallest.evaluation.bytes)
        result.smallest = v;
    // Where two are alike within what is worthwhile, fewer changes win.
    result.front = paretoFront(all);
    for (Verdict &v : result.front)
      for (const Verdict &other : all)
        if (changes(other.point) < changes(v.point) &&
            other.evaluation.seconds <=
                v.evaluation.seconds * (1 + options.worthwhile) &&
            static_cast<double>(other.evaluation.bytes) <=
                static_cast<double>(v.evaluation.bytes) *
                    (1 + options.worthwhile))
          v = other;
    result.front = paretoFront(std::move(result.front));
    if (best)
      result.front.push_back(*best);
    result.front = paretoFront(std::move(result.front));
  }

  const Space &space;
  const Evaluate &evaluate;
  const CostOf &costOf;
  const SearchOptions &options;
  SearchResult result;
  std::optional<Verdict> best;
  std::map<Point, Evaluation> known;
  std::map<int, std::vector<std::vector<int>>> frontiers;
};

} // namespace

SearchResult search(const Space &space, const Evaluate &evaluate,
                    const CostOf &costOf, const SearchOptions &options) {
  return Searcher(space, evaluate, costOf, options).run();
}

} // namespace accel::tune
