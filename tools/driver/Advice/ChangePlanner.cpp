//===- ChangePlanner.cpp - Changes as plans of them -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Advice/ChangePlanner.h"

#include "passes/FrameworkSteps/HostRoom.h"

#include <algorithm>

namespace accel {

/// Without a target the machine is a stand-in: nothing of it may show.
StepPrediction ChangePlanner::trimmed(StepPrediction p) const {
  if (in.target)
    return p;
  p.reservedBytes = p.deviceBytes = p.peakBytes;
  p.stepSeconds = p.computeSeconds = p.exposedSeconds = 0;
  p.recomputeSeconds = p.optimizerSeconds = 0;
  p.tokensPerSecondPerDevice = 0;
  p.exposed.clear();
  return p;
}

std::optional<StepPrediction>
ChangePlanner::plannedAt(tune::CachedEvaluator &evaluator,
                         const tune::Point &point, bool onDevice) const {
  if (in.executor == FrameworkKind::AccelRun) {
    auto [known, isNew] = programs.try_emplace(point);
    if (isNew)
      if (auto p = in.planProgram(advice, point)) {
        // Not told apart in a program.
        p->recomputeSeconds = evaluator.predict(point, false).recomputeSeconds;
        known->second = trimmed(*p);
      }
    return known->second;
  }
  if (!in.target)
    return trimmed(evaluator.predict(point, true));
  return evaluator.planned(point, allocator(onDevice));
}

bool ChangePlanner::fitsAsPlanned(tune::CachedEvaluator &evaluator,
                                  const tune::Point &point,
                                  StepPrediction &predicted) const {
  auto p = plannedAt(evaluator, point, /*onDevice=*/false);
  predicted = p ? *p : evaluator.predict(point, true);
  return p && fits(predicted);
}

void ChangePlanner::planAhead(tune::CachedEvaluator &evaluator,
                              const std::vector<tune::Point> &points) const {
  if (plansSettings())
    evaluator.planAll(points, allocator(/*onDevice=*/false));
}

static tune::Evaluation evaluationOf(const StepPrediction &p) {
  tune::Evaluation j;
  j.possible = true;
  j.bytes = p.deviceBytes;
  j.seconds = p.stepSeconds;
  return j;
}

tune::Evaluation ChangePlanner::asConfigured() const {
  return evaluationOf(advice.configured);
}

bool ChangePlanner::fits(const StepPrediction &p) const {
  return p.deviceBytes <= advice.roomBytes &&
         hostHolds(target, in.executor, p.hostBytes);
}

/// A line or an option says what is changed.
static bool saysSo(const tune::ConfigEdit &edit) {
  return !edit.yaml.empty() || !edit.flags.empty();
}

std::optional<StepPrediction>
ChangePlanner::replan(const std::vector<tune::YamlLine> &lines,
                      const tune::Flags &flags) const {
  return in.replan({{lines, "", flags}}).front();
}

tune::AllocatorOf ChangePlanner::allocator(bool onDevice) const {
  return {in.inputs.allocator, target.contextBytes, in.budgetBytes.value_or(0),
          onDevice && returnsSegments()};
}

/// What a plan of `change` says; nothing if the configuration is refused. A
/// change that neither a line nor an option says is planned as a setting.
std::optional<StepPrediction>
ChangePlanner::planned(tune::CachedEvaluator &evaluator,
                       const tune::Change &change) const {
  const tune::ConfigEdit &e = change.expression;
  if (saysSo(e)) {
    auto p = replan(e.yaml, e.flags);
    return p ? std::optional(trimmed(*p)) : std::nullopt;
  }
  return plannedAt(evaluator, change.point);
}

void ChangePlanner::setFigures(tune::Change &change, const StepPrediction &p,
                               const tune::Evaluation &before) const {
  change.evaluation = evaluationOf(p);
  change.bytes = p.deviceBytes - before.bytes;
  change.seconds = p.stepSeconds - before.seconds;
  change.fits = fits(p);
}

void ChangePlanner::planAnew(tune::CachedEvaluator &evaluator,
                             tune::Change &change,
                             const tune::Evaluation &before) const {
  if (auto p = plannedAt(evaluator, change.point))
    setFigures(change, *p, before);
}

/// Leaves out changes whose configuration is refused.
void ChangePlanner::planAnew(tune::CachedEvaluator &evaluator,
                             std::vector<tune::Change> &changes) const {
  std::vector<tune::ConfigEdit> edits;
  std::vector<tune::Point> settings;
  for (const tune::Change &change : changes)
    if (saysSo(change.expression))
      edits.push_back(change.expression);
    else
      settings.push_back(change.point);
  std::optional<tune::CachedEvaluator::Planning> planning;
  if (plansSettings())
    planning.emplace(
        evaluator.startPlanning(settings, allocator(/*onDevice=*/true)));
  const auto replanned = in.replan(edits);
  if (planning)
    planning->finish();
  auto next = replanned.begin();
  std::vector<tune::Change> kept;
  for (tune::Change &change : changes) {
    std::optional<StepPrediction> p;
    if (!saysSo(change.expression))
      p = plannedAt(evaluator, change.point);
    else if (const auto &found = *next++)
      p = trimmed(*found);
    if (!p)
      continue;
    setFigures(change, *p, asConfigured());
    kept.push_back(std::move(change));
  }
  changes = std::move(kept);
}

/// Where no single change fits, the first pair or triple that does, in the
/// order of what their changes save.
void ChangePlanner::findSmallestSet(const std::vector<tune::Change> &planned) {
  if (fits(advice.configured) || !in.target)
    return;
  std::vector<const tune::Change *> parts;
  for (const tune::Change &change : planned) {
    if (change.fits && change.caution.empty())
      return;
    const tune::ConfigEdit &e = change.expression;
    const bool same =
        std::any_of(parts.begin(), parts.end(), [&](const tune::Change *p) {
          return p->knob == change.knob;
        });
    if (!same && change.bytes <= 0 && saysSo(e) && change.caution.empty())
      parts.push_back(&change);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const tune::Change *a, const tune::Change *b) {
                     return a->bytes < b->bytes;
                   });
  for (size_t size : {2, 3}) {
    std::vector<size_t> chosen;
    if (trySets(parts, size, 0, chosen))
      return;
  }
}

