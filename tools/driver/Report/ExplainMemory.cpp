//===- ExplainMemory.cpp - A plan's memory, step by step ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/ExplainMemory.h"

#include "runtime/plan/LiveBuffers.h"
#include "runtime/plan/ModulePath.h"
#include "runtime/plan/Timeline.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace accel {
namespace {

using Json = nlohmann::ordered_json;

/// Lines of the table of holders; the rest is summed.
constexpr size_t holdersShown = 16;

int programNamed(const plan::Plan &plan, const std::string &name) {
  for (size_t i = 0; i < plan.programs.size(); ++i)
    if (plan.programs[i].name == name)
      return static_cast<int>(i);
  return -1;
}

/// What a step does, in a few words.
std::string describe(const plan::Plan &plan, const plan::Step &step) {
  std::string text = toString(step.kind);
  if (step.kind == plan::StepKind::Call)
    return "call " + plan.functions[step.function].name +
           (step.where.empty() ? "" : " at " + step.where);
  if (step.kind == plan::StepKind::Alloc ||
      (step.kind == plan::StepKind::Free && step.unit >= 0))
    text += std::string(" ") + plan::toString(step.role);
  if (step.unit >= 0)
    text += " of " + (plan.units[step.unit].name.empty()
                          ? std::string("(root)")
                          : plan.units[step.unit].name);
  else if (!step.values.empty())
    text += " " + std::to_string(step.values.size()) + " values";
  return text;
}

/// Bytes between steps and what earlier programs of the step left.
int64_t startBytes(const plan::Plan &plan, int program) {
  int64_t bytes = 0;
  for (const plan::LiveBuffer &holder : plan::liveBuffersAt(plan, program, 0))
    if (holder.since < 0 && holder.kind != "value")
      bytes += holder.bytes;
  return bytes;
}

/// LiveBuffers that are alike by their names, as one.
struct Group {
  std::string kind, name;
  int64_t bytes = 0, count = 0;
  int first = 0, last = 0; // steps that made them
};

std::vector<Group> grouped(const std::vector<plan::LiveBuffer> &holders) {
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const plan::LiveBuffer &holder : holders) {
    std::string name = holder.name;
    if (holder.kind == "value")
      name = name.substr(0, name.find(':'));
    name = name.empty() ? "(root)" : plan::withoutLayerNumbers(name);
    Group &group = groups[{holder.kind, name}];
    if (!group.count) {
      group = {holder.kind, name, 0, 0, holder.since, holder.since};
    }
    group.bytes += holder.bytes;
    ++group.count;
    group.first = std::min(group.first, holder.since);
    group.last = std::max(group.last, holder.since);
  }
  std::vector<Group> result;
  for (auto &[key, group] : groups)
    result.push_back(std::move(group));
  std::stable_sort(
      result.begin(), result.end(),
      [](const Group &a, const Group &b) { return a.bytes > b.bytes; });
  return result;
}

std::string madeAt(const Group &group) {
  if (group.last < 0)
    return "before the step";
  std::string text = group.first == group.last
                         ? "step " + std::to_string(group.last)
                         : "steps " + std::to_string(group.first) + " to " +
                               std::to_string(group.last);
  return text;
}

