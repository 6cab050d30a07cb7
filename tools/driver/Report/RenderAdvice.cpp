//===- RenderAdvice.cpp - What would help, for people ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Advice/AdviceText.h"
#include "tools/driver/Report/Render.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

namespace accel {
namespace {

constexpr size_t whereWidth = 22, textWidth = 58;

class AdviceRenderer {
public:
  explicit AdviceRenderer(const PlanReport &report)
      : report(report), advice(*report.advice) {}

  std::string run() {
    if (advice.maxBatch)
      maxBatch();
    if (advice.tuned)
      tuned();
    else if (!advice.changes.empty())
      changes("what would help", advice.changes);
    return std::move(out);
  }

private:
  bool hasBudget() const {
    return advice.budgetBytes != std::numeric_limits<int64_t>::max();
  }

  void head(const std::string &title) {
    out += "\n  " + padRight(title, whereWidth + textWidth) +
           padLeft("memory", 12) + (advice.hasTime ? padLeft("step", 12) : "") +
           "\n";
  }

  void row(const std::string &where, const std::string &text, int64_t bytes,
           double seconds, const std::string &note) {
    std::string line = "  " + padRight(where, whereWidth - 1) + " " +
                       padRight(text, textWidth) +
                       padLeft(formatBytesChange(bytes), 12);
    if (advice.hasTime)
      line += padLeft(formatSecondsChange(seconds), 12);
    out += line + (note.empty() ? "" : "   " + note) + "\n";
  }

  void change(const tune::Change &c) {
    std::string over =
        c.fits ? ""
               : "still " + formatBytes(c.judged.bytes - advice.budgetBytes) +
                     " too much";
    if (c.expression.yaml.empty()) {
      row("(not YAML)", c.text, c.bytes, c.seconds,
          c.expression.otherwise + (over.empty() ? "" : "; " + over));
      return;
    }
    bool first = true;
    for (const tune::YamlLine &line : c.expression.yaml) {
      if (isWritten(*advice.expresser, line))
        continue;
      std::string where = placeOf(*advice.expresser, line);
      std::string text = textOf(line);
      if (first)
        row(where, text, c.bytes, c.seconds, over);
      else
        out += "  " + padRight(where, whereWidth - 1) + " " + text + "\n";
      first = false;
    }
    if (!c.expression.otherwise.empty())
      out += "  " + padRight("(not YAML)", whereWidth - 1) + " " +
             c.expression.otherwise + "\n";
  }

  void changes(const std::string &title, const std::vector<tune::Change> &all) {
    head(title);
    for (const tune::Change &c : all)
      change(c);
  }

  //===--- --tune ---------------------------------------------------------===//

  static void column(std::vector<std::string> &rows, const std::string &title,
                     const StepPrediction &p) {
    rows[0] += padLeft(title, 18);
    rows[1] += padLeft(formatBytes(p.deviceBytes), 18);
    rows[2] += padLeft(formatSeconds(p.stepSeconds), 18);
    rows[3] += padLeft(formatGrouped(p.tokensPerSecondPerDevice), 18);
    rows[4] += padLeft(formatSeconds(p.exposedSeconds), 18);
    rows[5] += padLeft(formatSeconds(p.recomputeSeconds), 18);
  }

  bool yamlDiffers() const {
    return advice.yaml && advice.yaml->result.best &&
           advice.yaml->result.best->point != advice.tuned->result.best->point;
  }

  void tuned() {
    const Tuned &t = *advice.tuned;
    if (!t.result.best)
      return nothingFits(t);
    std::vector<std::string> rows = {"",
                                     "memory per rank",
                                     "a step",
                                     "tokens/s per rank",
                                     "wait for communication",
                                     "recomputation"};
    for (std::string &r : rows)
      r = "  " + padRight(r, 24);
    column(rows, "as configured", advice.configured);
    column(rows, "recommended", t.predicted);
    if (yamlDiffers())
      column(rows, "by YAML alone", advice.yaml->predicted);
    out += "\n";
    for (const std::string &r : rows)
      out += r + "\n";
    if (t.result.best->point == advice.space->configured)
      out += "\n  the configuration is the fastest of " + searched(t) +
             " that fits\n";
    else
      toChange(t, "to change");
    if (yamlDiffers())
      toChange(*advice.yaml, "to change, by YAML alone");
    solved();
    limits(t);
    front(t);
    fixed();
  }

  static std::string searched(const Tuned &t) {
    return std::to_string(t.result.judged) + " settings" +
           (t.result.exact ? " (all that there are)" : " judged") +
           (t.result.complete ? "" : ", stopped by the limit");
  }

  void toChange(const Tuned &t, const std::string &title) {
    if (t.result.best->point == advice.space->configured) {
      out += "\n  " + title + ": nothing\n";
      return;
    }
    head(title + " (each alone)");
    for (const tune::Decided &d : t.decisions)
      if (d.changed) {
        tune::Change c = d.alone;
        c.text = d.choice;
        c.fits = true; // the whole fits; one part alone need not
        change(c);
      }
  }

