//===- Recommend.h - What each change is worth ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Single changes of a configuration with their price and gain, and for a point
// that a search chose: what each of its changes is worth alone, and what stands
// in the way of the best one that it does not make.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TUNE_RECOMMEND_H
#define ACCEL_PASSES_TUNE_RECOMMEND_H

#include "passes/Tune/CachedEvaluator.h"
#include "passes/Tune/ConfigEdits.h"

namespace accel::tune {

/// One knob turned, everything else as it was; or several, if `knobs` is more.
struct Change {
  Knob knob = Knob::Wrap;
  int knobs = 1;
  Point point;
  std::string text; // "every layer is recomputed"
  ConfigEdit expression;
  Evaluation evaluation;
  int64_t bytes = 0;  // more than before (negative: less)
  double seconds = 0; // of a step, likewise
  bool fits = true;
  std::string caution; // ConfigEditor::caution
};

/// Every turn of one open knob from `from`: all values of small ranges, both
/// ends and the middle of others; for checkpointing all layers alike and,
/// where they may differ, the first step of the recompute frontier that fits.
std::vector<Change> turns(const Space &space, CachedEvaluator &evaluator,
                          const ConfigEditor &editor, const Point &from,
                          int64_t budgetBytes);

/// The turns that are worth telling: those that make it fit, those that save a
/// step's time and fit, and the cheapest ways to free memory. At most `limit`,
/// at most two of one knob that a YAML says and two that none does, and one of
/// each that changes results, best first. `estimated`: their bytes are, and
/// what saves time alone is told too where nothing fits yet.
std::vector<Change> worthTelling(std::vector<Change> all,
                                 const Evaluation &before, int64_t budgetBytes,
                                 size_t limit, bool estimated = false);

/// A decision of the search: the knob's option, its worth against the
/// configured option, and the best refused alternative.
struct Decided {
  Knob knob = Knob::Wrap;
  std::string choice;
  bool changed = false; // from the configuration
  Change alone;         // where it was changed: the configuration with this
                        // change alone
  std::optional<Change> refused; // from the chosen point; best first by time
  std::string refusedAt;         // where its memory peaks, if it does not fit
};

/// Decisions of all open knobs at `chosen`.
std::vector<Decided> decisions(const Space &space, CachedEvaluator &evaluator,
                               const ConfigEditor &editor, const Point &chosen,
                               int64_t budgetBytes);

/// The same of the configuration itself, from its `turns`: knobs with none are
/// left out.
std::vector<Decided> configuredDecisions(const Space &space,
                                         CachedEvaluator &evaluator,
                                         const ConfigEditor &editor,
                                         const std::vector<Change> &turns);

/// The fastest checkpointing within the budget, all else as at `from` (but
/// nothing on the host), in a space of openSolved; none where nothing fits.
/// Its expression says what can run it and the share of what layers could keep
/// that they do, which is what torch calls activation_memory_budget.
std::optional<Change> solvedCheckpointing(const Space &space,
                                          CachedEvaluator &evaluator,
                                          const ConfigEditor &editor,
                                          const Point &from,
                                          int64_t budgetBytes);

/// What is told of a front: both ends, the setting at `best`, and at most
/// `most` rows that are spread over it.
void spreadFront(std::vector<Verdict> &front, const Point *best, size_t most);

} // namespace accel::tune

#endif // ACCEL_PASSES_TUNE_RECOMMEND_H
