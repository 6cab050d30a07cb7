//===- RenderVerdict.cpp - Whether it fits, and what would change that ----===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Advice/AdviceText.h"
#include "tools/driver/Report/Render.h"
#include "tools/driver/Report/RenderFp8.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace accel {
namespace {

enum class Colour { Green, Red };

std::string coloured(const std::string &text, Colour colour, bool on) {
  if (!on)
    return text;
  return std::string(colour == Colour::Green ? "\033[1;32m" : "\033[1;31m") +
         text + "\033[0m";
}

std::string formatConfidence(double share) {
  return formatGrouped(std::floor(share * 100)) + " %";
}
std::string formatRange(const std::pair<double, double> &bytes) {
  return formatBytes(static_cast<int64_t>(bytes.first)) + " to " +
         formatBytes(static_cast<int64_t>(bytes.second));
}
/// It fits as predicted, but with less certainty than was asked for.
bool lacksConfidence(const PlanReport &report) {
  return report.fits && !*report.fits && report.askedConfidence &&
         report.confidence && report.budgetBytes &&
         report.prediction.deviceBytes <= *report.budgetBytes;
}

/// What is missing where not even the persistent bytes fit.
std::string persistentTooMuch(const plan::Plan &plan,
                              const PlanReport &report) {
  int64_t kept = report.prediction.persistentBytes;
  if (kept <= *report.roomBytes)
    return "";
  std::string text = "; what a rank keeps between steps alone is " +
                     formatBytes(kept) + ", " +
                     tooMuch(kept, *report.roomBytes);
  if (!report.advice)
    return text;
  const Candidate &candidate = report.advice->candidate;
  // Below stage 3 ZeRO leaves parameters whole on every rank, however many.
  const bool shardsAll = candidate.executor != FrameworkKind::Deepspeed ||
                         candidate.zeroStage == 3;
  const int64_t shards = candidate.shards().ranks;
  if (shards > 1 && shardsAll)
    text += ": sharded over " + std::to_string(shards) +
            " ranks, it would take " +
            formatGrouped(std::ceil(static_cast<double>(kept) *
                                    static_cast<double>(shards) /
                                    static_cast<double>(*report.roomBytes))) +
            " to get below " + judgedBy(*report.advice);
  return text;
}

/// What is too much, where it does not fit.
std::string whatIsTooMuch(const plan::Plan &plan, const PlanReport &report) {
  const StepPrediction &p = report.prediction;
  std::string text;
  if (report.budgetBytes && p.deviceBytes > *report.budgetBytes)
    text += "    " + tooMuch(p.deviceBytes, *report.budgetBytes) +
            persistentTooMuch(plan, report) + "\n";
  if (report.hostFits && !*report.hostFits) {
    const int64_t bytes = p.hostBytes + report.processBytes;
    text += "    on the host " + formatBytes(bytes) + " (" +
            formatBytes(report.processBytes) + " of it the process) of " +
            formatBytes(*report.hostBytes) + " per rank, " +
            tooMuch(bytes, *report.hostBytes) + "\n";
  }
  return text;
}

/// The change that a reader should try first: of those that make it fit, the
/// one that turns the fewest knobs and then the fastest; where it fits, the
/// fastest that still does. None if there is none.
const tune::Change *firstChange(const PlanReport &report) {
  if (!report.advice || !report.fits || report.advice->tuned)
    return nullptr;
  // Results are not given up where something else is enough.
  auto before = [](const tune::Change &a, const tune::Change &b) {
    return std::tuple(!a.caution.empty(), a.knobs, a.evaluation.seconds) <
           std::tuple(!b.caution.empty(), b.knobs, b.evaluation.seconds);
  };
  const tune::Change *best = nullptr;
  for (const tune::Change &c : report.advice->changes) {
    const bool useful =
        c.fits && (!*report.fits || (c.seconds < 0 && c.caution.empty())) &&
        (!c.expression.yaml.empty() || c.expression.flags.size());
    if (useful && (!best || before(c, *best)))
      best = &c;
  }
  return best;
}

std::string renderChange(const PlanReport &report, const tune::Change &c) {
  const Advice &advice = *report.advice;
  std::string out = *report.fits ? "\n  fastest change that still fits: "
                    : c.knobs > 1
                        ? "\n  smallest set of changes that makes it fit: "
                        : "\n  smallest change that makes it fit: ";
  out += formatBytes(c.evaluation.bytes);
  if (advice.hasTime)
    out += ", " + formatSeconds(c.evaluation.seconds) + " a step";
  out += "\n";
  const std::vector<Edit> edits = editsOf(*advice.editor, c.expression);
  size_t width = std::string("or TrainingArguments").size();
  for (const Edit &edit : edits)
    width = std::max(width, edit.place.size());
  for (const Edit &edit : edits) {
    out += "    " + padRight(edit.place, width + 2) + edit.text + "\n";
    if (!edit.trainingArguments.empty())
      out += "    " + padRight("or TrainingArguments", width + 2) +
             edit.trainingArguments + "\n";
  }
  if (!c.caution.empty())
    out += "    " + c.caution + "\n";
  return out;
}

/// Where no change and no set of those that are tried by themselves is enough.
std::string searchesFurther(FrameworkKind executor) {
  const bool meshes =
      executor == FrameworkKind::Fsdp2 || executor == FrameworkKind::Megatron;
  return std::string("\n  no change below makes it fit; --tune=all searches "
                     "all settings together") +
         (meshes ? ", the mesh among them\n" : "\n");
}

} // namespace

