//===- EmitDot.cpp - Units and schedule as a graph ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Emit/EmitDot.h"

#include "tools/driver/Text/Format.h"

#include <map>

namespace accel {
namespace {

using plan::Plan;
using plan::Program;
using plan::ProgramInstruction;
using plan::ProgramInstructionKind;
using plan::Stream;

/// A string of Graphviz's language; a newline ends a line of a label.
std::string literal(const std::string &text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

std::string unitName(const plan::Unit &unit) {
  return unit.name.empty() ? "root" : unit.name;
}

class Writer {
public:
  explicit Writer(const Plan &plan) : plan(plan) {}

  std::string run() {
    out = "// Units and schedule of " + printed(plan.job.modelName) +
          "; dot -Tsvg draws it.\n"
          "digraph plan {\n"
          "  rankdir=LR;\n"
          "  node [shape=box, fontname=\"Helvetica\", fontsize=10];\n"
          "  edge [fontname=\"Helvetica\", fontsize=9];\n";
    units();
    for (size_t p = 0; p < plan.programs.size(); ++p)
      program(plan.programs[p], "p" + std::to_string(p));
    return out + "}\n";
  }

private:
  /// Names stand in a comment, which ends with its line.
  static std::string printed(std::string name) {
    for (char &c : name)
      if (c == '\n' || c == '\r')
        c = ' ';
    return name;
  }

  void units() {
    out += "  subgraph cluster_units {\n    label=\"units\";\n";
    for (size_t u = 0; u < plan.units.size(); ++u) {
      const plan::Unit &unit = plan.units[u];
      std::string label =
          unitName(unit) + "\n" + std::to_string(unit.parameters.size()) +
          " parameters, " + formatCount(static_cast<double>(unit.numel)) +
          " elements\n";
      label += unit.shardAxes.empty() ? "on every rank" : "sharded over";
      for (const std::string &axis : unit.shardAxes)
        label += " " + axis;
      label += std::string(", ") + toString(unit.storage);
      if (!unit.shardAxes.empty())
        label += std::string(", gathered in ") + toString(unit.gather) + ", " +
                 formatBytes(unit.padded * plan::itemSize(unit.gather));
      if (!unit.trainable)
        label += "\nfrozen";
      out += "    u" + std::to_string(u) + " [label=" + literal(label) + "];\n";
      if (u)
        out += "    u" + std::to_string(u - 1) + " -> u" + std::to_string(u) +
               " [style=invis];\n";
    }
    out += "  }\n";
  }

  static bool isNode(const ProgramInstruction &instruction) {
    switch (instruction.kind) {
    case ProgramInstructionKind::Alloc:
    case ProgramInstructionKind::Free:
    case ProgramInstructionKind::Await:
      return false;
    default:
      return true;
    }
  }

  std::string labelOf(const ProgramInstruction &instruction) const {
    std::string label = toString(instruction.kind);
    if (instruction.function >= 0)
      label = plan.functions[static_cast<size_t>(instruction.function)].name;
    if (instruction.unit >= 0)
      label +=
          "\n" + unitName(plan.units[static_cast<size_t>(instruction.unit)]);
    else if (!instruction.where.empty())
      label += "\n" + instruction.where;
    for (const std::string &axis : instruction.axes)
      label += (&axis == &instruction.axes.front() ? "\nover " : ", ") + axis;
    return label;
  }

  void program(const Program &program, const std::string &id) {
    out += "  subgraph cluster_" + id + " {\n    label=" +
           literal("program " + program.name + ", peak " +
                   formatBytes(program.peakBytes)) +
           ";\n";
    for (const Stream stream :
         {Stream::Gather, Stream::Compute, Stream::Reduce, Stream::Send,
          Stream::HostOut, Stream::HostIn, Stream::Host})
      row(program, id, stream);
    edges(program, id);
    out += "  }\n";
  }

  static std::string node(const std::string &id, size_t instruction) {
    return id + "_" + std::to_string(instruction);
  }

  void row(const Program &program, const std::string &id, Stream stream) {
    std::string nodes, previous;
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      const ProgramInstruction &instruction = program.instructions[i];
      if (!isNode(instruction) || instruction.stream != stream)
        continue;
      const std::string name = node(id, i);
      nodes +=
          "      " + name + " [label=" + literal(labelOf(instruction)) + "];\n";
      if (!previous.empty())
        nodes += "      " + previous + " -> " + name + ";\n";
      previous = name;
    }
    if (nodes.empty())
      return;
    out += "    subgraph cluster_" + id + "_" + toString(stream) +
           " {\n      label=" + literal(toString(stream)) + ";\n" + nodes +
           "    }\n";
  }

  /// What each stream waits for: whoever runs behind an await waits for the
  /// start, and a collective for what was computed before it was issued.
  void edges(const Program &program, const std::string &id) {
    std::map<int, size_t> starts;                  // by timepoint
    std::map<Stream, std::vector<size_t>> awaited; // by the waiting stream
    std::string computed;
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      const ProgramInstruction &instruction = program.instructions[i];
      if (instruction.kind == ProgramInstructionKind::Await) {
        if (auto start = starts.find(instruction.timepoint);
            start != starts.end())
          awaited[instruction.stream].push_back(start->second);
        continue;
      }
      if (!isNode(instruction))
        continue;
      const std::string name = node(id, i);
      for (const size_t start : awaited[instruction.stream])
        out += "    " + node(id, start) + " -> " + name + " [style=dashed];\n";
      awaited[instruction.stream].clear();
      const bool reduces =
          instruction.kind == ProgramInstructionKind::ReduceScatter ||
          instruction.kind == ProgramInstructionKind::AllReduce ||
          instruction.kind == ProgramInstructionKind::Offload;
      if (reduces && !computed.empty() && instruction.stream != Stream::Compute)
        out += "    " + computed + " -> " + name + " [style=dashed];\n";
      if (instruction.stream == Stream::Compute)
        computed = name;
      if (instruction.timepoint >= 0)
        starts[instruction.timepoint] = i;
    }
  }

  const Plan &plan;
  std::string out;
};

} // namespace

std::string dotText(const Plan &plan) { return Writer(plan).run(); }

} // namespace accel