/// accel-run's program is lowered for each set, which takes milliseconds: only
/// those are worth it whose parts, added up, come near the budget.
bool ChangePlanner::mayFit(const std::vector<const tune::Change *> &parts,
                           const std::vector<size_t> &chosen) const {
  constexpr int64_t partsOfSlack = 10;
  if (in.executor != FrameworkKind::AccelRun)
    return true;
  int64_t bytes = advice.configured.deviceBytes;
  for (size_t i : chosen)
    bytes += parts[i]->bytes;
  return bytes - advice.roomBytes <= advice.roomBytes / partsOfSlack;
}

bool ChangePlanner::trySets(const std::vector<const tune::Change *> &parts,
                            size_t size, size_t first,
                            std::vector<size_t> &chosen) {
  if (chosen.size() < size) {
    for (size_t i = first; i < parts.size(); ++i) {
      chosen.push_back(i);
      if (trySets(parts, size, i + 1, chosen))
        return true;
      chosen.pop_back();
    }
    return false;
  }
  if (!mayFit(parts, chosen))
    return false;
  tune::Change set = *parts[chosen[0]];
  set.knobs = static_cast<int>(size);
  for (size_t i = 1; i < size; ++i) {
    const tune::Change &part = *parts[chosen[i]];
    set.text += "; " + part.text;
    for (const tune::YamlLine &line : part.expression.yaml)
      if (std::find(set.expression.yaml.begin(), set.expression.yaml.end(),
                    line) == set.expression.yaml.end())
        set.expression.yaml.push_back(line);
    for (const auto &flag : part.expression.flags)
      set.expression.flags.push_back(flag);
    if (!part.expression.notExpressibleInYaml.empty())
      set.expression.notExpressibleInYaml +=
          (set.expression.notExpressibleInYaml.empty() ? "" : "; ") +
          part.expression.notExpressibleInYaml;
  }
  auto p = replan(set.expression.yaml, set.expression.flags);
  if (!p || !fits(*p))
    return false;
  setFigures(set, trimmed(*p), asConfigured());
  advice.changes.insert(advice.changes.begin(), std::move(set));
  if (advice.changes.size() > changesTold)
    advice.changes.pop_back();
  return true;
}