std::string renderVerdict(const plan::Plan &plan, const PlanReport &report,
                          bool colour) {
  const StepPrediction &p = report.prediction;
  std::string out = "  ";
  if (report.fits)
    out += *report.fits ? coloured("FITS", Colour::Green, colour)
                        : coloured("DOES NOT FIT", Colour::Red, colour);
  else
    out += "memory";
  const bool tooUnsure = lacksConfidence(report);
  if (report.confidence && !tooUnsure)
    out += ", " + formatConfidence(*report.confidence) + " sure";
  out += "  " + formatBytes(p.deviceBytes);
  if (report.budgetBytes)
    out += " of " + formatBytes(*report.budgetBytes);
  out += " per rank; peak in " + p.peakWhere + "\n";
  if (report.fits && !*report.fits)
    out += whatIsTooMuch(plan, report);
  if (tooUnsure)
    out += "    it fits with " + formatConfidence(*report.confidence) +
           ", and --confidence asks for " +
           formatConfidence(*report.askedConfidence) + "\n";
  if (report.askedConfidence && report.roomBytes < report.budgetBytes)
    out += "    --confidence leaves " + formatBytes(*report.roomBytes) +
           " of the budget to predictions\n";
  if (report.likelyBytes)
    out +=
        "    90 % of runs take " + formatRange(*report.likelyBytes) +
        (report.measuredAlike ? "\n"
                              : "; no such run on this target was measured\n");
  if (report.smallestRank)
    out += "    the rank with the smallest shards takes " +
           formatBytes(p.deviceBytes - report.smallestRank->deviceBytes) +
           " less\n";
  if (report.hasTime) {
    const bool tokens = plan.job.sequenceLength > 0;
    out += "  speed  " + formatSeconds(p.stepSeconds) + " a step, " +
           formatGrouped(p.tokensPerSecondPerDevice) +
           (tokens ? " tokens/s" : " samples/s") + " per rank" +
           (report.mfu ? ", MFU " + formatPercent(*report.mfu) : "") +
           (p.exposedSeconds > 0 ? "; " + formatSeconds(p.exposedSeconds) +
                                       " wait for communication\n"
                                 : "\n");
    if (report.likelySeconds)
      out += "    90 % of runs take " +
             formatSeconds(report.likelySeconds->first) + " to " +
             formatSeconds(report.likelySeconds->second) + " a step\n";
    if (report.advice)
      out += renderFp8(*report.advice->model, report.advice->candidate);
  } else {
    out += "  speed  no target given, so no time is predicted (--target)\n";
  }
  if (const tune::Change *change = firstChange(report))
    out += renderChange(report, *change);
  else if (report.fits && !*report.fits && report.advice &&
           report.advice->hasTime && !report.advice->tuned &&
           !report.advice->maxBatch)
    out += searchesFurther(report.advice->executor);
  return out;
}

} // namespace accel
