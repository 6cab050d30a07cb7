//===- ExplainMemory.cpp - Memory by instruction --------------------------===//
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

/// What an instruction does, in a few words.
std::string describe(const plan::Plan &plan,
                     const plan::ProgramInstruction &instruction) {
  std::string text = toString(instruction.kind);
  if (instruction.kind == plan::ProgramInstructionKind::Call)
    return "call " + plan.functions[instruction.function].name +
           (instruction.where.empty() ? "" : " at " + instruction.where);
  if (instruction.kind == plan::ProgramInstructionKind::Alloc ||
      (instruction.kind == plan::ProgramInstructionKind::Free &&
       instruction.unit >= 0))
    text += std::string(" ") + plan::toString(instruction.role);
  if (instruction.unit >= 0)
    text += " of " + (plan.units[instruction.unit].name.empty()
                          ? std::string("(root)")
                          : plan.units[instruction.unit].name);
  else if (!instruction.values.empty())
    text += " " + std::to_string(instruction.values.size()) + " values";
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
  int first = 0, last = 0; // instructions that made them
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
                         ? "instruction " + std::to_string(group.last)
                         : "instructions " + std::to_string(group.first) +
                               " to " + std::to_string(group.last);
  return text;
}

ExplainedMemory explainInstruction(const plan::Plan &plan, int program,
                                   int instruction) {
  const plan::Program &p = plan.programs[program];
  const plan::ProgramTimeline timeline =
      plan::simulate(plan, p, startBytes(plan, program));
  const plan::InstructionMemory &memory = timeline.instructions[instruction];
  const std::vector<plan::LiveBuffer> holders =
      plan::liveBuffersAt(plan, program, instruction);
  const plan::ProgramInstruction &here = p.instructions[instruction];
  ExplainedMemory result;
  std::string &out = result.text;
  out = "instruction " + std::to_string(instruction) + " of '" + p.name +
        "': " + describe(plan, here) + "\n";
  std::string op;
  if (memory.peakInstruction >= 0) {
    const plan::Instruction &at =
        plan.functions[here.function].instructions[memory.peakInstruction];
    op = at.op + (at.where.empty() ? "" : " of " + at.where);
    out += "  highest in instruction " +
           std::to_string(memory.peakInstruction) + " of its function, " + op +
           "\n";
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
                 {"instruction", instruction},
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
        p.instructions.empty() ? 0 : startBytes(plan, static_cast<int>(i));
    const plan::ProgramTimeline timeline = plan::simulate(plan, p, start);
    result.text += "program '" + p.name + "'\n  " +
                   padRight("instruction", 62) + padLeft("highest", 12) +
                   padLeft("after", 12) + "\n";
    for (size_t s = 0; s < p.instructions.size(); ++s) {
      const plan::InstructionMemory &m = timeline.instructions[s];
      const std::string what = describe(plan, p.instructions[s]);
      result.text += "  " +
                     padRight(padLeft(std::to_string(s), 5) + "  " + what, 62) +
                     padLeft(formatBytes(m.peakTotalBytes), 12) +
                     padLeft(formatBytes(m.liveBytes), 12) + "\n";
      result.json.push_back({{"program", p.name},
                             {"instruction", s},
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
    number = std::to_string(plan.predicted.peakInstruction);
  } else if (const size_t colon = what.find(':'); colon != std::string::npos) {
    name = what.substr(0, colon);
    number = what.substr(colon + 1);
    if (programNamed(plan, name) < 0)
      return std::nullopt;
  }
  int instruction = 0;
  auto [end, error] = std::from_chars(
      number.data(), number.data() + number.size(), instruction);
  if (end != number.data() + number.size() || number.empty() ||
      error == std::errc::invalid_argument)
    return std::nullopt;
  const int program = programNamed(plan, name);
  if (program < 0 || plan.programs[program].instructions.empty()) {
    problem = "the plan predicts no memory";
    return std::nullopt;
  }
  if (what == "peak" &&
      instruction < 0) // what is there before the program is all
    instruction = 0;
  const size_t count = plan.programs[program].instructions.size();
  if (error != std::errc() || instruction < 0 ||
      static_cast<size_t>(instruction) >= count) {
    problem = "the program '" + name + "' has instructions 0 to " +
              std::to_string(count - 1) + ", not " + number;
    return std::nullopt;
  }
  return explainInstruction(plan, program, instruction);
}

} // namespace accel