ExplainedMemory explainStep(const plan::Plan &plan, int program, int step) {
  const plan::Program &p = plan.programs[program];
  const plan::ProgramTimeline timeline =
      plan::simulate(plan, p, startBytes(plan, program));
  const plan::StepMemory &memory = timeline.steps[step];
  const std::vector<plan::LiveBuffer> holders =
      plan::liveBuffersAt(plan, program, step);
  const plan::Step &here = p.steps[step];
  ExplainedMemory result;
  std::string &out = result.text;
  out = "step " + std::to_string(step) + " of '" + p.name +
        "': " + describe(plan, here) + "\n";
  std::string op;
  if (memory.peakInstruction >= 0) {
    const plan::Instruction &at =
        plan.functions[here.function].instructions[memory.peakInstruction];
    op = at.op + (at.where.empty() ? "" : " of " + at.where);
    out += "  highest in its instruction " +
           std::to_string(memory.peakInstruction) + ", " + op + "\n";
  }
  out += "  " + formatBytes(memory.peakTotalBytes) + " at its highest, " +
         formatBytes(memory.liveBytes) + " after it\n\n  " +
         padRight("held by", 62) + padLeft("memory", 10) + padLeft("count", 7) +
         "   made by\n";
  const std::vector<Group> groups = grouped(holders);
  int64_t told = 0;
  for (size_t i = 0; i < std::min(groups.size(), holdersShown); ++i) {
    const Group &g = groups[i];
    out += "    " + padRight(padRight(g.kind, 16) + g.name, 60) +
           padLeft(formatBytes(g.bytes), 10) +
           padLeft(std::to_string(g.count), 7) + "   " + madeAt(g) + "\n";
    told += g.bytes;
  }
  if (memory.peakTotalBytes > told)
    out += "    " + padRight("others", 60) +
           padLeft(formatBytes(memory.peakTotalBytes - told), 10) + "\n";
  Json list = Json::array();
  for (const plan::LiveBuffer &holder : holders)
    list.push_back({{"kind", holder.kind},
                    {"name", holder.name},
                    {"bytes", holder.bytes},
                    {"since", holder.since < 0 ? Json() : Json(holder.since)}});
  result.json = {{"program", p.name},
                 {"step", step},
                 {"what", describe(plan, here)},
                 {"operator", op.empty() ? Json() : Json(op)},
                 {"peak_bytes", memory.peakTotalBytes},
                 {"live_bytes", memory.liveBytes},
                 {"holders", list}};
  return result;
}

ExplainedMemory explainTimeline(const plan::Plan &plan) {
  ExplainedMemory result;
  result.json = Json::array();
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    const plan::Program &p = plan.programs[i];
    const int64_t start =
        p.steps.empty() ? 0 : startBytes(plan, static_cast<int>(i));
    const plan::ProgramTimeline timeline = plan::simulate(plan, p, start);
    result.text += "program '" + p.name + "'\n  " + padRight("step", 62) +
                   padLeft("highest", 12) + padLeft("after", 12) + "\n";
    for (size_t s = 0; s < p.steps.size(); ++s) {
      const plan::StepMemory &m = timeline.steps[s];
      const std::string what = describe(plan, p.steps[s]);
      result.text += "  " +
                     padRight(padLeft(std::to_string(s), 5) + "  " + what, 62) +
                     padLeft(formatBytes(m.peakTotalBytes), 12) +
                     padLeft(formatBytes(m.liveBytes), 12) + "\n";
      result.json.push_back({{"program", p.name},
                             {"step", s},
                             {"what", what},
                             {"peak_bytes", m.peakTotalBytes},
                             {"live_bytes", m.liveBytes}});
    }
  }
  return result;
}

} // namespace

std::optional<ExplainedMemory> explainMemory(const plan::Plan &plan,
                                             const std::string &what,
                                             std::string &problem) {
  if (what == "timeline")
    return explainTimeline(plan);
  std::string name = plan.predicted.peakProgram, number = what;
  if (what == "peak") {
    number = std::to_string(plan.predicted.peakStep);
  } else if (const size_t colon = what.find(':'); colon != std::string::npos) {
    name = what.substr(0, colon);
    number = what.substr(colon + 1);
    if (programNamed(plan, name) < 0)
      return std::nullopt;
  }
  int step = 0;
  auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), step);
  if (end != number.data() + number.size() || number.empty() ||
      error == std::errc::invalid_argument)
    return std::nullopt;
  const int program = programNamed(plan, name);
  if (program < 0 || plan.programs[program].steps.empty()) {
    problem = "the plan predicts no memory";
    return std::nullopt;
  }
  if (what == "peak" && step < 0) // what is there before the program is all
    step = 0;
  const size_t steps = plan.programs[program].steps.size();
  if (error != std::errc() || step < 0 || static_cast<size_t>(step) >= steps) {
    problem = "the program '" + name + "' has steps 0 to " +
              std::to_string(steps - 1) + ", not " + number;
    return std::nullopt;
  }
  return explainStep(plan, program, step);
}

} // namespace accel
