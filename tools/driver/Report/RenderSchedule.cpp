//===- RenderSchedule.cpp - A program as folded lines ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/ModulePath.h"
#include "tools/driver/Report/Render.h"
#include "tools/driver/Text/Format.h"

#include <cctype>

namespace accel {

namespace {

std::string nameOf(const std::string &unit) {
  return unit.empty() ? "(root)" : unit;
}

std::string line(const plan::Plan &plan, const plan::Step &step) {
  std::string unit =
      step.unit >= 0
          ? nameOf(plan::withoutLayerNumbers(plan.units[step.unit].name))
          : "";
  auto sized = [&](const char *what) {
    std::string text = what;
    text.resize(16, ' ');
    text +=
        unit + "  " +
        formatBytes(plan::roleBytes(plan, plan.units[step.unit], step.role));
    return text;
  };
  switch (step.kind) {
  case plan::StepKind::AllGather:
    return sized(step.axes.empty() ? "cast" : "gather");
  case plan::StepKind::ReduceScatter:
    return sized("reduce_scatter");
  case plan::StepKind::AllReduce:
    return sized("all_reduce");
  case plan::StepKind::Await:
    return "await           " + unit;
  case plan::StepKind::Free:
    return step.values.empty()
               ? "free            " + unit + "  " + plan::toString(step.role)
               : "";
  case plan::StepKind::Alloc:
    return "";
  case plan::StepKind::Call:
    return "call            " + plan.functions[step.function].name +
           (step.where.empty()
                ? ""
                : " at " + plan::withoutLayerNumbers(step.where));
  case plan::StepKind::GradNorm:
    return "gradient norm";
  case plan::StepKind::Optimizer:
    return "update          " + unit;
  }
  return "";
}

/// How many times the `period` lines at `begin` stand there in a row.
size_t repeats(const std::vector<std::string> &lines, size_t begin,
               size_t period) {
  size_t count = 1;
  while (begin + (count + 1) * period <= lines.size()) {
    for (size_t i = 0; i < period; ++i)
      if (lines[begin + count * period + i] != lines[begin + i])
        return count;
    ++count;
  }
  return count;
}

} // namespace

std::string renderSchedule(const plan::Plan &plan,
                           const plan::Program &program) {
  std::vector<std::string> lines;
  for (const plan::Step &step : program.steps)
    if (std::string text = line(plan, step); !text.empty())
      lines.push_back(std::move(text));
  constexpr size_t maxPeriod = 16;
  std::string result;
  for (size_t i = 0; i < lines.size();) {
    size_t best = 1, bestCount = 1;
    for (size_t period = 1; period <= maxPeriod; ++period)
      if (size_t count = repeats(lines, i, period);
          count > 1 && count * period > best * bestCount) {
        best = period;
        bestCount = count;
      }
    if (bestCount > 1)
      result += "    " + std::to_string(bestCount) + " x\n";
    for (size_t k = 0; k < best; ++k)
      result += (bestCount > 1 ? "      " : "    ") + lines[i + k] + "\n";
    i += best * bestCount;
  }
  return result;
}

} // namespace accel
