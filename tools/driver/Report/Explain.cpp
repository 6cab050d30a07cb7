//===- Explain.cpp - The recorded reasons of a plan -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/Explain.h"
#include "tools/driver/Report/UnitBytes.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <utility>

namespace accel {
namespace {

class Explainer {
public:
  explicit Explainer(const plan::Plan &plan) : plan(plan) {}

  bool explain(const std::string &what) {
    for (size_t u = 0; u < plan.units.size(); ++u)
      if (plan.units[u].name == what ||
          (what == "(root)" && plan.units[u].name.empty())) {
        unit(static_cast<int>(u));
        return true;
      }
    for (const plan::Parameter &p : plan.parameters)
      if (p.fqn == what || std::find(p.aliases.begin(), p.aliases.end(),
                                     what) != p.aliases.end()) {
        parameter(p);
        return true;
      }
    bool any = false;
    for (const plan::Decision &d : plan.decisions)
      if (d.what == what || d.where == what) {
        decision(d);
        any = true;
      }
    return any;
  }

  std::string text;
  nlohmann::ordered_json reasons = nlohmann::ordered_json::array();

private:
  void decision(const plan::Decision &d) {
    std::string where = d.where.empty() ? "(root)" : d.where;
    text += "  " + d.what + " of " + where + ": " + d.choice +
            "\n    because " + d.why;
    if (!d.file.empty())
      text += " (" + d.file + ":" + std::to_string(d.line) + ":" +
              std::to_string(d.column) + ")";
    text += "\n";
    for (const std::string &other : d.alternatives)
      text += "    not " + other + "\n";
    reasons.push_back({{"what", d.what},
                       {"where", d.where},
                       {"choice", d.choice},
                       {"why", d.why},
                       {"file", d.file},
                       {"line", d.line},
                       {"column", d.column},
                       {"alternatives", d.alternatives}});
  }

  void unit(int index) {
    const plan::Unit &u = plan.units[index];
    text += "unit " + (u.name.empty() ? std::string("(root)") : u.name) + ": " +
            std::to_string(u.parameters.size()) + " parameters, " +
            std::to_string(u.numel) + " elements (" + std::to_string(u.padded) +
            " with alignment)\n";
    const UnitBytes bytes = unitBytes(plan, u);
    text += "  a rank keeps " + formatBytes(bytes.kept) + " of them in " +
            bytes.dtypes;
    if (bytes.gathered)
      text += ", gathered into " + formatBytes(bytes.gathered) + " of " +
              plan::toString(u.gather);
    text += "\n";
    for (const plan::Decision &d : plan.decisions)
      if (d.where == u.name)
        decision(d);
    for (const plan::Program &program : plan.programs)
      instructions(program, index);
  }

  void instructions(const plan::Program &program, int unit) {
    text += "  instructions in '" + program.name + "':";
    const char *separator = " ";
    for (size_t s = 0; s < program.instructions.size(); ++s) {
      const plan::ProgramInstruction &instruction = program.instructions[s];
      // Copies of values are for a call.
      const bool moves =
          instruction.unit < 0 &&
          (instruction.kind == plan::ProgramInstructionKind::Offload ||
           instruction.kind == plan::ProgramInstructionKind::Fetch) &&
          instruction.where == plan.units[unit].name;
      if ((instruction.unit == unit || moves) &&
          instruction.kind != plan::ProgramInstructionKind::Await)
        text += std::exchange(separator, ", ") + std::to_string(s) + " " +
                plan::toString(instruction.kind) +
                (instruction.kind == plan::ProgramInstructionKind::Alloc ||
                         instruction.kind == plan::ProgramInstructionKind::Free
                     ? std::string(" ") + plan::toString(instruction.role)
                     : std::string());
    }
    text += "\n";
  }

  void parameter(const plan::Parameter &p) {
    std::string shape;
    for (int64_t size : p.shape)
      shape += (shape.empty() ? "" : " x ") + std::to_string(size);
    const plan::Unit &u = plan.units[p.unit];
    text += "parameter " + p.fqn + ": " + shape + " " +
            plan::toString(p.dtype) + (p.trainable ? "" : ", frozen") + "\n";
    for (const std::string &alias : p.aliases)
      text += "  tied to " + alias + "\n";
    text += "  elements " + std::to_string(p.offset) + " to " +
            std::to_string(p.offset + p.numel()) + " of unit " +
            (u.name.empty() ? "(root)" : u.name) + "\n";
    const auto &groups = plan.job.optimizer.groups;
    if (p.trainable && p.group < static_cast<int>(groups.size()))
      text += "  optimizer group " + std::to_string(p.group) + ": lr " +
              std::to_string(groups[p.group].lr) + ", weight decay " +
              std::to_string(groups[p.group].weightDecay) + "\n";
    for (const plan::Decision &d : plan.decisions)
      if (d.where == u.name)
        decision(d);
  }

  const plan::Plan &plan;
};

} // namespace

std::optional<Explanation> explain(const plan::Plan &plan,
                                   const std::string &what) {
  Explainer explainer(plan);
  if (!explainer.explain(what))
    return std::nullopt;
  return Explanation{std::move(explainer.text), std::move(explainer.reasons)};
}

std::vector<std::string> explainableNames(const plan::Plan &plan) {
  std::vector<std::string> result = {"job", "peak", "timeline"};
  for (const plan::Unit &u : plan.units)
    result.push_back(u.name.empty() ? "(root)" : u.name);
  for (const plan::Parameter &p : plan.parameters)
    result.push_back(p.fqn);
  for (const plan::Decision &d : plan.decisions)
    result.push_back(d.what);
  return result;
}

} // namespace accel