  /// Without a YAML key and not the executor's own: no part of the best.
  void solved() {
    if (!advice.solved)
      return;
    head("not settable in YAML: checkpointing solved for the budget");
    change(*advice.solved);
  }

  void limits(const Tuned &t) {
    out += "\n  the peak is in " + t.predicted.peakWhere;
    if (hasBudget())
      out += ", " + formatBytes(advice.budgetBytes - t.predicted.deviceBytes) +
             " below the budget";
    if (!t.predicted.exposed.empty())
      out += "; most waiting is for " + t.predicted.exposed[0].cause + " (" +
             formatSeconds(t.predicted.exposed[0].seconds) + ")";
    out += "\n";
    for (const tune::Decided &d : t.decisions)
      if (d.refused &&
          (d.changed || (!d.refused->fits && d.refused->seconds < 0)))
        out += "  not: " + refusal(*advice.expresser, d, advice.budgetBytes) +
               "\n";
  }

  void front(const Tuned &t) {
    if (t.result.front.size() < 2)
      return;
    out += "\n  " + padRight("memory against time", 22) +
           padLeft("memory", 10) + padLeft("step", 10) + "   of " +
           searched(t) + "\n";
    // Both ends, the recommended one, and some between.
    std::set<size_t> shown;
    size_t n = t.result.front.size(), most = 7;
    for (size_t i = 0; i < std::min(n, most); ++i)
      shown.insert(n <= most ? i : i * (n - 1) / (most - 1));
    for (size_t i = 0; i < n; ++i)
      if (t.result.front[i].point == t.result.best->point)
        shown.insert(i);
    for (size_t i : shown) {
      const tune::Verdict &v = t.result.front[i];
      std::string mark = v.judged.bytes > advice.budgetBytes ? "does not fit"
                         : v.point == t.result.best->point   ? "recommended"
                                                             : "";
      out += "  " + padRight(mark, 22) +
             padLeft(formatBytes(v.judged.bytes), 10) +
             padLeft(formatSeconds(v.judged.seconds), 10) + "   " +
             summary(*advice.space, *advice.expresser, v.point) + "\n";
    }
  }

  void fixed() {
    std::string text;
    for (const auto &[knob, state] : advice.fixed)
      if (state.line)
        text += "    " + padRight(toString(knob), 20) + state.by + " (" +
                state.file + ":" + std::to_string(state.line) + ")\n";
      else if (state.by.rfind("--", 0) == 0 ||
               state.by.find("--tune") != std::string::npos ||
               // What another executor could do.
               (advice.executor == ExecutorKind::AccelRun &&
                knob == tune::Knob::ActivationOffload))
        text += "    " + padRight(toString(knob), 20) + state.by + "\n";
    if (!text.empty())
      out += "\n  left as it is" +
             std::string(report.advice->tuned ? " (--tune=all changes written "
                                                "keys)"
                                              : "") +
             "\n" + text;
  }

  void nothingFits(const Tuned &t) {
    const tune::Judgement &least = t.result.leanest.judged;
    out += "\n  NOTHING FITS  the leanest of " + searched(t) + " holds " +
           formatBytes(least.bytes) + ", " +
           formatBytes(least.bytes - advice.budgetBytes) +
           " more than the budget:\n                " +
           summary(*advice.space, *advice.expresser, t.result.leanest.point) +
           "\n";
    solved();
    fixed();
  }

  //===--- --max-batch ----------------------------------------------------===//

  void maxBatch() {
    const MaxBatch &m = *advice.maxBatch;
    if (!hasBudget()) {
      out += "\n  largest micro-batch: unbounded, since no memory is given "
             "(--target or --memory-budget)\n";
      return;
    }
    if (!m.fits) {
      out += "\n  largest micro-batch: none; one sequence takes " +
             formatBytes(m.next.deviceBytes) + ", " +
             formatBytes(m.next.deviceBytes - advice.budgetBytes) +
             " too much, at the peak in " + m.next.peakWhere + "\n";
      return;
    }
    out += "\n  largest micro-batch: " + std::to_string(m.fits) +
           (m.fits == 1 ? " sequence" : " sequences") + " in " +
           formatBytes(m.at.deviceBytes);
    if (advice.hasTime)
      out += ", " + formatGrouped(m.at.tokensPerSecondPerDevice) +
             " tokens/s per rank";
    out += "\n";
    if (m.next.deviceBytes)
      out += "    one more takes " + formatBytes(m.next.deviceBytes) + ", " +
             formatBytes(m.next.deviceBytes - advice.budgetBytes) +
             " too much, at the peak in " + m.next.peakWhere + "\n";
  }

  const PlanReport &report;
  const Advice &advice;
  std::string out;
};

} // namespace

std::string renderAdvice(const PlanReport &report) {
  return report.advice ? AdviceRenderer(report).run() : "";
}

} // namespace accel
