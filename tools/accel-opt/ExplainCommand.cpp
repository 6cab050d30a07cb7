//===- ExplainCommand.cpp - accel-opt explain -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Diagnostics/Diagnostics.h"
#include "runtime/plan/PlanJson.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Options/Arguments.h"
#include "tools/driver/Report/ExplainMemory.h"
#include "tools/driver/Report/Render.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

using namespace accel;

namespace {

/// What a plan says about one unit, parameter or the job.
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

  std::vector<std::string> names() const {
    std::vector<std::string> result = {"job", "peak", "timeline"};
    for (const plan::Unit &u : plan.units)
      result.push_back(u.name.empty() ? "(root)" : u.name);
    for (const plan::Parameter &p : plan.parameters)
      result.push_back(p.fqn);
    for (const plan::Decision &d : plan.decisions)
      result.push_back(d.what);
    return result;
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
    text += "  a rank keeps " +
            formatBytes(plan::shardNumel(plan, u) * plan::itemSize(u.storage)) +
            " of them in " + plan::toString(u.storage);
    if (!plan::readsShard(plan, u))
      text += ", gathered into " +
              formatBytes(plan::roleBytes(plan, u, plan::Role::Gathered)) +
              " of " + plan::toString(u.gather);
    text += "\n";
    for (const plan::Decision &d : plan.decisions)
      if (d.where == u.name)
        decision(d);
    for (const plan::Program &program : plan.programs)
      steps(program, index);
  }

  void steps(const plan::Program &program, int unit) {
    text += "  in '" + program.name + "':";
    for (size_t s = 0; s < program.steps.size(); ++s) {
      const plan::Step &step = program.steps[s];
      if (step.unit == unit && step.kind != plan::StepKind::Await)
        text += " " + std::string(plan::toString(step.kind)) +
                (step.kind == plan::StepKind::Alloc ||
                         step.kind == plan::StepKind::Free
                     ? std::string(" ") + plan::toString(step.role)
                     : std::string()) +
                " (step " + std::to_string(s) + ")";
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

int accel::explainCommand(int argc, char **argv) {
  std::string output = "text";
  Arguments arguments(
      "explain", "PLAN [WHAT]",
      "Prints the recorded reasons of a plan: all of the job, "
      "or those of a unit,\na parameter or a kind of decision "
      "(wrap, precision, reshard, ...); or who holds\nmemory at "
      "the 'peak' or at a step ('170', 'last:170'), or the "
      "'timeline' of all\nsteps.");
  arguments.addChoice("--format", {"text", "json"}, output,
                      "text for people, json for programs");
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (arguments.positional.empty() || arguments.positional.size() > 2) {
    std::fprintf(stderr, "accel-opt explain: error: expected PLAN [WHAT]\n");
    return exitUsage;
  }
  plan::Plan plan;
  std::string error;
  if (!plan::readPlan(arguments.positional[0], plan, error)) {
    std::fprintf(stderr, "accel-opt explain: error: %s\n", error.c_str());
    return exitInvalid;
  }
  Explainer explainer(plan);
  std::string what =
      arguments.positional.size() > 1 ? arguments.positional[1] : "job";
  std::string problem;
  if (auto memory = explainMemory(plan, what, problem)) {
    std::fputs(output == "json" ? (memory->json.dump(2) + "\n").c_str()
                                : memory->text.c_str(),
               stdout);
    return exitOk;
  }
  if (!problem.empty()) {
    std::fprintf(stderr, "accel-opt explain: error: %s\n",
                 printable(problem).c_str());
    return exitInvalid;
  }
  if (!explainer.explain(what)) {
    std::string hint = didYouMean(what, explainer.names());
    if (what == "limit") // a decision of the search
      hint = "what limits a job is found by `accel-opt plan --tune`";
    std::fprintf(stderr,
                 "accel-opt explain: error: the plan has no unit, parameter or "
                 "decision '%s'%s%s\n",
                 printable(what).c_str(), hint.empty() ? "" : "; ",
                 hint.c_str());
    return exitInvalid;
  }
  if (output == "json")
    std::printf("%s\n", explainer.reasons.dump(2).c_str());
  else
    std::fputs(explainer.text.c_str(), stdout);
  return exitOk;
}
