//===- Effect.h - What a configuration or a plan comes to -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What `diff` compares: not the text of two files but what their jobs hold,
// take, decide and compute.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_COMPARE_EFFECT_H
#define ACCEL_TOOLS_DRIVER_COMPARE_EFFECT_H

#include "tools/driver/Report/UnitBytes.h"
#include "tools/driver/Session/Compile.h"

namespace accel {

struct Effect {
  std::string name; // as the user named the file
  plan::Plan plan;  // units, decisions and the job; perhaps no programs
  std::vector<UnitBytes> units; // of the plan
  /// Who executes it: "FSDP2", "DDP", "accel-run".
  std::string strategy;
  StepPrediction prediction;
  bool hasTime = false;
  std::optional<int64_t> budgetBytes, roomBytes;
  std::optional<bool> fits;
};

/// Whether a file is a plan.json and not a configuration: JSON with the format
/// version and the units of one.
bool isPlanFile(const std::string &path);

/// Of a plan.json, by its own prediction. Nothing if it cannot be read, which
/// is reported.
std::optional<Effect> effectOfPlan(const std::string &path,
                                   DiagnosticEngine &engine);

/// The figures of a plan as those of a configuration are shown; without changes
/// that would help.
PlanReport reportOf(const Effect &ofPlan);

/// Of a configuration, planned with `options`. Nothing after an error, which is
/// reported.
std::optional<Effect> effectOfConfig(const std::string &path,
                                     PlanOptions options,
                                     DiagnosticEngine &engine);

/// A figure of both; equal ones are told where the rest of their table is.
struct FigureChange {
  enum class Unit { Bytes, Seconds, Count };
  std::string what;
  Unit unit = Unit::Bytes;
  double a = 0, b = 0;
};

/// Something of which both have several, such as units of one name, as text
/// with how often it stands there.
struct Choices {
  std::string what; // "unit model.layers.*", "reshard of model.layers.*"
  struct Row {
    std::string text;
    int count = 0;
    std::string why; // of a decision: the reason, with file and line
    bool operator==(const Row &o) const {
      return text == o.text && count == o.count;
    }
  };
  std::vector<Row> a, b; // empty: it has none
};

struct Comparison {
  std::vector<FigureChange> memory, time;
  int unitsOfA = 0, unitsOfB = 0;
  std::vector<Choices> units, decisions; // that differ
  /// What changes the numbers that training computes.
  std::vector<Choices> numerics;
};

Comparison compare(const Effect &a, const Effect &b);

std::string renderComparison(const Effect &a, const Effect &b,
                             const Comparison &comparison);
/// {a, b, memory, time, units, decisions, numerics, diagnostics}. Without both
/// effects only diagnostics are filled.
std::string renderComparisonJson(const Effect *a, const Effect *b,
                                 const Comparison &comparison,
                                 const DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_COMPARE_EFFECT_H
