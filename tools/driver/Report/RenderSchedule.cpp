//===- RenderSchedule.cpp - A program as folded lines ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Chunks.h"
#include "runtime/plan/ModulePath.h"
#include "tools/driver/Report/Render.h"
#include "tools/driver/Text/Format.h"

#include <cctype>

namespace accel {

namespace {

std::string nameOf(const std::string &unit) {
  return unit.empty() ? "(root)" : unit;
}

std::string line(const plan::Plan &plan, const plan::Program &program,
                 const plan::ProgramInstruction &instruction) {
  std::string unit =
      instruction.unit >= 0
          ? nameOf(plan::withoutLayerNumbers(plan.units[instruction.unit].name))
          : "";
  auto sized = [&](const char *what) {
    std::string text = what;
    text.resize(16, ' ');
    text += unit + "  " +
            formatBytes(plan::roleBytes(plan, plan.units[instruction.unit],
                                        instruction.role));
    return text;
  };
  auto moved = [&](const char *what) {
    return what + plan::withoutLayerNumbers(instruction.where) + "  " +
           formatBytes(plan::storageBytes(program, instruction.inputs));
  };
  switch (instruction.kind) {
  case plan::ProgramInstructionKind::AllGather:
    return sized(instruction.axes.empty() ? "cast" : "gather");
  case plan::ProgramInstructionKind::ReduceScatter:
    return sized("reduce_scatter");
  case plan::ProgramInstructionKind::AllReduce:
    return sized("all_reduce");
  case plan::ProgramInstructionKind::Offload:
    if (instruction.unit >= 0)
      return sized("copy to host");
    return moved("copy to host    ");
  case plan::ProgramInstructionKind::Fetch:
    return moved("copy from host  ");
  case plan::ProgramInstructionKind::Await:
    return "await           " +
           (instruction.unit >= 0
                ? unit
                : plan::withoutLayerNumbers(instruction.where));
  case plan::ProgramInstructionKind::Free:
    return instruction.values.empty() ? "free            " + unit + "  " +
                                            plan::toString(instruction.role)
                                      : "";
  case plan::ProgramInstructionKind::Alloc:
    return "";
  case plan::ProgramInstructionKind::Call:
    return "call            " + plan.functions[instruction.function].name +
           (instruction.where.empty()
                ? ""
                : " at " + plan::withoutLayerNumbers(instruction.where));
  case plan::ProgramInstructionKind::GradNorm:
    return "gradient norm";
  case plan::ProgramInstructionKind::Optimizer:
    return (instruction.stream == plan::Stream::Host ? "update on host  "
                                                     : "update          ") +
           unit;
  case plan::ProgramInstructionKind::Send:
    if (plan::staysInStage(plan, program, instruction))
      return std::string("hand over       to the chunk ") +
             (instruction.shift > 0 ? "behind" : "before");
    return "send            to the stage " +
           std::string(instruction.shift > 0 ? "behind" : "before");
  case plan::ProgramInstructionKind::Receive:
    if (plan::staysInStage(plan, program, instruction))
      return std::string("take            from the chunk ") +
             (instruction.shift > 0 ? "before" : "behind");
    return "receive         from the stage " +
           std::string(instruction.shift > 0 ? "before" : "behind");
  case plan::ProgramInstructionKind::Pause:
    return "pause";
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
  for (const plan::ProgramInstruction &instruction : program.instructions)
    if (std::string text = line(plan, program, instruction); !text.empty())
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
