//===- RenderAdvice.cpp - What would help, for people ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Advice/AdviceText.h"
#include "tools/driver/Report/MeshAnswers.h"
#include "tools/driver/Report/Render.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace accel {
namespace {

constexpr const char *notYaml = "(not YAML)";

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
    if (advice.runMeshes)
      out += renderRunMeshes(advice);
    return std::move(out);
  }

private:
  bool hasBudget() const {
    return advice.roomBytes != std::numeric_limits<int64_t>::max();
  }

  /// A change as lines of a table: what it writes, and what a plan of it holds
  /// and takes.
  struct Row {
    std::vector<Edit> edits;
    const tune::Change &change;
    std::string note;
  };

  Row rowOf(const tune::Change &c) const {
    Row row{editsOf(*advice.editor, c.expression), c, ""};
    // No file says it: what the change is, and who can do it.
    const bool notInYaml = row.edits.empty() ||
                           (row.edits.size() == 1 && row.edits[0].text.empty());
    if (notInYaml) {
      row.edits = {{notYaml, c.text, ""}};
      row.note = c.expression.notExpressibleInYaml;
    }
    if (!c.caution.empty())
      row.note += (row.note.empty() ? "" : "; ") + c.caution;
    if (!c.fits)
      row.note +=
          (row.note.empty() ? "" : "; ") + lacking(advice, c.evaluation.bytes);
    return row;
  }

  /// Columns are as wide as what they hold.
  void table(const std::string &title, const std::vector<Row> &rows,
             bool numbered) {
    size_t where = 0, text = 0;
    for (const Row &row : rows)
      for (const Edit &edit : row.edits) {
        where = std::max(where, edit.place.size());
        text = std::max(text, edit.text.size());
      }
    const size_t indent = numbered ? 7 : 4;
    const size_t left = std::max(indent + where + 2 + text, title.size() + 2);
    out += "\n" + padRight("  " + title, left) + padLeft("memory", 12) +
           padLeft("", 11) +
           (advice.hasTime ? padLeft("step", 11) + padLeft("", 11) : "");
    while (out.back() == ' ')
      out.pop_back();
    out += "\n";
    for (size_t i = 0; i < rows.size(); ++i) {
      const Row &row = rows[i];
      std::string line = numbered ? padLeft(std::to_string(i + 1), 5) + "  "
                                  : std::string(indent, ' ');
      for (size_t e = 0; e < std::max<size_t>(1, row.edits.size()); ++e) {
        if (e)
          line = std::string(indent, ' ');
        if (e < row.edits.size())
          line += padRight(row.edits[e].place, where + 2) + row.edits[e].text;
        if (e == 0) {
          line = padRight(line, left) +
                 padLeft(formatBytes(row.change.evaluation.bytes), 12) +
                 padLeft(formatBytesChange(row.change.bytes), 11);
          if (advice.hasTime)
            line += padLeft(formatSeconds(row.change.evaluation.seconds), 11) +
                    padLeft(formatSecondsChange(row.change.seconds), 11);
          if (!row.note.empty())
            line += "   " + row.note;
        }
        out += line + "\n";
      }
    }
  }

  /// The set of changes that the verdict names goes by the numbers of its
  /// parts, where all of them are told.
  void together(const tune::Change &set, const std::vector<Row> &rows) {
    const std::vector<Edit> wanted = editsOf(*advice.editor, set.expression);
    std::string numbers;
    size_t covered = 0, count = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool part = std::all_of(
          rows[i].edits.begin(), rows[i].edits.end(), [&](const Edit &edit) {
            return std::find(wanted.begin(), wanted.end(), edit) !=
                   wanted.end();
          });
      if (!part || rows[i].edits.empty())
        continue;
      covered += rows[i].edits.size();
      numbers += (count++ ? " and " : "") + std::to_string(i + 1);
    }
    if (covered != wanted.size() || static_cast<int>(count) != set.knobs)
      return;
    out +=
        "    lines " + numbers +
        " together: " + formatBytes(set.evaluation.bytes) +
        (advice.hasTime ? ", " + formatSeconds(set.evaluation.seconds) : "") +
        "\n";
  }

  void changes(const std::string &title, const std::vector<tune::Change> &all) {
    std::vector<Row> rows;
    for (const tune::Change &c : all)
      if (c.knobs == 1)
        rows.push_back(rowOf(c));
    table(title, rows, /*numbered=*/true);
    for (const tune::Change &c : all)
      if (c.knobs > 1)
        together(c, rows);
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
    if (advice.mesh)
      out += renderMesh(advice);
    limits(t);
    front(t);
    fixed();
  }

  static std::string searched(const Tuned &t) {
    return std::to_string(t.result.evaluations) + " settings" +
           (t.result.exact ? " (all there are)" : " evaluated") +
           (t.result.complete ? "" : ", stopped by the limit");
  }

  void toChange(const Tuned &t, const std::string &title) {
    if (t.result.best->point == advice.space->configured) {
      out += "\n  " + title + ": nothing\n";
      return;
    }
    std::vector<tune::Change> alone;
    for (const tune::Decided &d : t.decisions)
      if (d.changed) {
        alone.push_back(d.alone);
        alone.back().text = d.choice;
        alone.back().fits = true; // the whole fits; one part alone need not
      }
    std::vector<Row> rows;
    for (const tune::Change &c : alone)
      rows.push_back(rowOf(c));
    table(title + " (each alone)", rows, /*numbered=*/false);
    const char *file = advice.executor == FrameworkKind::Fsdp2      ? "python"
                       : advice.executor == FrameworkKind::AccelRun ? "plan"
                                                                    : nullptr;
    if (file && std::any_of(rows.begin(), rows.end(), [](const Row &row) {
          return row.edits[0].place == notYaml;
        }))
      out += std::string("    ") + notYaml + ": --emit " + file +
             " writes these changes together\n";
  }

  /// Without a YAML key and not the executor's own: no part of the best.
  void solved() {
    if (!advice.solved)
      return;
    table("not settable in YAML: checkpointing solved for the budget",
          {rowOf(*advice.solved)}, /*numbered=*/false);
  }

  void limits(const Tuned &t) {
    out += "\n  the peak is in " + t.predicted.peakWhere;
    if (hasBudget())
      out += ", " + formatBytes(advice.roomBytes - t.predicted.deviceBytes) +
             " below " + judgedBy(advice);
    if (!t.predicted.exposed.empty())
      out += "; most waiting is for " + t.predicted.exposed[0].cause + " (" +
             formatSeconds(t.predicted.exposed[0].seconds) + ")";
    out += "\n";
    for (const tune::Decided &d : t.decisions)
      // What speaks against other meshes is said with them.
      if (d.refused && !(advice.mesh && d.knob == tune::Knob::Mesh) &&
          (d.changed || (!d.refused->fits && d.refused->seconds < 0)))
        out += "  not: " + refusal(advice, d) + "\n";
  }

  void front(const Tuned &t) {
    if (t.result.front.size() < 2)
      return;
    out += "\n  " + padRight("memory against time", 22) +
           padLeft("memory", 10) + padLeft("step", 10) + "   of " +
           searched(t) + "\n";
    for (const tune::Verdict &v : t.result.front) {
      std::string mark = v.evaluation.bytes > advice.roomBytes ? "does not fit"
                         : v.point == t.result.best->point     ? "recommended"
                                                               : "";
      out += "  " + padRight(mark, 22) +
             padLeft(formatBytes(v.evaluation.bytes), 10) +
             padLeft(formatSeconds(v.evaluation.seconds), 10) + "   " +
             summary(*advice.space, *advice.editor, v.point) + "\n";
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
               (advice.executor == FrameworkKind::AccelRun &&
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
    const tune::Evaluation &least = t.result.smallest.evaluation;
    if (!least.possible) {
      out += "\n  NOTHING FITS  none of " + searched(t) + " can run" +
             (report.hostFits.value_or(true)
                  ? "\n"
                  : ": the host has no room for what it is to keep\n");
      return fixed();
    }
    out += "\n  NOTHING FITS  the smallest of " + searched(t) + " takes " +
           formatBytes(least.bytes) + ", " +
           formatBytes(least.bytes - advice.roomBytes) + " more than " +
           judgedBy(advice) + ":\n                " +
           summary(*advice.space, *advice.editor, t.result.smallest.point) +
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
             lacking(advice, m.next.deviceBytes) + ", at the peak in " +
             m.next.peakWhere + "\n";
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
             lacking(advice, m.next.deviceBytes) + ", at the peak in " +
             m.next.peakWhere + "\n";
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