/// Every figure of a search that is shown, as a plan has it.
void ChangePlanner::planAnew(tune::CachedEvaluator &evaluator, Tuned &tuned,
                             bool refusals) const {
  auto plan = [&](tune::Verdict &verdict) {
    auto p = plannedAt(evaluator, verdict.point);
    if (p)
      verdict.evaluation = evaluationOf(*p);
    return p.has_value();
  };
  tune::SearchResult &result = tuned.result;
  if (result.smallest.evaluation.possible)
    plan(result.smallest);
  tune::spreadFront(result.front, result.best ? &result.best->point : nullptr,
                    frontTold);
  if (plansSettings()) {
    std::vector<tune::Point> points;
    for (const tune::Verdict &row : result.front)
      points.push_back(row.point);
    for (const tune::Decided &decided : tuned.decisions)
      if (decided.refused && refusals)
        points.push_back(decided.refused->point);
    evaluator.planAll(points, allocator(/*onDevice=*/true));
  }
  std::erase_if(result.front, [&](tune::Verdict &row) { return !plan(row); });
  tune::keepFront(result.front);
  for (tune::Decided &decided : tuned.decisions) {
    if (decided.changed)
      if (auto p = planned(evaluator, decided.alone))
        setFigures(decided.alone, *p, asConfigured());
    if (!decided.refused || !refusals)
      continue;
    tune::Change &refused = *decided.refused;
    auto p = plannedAt(evaluator, refused.point);
    if (!p) {
      decided.refused.reset();
      continue;
    }
    setFigures(refused, *p, evaluationOf(tuned.predicted));
    if (!refused.fits)
      decided.refusedAt = p->peakWhere;
  }
}

/// The fastest setting of `tuned`'s front whose lines, written to the file,
/// are planned to fit.
void ChangePlanner::certifyLines(tune::CachedEvaluator &evaluator,
                                 Tuned &tuned) const {
  if (!tuned.result.best)
    return;
  std::vector<tune::Verdict> order = {*tuned.result.best};
  std::vector<tune::Verdict> front = tuned.result.front;
  std::stable_sort(front.begin(), front.end(),
                   [](const tune::Verdict &a, const tune::Verdict &b) {
                     return a.evaluation.seconds < b.evaluation.seconds;
                   });
  order.insert(order.end(), front.begin(), front.end());
  tuned.result.best.reset();
  for (const tune::Verdict &verdict : order) {
    std::vector<tune::Knob> notInYaml;
    const auto lines = advice.editor->lines(verdict.point, notInYaml);
    if (!notInYaml.empty())
      continue;
    // Options that say the samples of a step follow the mesh.
    tune::Flags flags;
    if (verdict.point[tune::Knob::Mesh])
      flags = advice.editor->express(tune::Knob::Mesh, verdict.point).flags;
    auto p =
        lines.empty() ? std::optional(advice.configured) : replan(lines, flags);
    if (!p || !fits(*p))
      continue;
    tuned.result.best = verdict;
    tuned.predicted = *p;
    if (in.executor == FrameworkKind::AccelRun)
      tuned.predicted.recomputeSeconds =
          evaluator.predict(verdict.point, false).recomputeSeconds;
    tuned.lines = lines;
    return;
  }
}

} // namespace accel
