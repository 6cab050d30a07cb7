//===- FitTarget.cpp - A target from measured operators -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Fit/FitTarget.h"

#include "passes/Cost/OpCost.h"
#include "passes/Simulate/Time.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <sstream>

namespace accel {

namespace {

class Fitter {
public:
  Fitter(const plan::Plan &plan, const Calibration &calibration, Target &target)
      : plan(plan), calibration(calibration), target(target) {
    for (const auto &each : calibration.operators)
      allSeconds += each.calls * each.seconds;
  }

  std::vector<FittedFigure> run();

private:
  const plan::Instruction &
  instructionOf(const Calibration::Operator &each) const {
    return plan.functions[each.function].instructions[each.instruction];
  }
  OpKind kindOf(const Calibration::Operator &each) const {
    return opKind(instructionOf(each));
  }
  void fitMemory();
  void fitCompute(plan::DType dtype, ComputeRate &rate);
  void fitLink();
  /// Sets `set(value)` to where the model's seconds of `chosen` are the
  /// measured ones, from `value`'s neighbourhood.
  void fit(const std::string &key, double value, double most,
           const std::vector<Calibration::Operator> &chosen,
           const std::function<void(double)> &set);
  std::vector<Calibration::Operator> select(
      const std::function<bool(const Calibration::Operator &)> &wanted) const;

  const plan::Plan &plan;
  const Calibration &calibration;
  Target &target;
  double allSeconds = 0;
  std::vector<FittedFigure> figures;
};

/// Seconds fall where a figure grows.
double solve(double from, double most, double wanted,
             const std::function<double(double)> &seconds) {
  constexpr double span = 1000;
  double low = from / span, high = std::min(from * span, most);
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (seconds(middle) > wanted ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

std::vector<Calibration::Operator> Fitter::select(
    const std::function<bool(const Calibration::Operator &)> &wanted) const {
  std::vector<Calibration::Operator> chosen;
  std::copy_if(calibration.operators.begin(), calibration.operators.end(),
               std::back_inserter(chosen), wanted);
  return chosen;
}

void Fitter::fit(const std::string &key, double value, double most,
                 const std::vector<Calibration::Operator> &chosen,
                 const std::function<void(double)> &set) {
  double measured = 0;
  for (const auto &each : chosen)
    measured += each.calls * each.seconds;
  if (measured <= 0)
    return;
  FittedFigure figure{key, 0, value,
                      allSeconds > 0 ? measured / allSeconds : 0};
  figure.value = solve(value, most, measured, [&](double trial) {
    set(trial);
    double sum = 0;
    for (const auto &each : chosen)
      sum += each.calls * opSeconds(plan.functions[each.function],
                                    instructionOf(each), target);
    return sum;
  });
  set(figure.value);
  figures.push_back(figure);
}

void Fitter::fitMemory() {
  const bool reductions = target.reductionBytesPerSecond > 0;
  auto streams = select([&](const auto &each) {
    const OpKind kind = kindOf(each);
    return kind == OpKind::Stream || (!reductions && kind == OpKind::Reduction);
  });
  // A GPU's bandwidth is its data sheet's, and what is attained a part of it; a
  // core's is measured.
  const double attained = target.memoryBytesPerSecond;
  double sheet = attained, efficiency = 1;
  for (const TargetFigure &figure : target.figures) {
    if (figure.key == "memory.bandwidth")
      sheet = std::stod(figure.value);
    if (figure.key == "memory.bandwidth_efficiency")
      efficiency = std::stod(figure.value);
  }
  auto setAttained = [&](double bytesPerSecond) {
    target.memoryBytesPerSecond = bytesPerSecond;
  };
  if (target.kind == TargetKind::Cpu)
    fit("memory.bandwidth", sheet, 1e15, streams,
        [&](double value) { setAttained(value * efficiency); });
  else
    fit("memory.bandwidth_efficiency", efficiency, 1, streams,
        [&](double value) { setAttained(value * sheet); });
  if (!reductions)
    return;
  sheet = target.kind == TargetKind::Cpu && !figures.empty()
              ? figures.back().value
              : sheet;
  fit("memory.reduction_efficiency", target.reductionBytesPerSecond / sheet, 1,
      select(
          [&](const auto &each) { return kindOf(each) == OpKind::Reduction; }),
      [&](double value) { target.reductionBytesPerSecond = value * sheet; });
}

void Fitter::fitCompute(plan::DType dtype, ComputeRate &rate) {
  const std::string path = std::string("compute.") + plan::toString(dtype);
  auto computes = [&](const Calibration::Operator &each, OpKind kind) {
    return kindOf(each) == kind && computeType(plan.functions[each.function],
                                               instructionOf(each)) == dtype;
  };
  auto backward = [&](const Calibration::Operator &each) {
    return instructionOf(each).op.find("backward") != std::string::npos;
  };
  const bool apart = rate.attentionBackwardEfficiency > 0;
  fit(path + ".matmul_efficiency", rate.matmulEfficiency, 1,
      select([&](const auto &each) { return computes(each, OpKind::Product); }),
      [&](double value) { rate.matmulEfficiency = value; });
  fit(path + ".attention_efficiency", rate.attentionEfficiency, 1,
      select([&](const auto &each) {
        return computes(each, OpKind::Attention) && !(apart && backward(each));
      }),
      [&](double value) { rate.attentionEfficiency = value; });
  if (apart)
    fit(path + ".attention_backward_efficiency",
        rate.attentionBackwardEfficiency, 1, select([&](const auto &each) {
          return computes(each, OpKind::Attention) && backward(each);
        }),
        [&](double value) { rate.attentionBackwardEfficiency = value; });
}

void Fitter::fitLink() {
  double measured = 0;
  for (const auto &each : calibration.collectives)
    measured += each.seconds;
  if (measured <= 0)
    return;
  Link &link = target.insideNode;
  FittedFigure figure{"links.intra_node.bandwidth", 0, link.bytesPerSecond, 0};
  figure.value = solve(link.bytesPerSecond, 1e18, measured, [&](double trial) {
    link.bytesPerSecond = trial;
    double sum = 0;
    for (const auto &each : calibration.collectives)
      sum +=
          collectiveSeconds(plan, target, 0, each.kind, each.axes, each.bytes);
    return sum;
  });
  link.bytesPerSecond = figure.value;
  figures.push_back(figure);
}

std::vector<FittedFigure> Fitter::run() {
  // Memory first: products and attention cost at least what they move.
  fitMemory();
  for (auto &[dtype, rate] : target.compute)
    fitCompute(dtype, rate);
  fitLink();
  return figures;
}

size_t indentOf(const std::string &line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

} // namespace

std::vector<FittedFigure> fitTarget(const plan::Plan &plan,
                                    const Calibration &calibration,
                                    Target &target) {
  return Fitter(plan, calibration, target).run();
}

/// The files are mappings in block style, two spaces a level; a figure is
/// `key: 1.0` with the section's `source`, or `key:` with `value` and `source`.
std::string withFigures(std::string text,
                        const std::vector<FittedFigure> &figures,
                        const std::string &source) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  for (const FittedFigure &figure : figures) {
    std::vector<std::string> path;
    std::istringstream keys(figure.key);
    for (std::string key; std::getline(keys, key, '.');)
      path.push_back(key);
    size_t at = 0, depth = 0;
    for (; at < lines.size() && depth < path.size(); ++at) {
      const size_t indent = indentOf(lines[at]);
      if (indent == 2 * depth &&
          lines[at].compare(indent, path[depth].size() + 1,
                            path[depth] + ":") == 0)
        ++depth;
      else if (depth > 0 && indent < 2 * depth && indent < lines[at].size() &&
               lines[at][indent] != '#')
        return "";
    }
    if (depth < path.size())
      return "";
    char number[32];
    std::snprintf(number, sizeof number, "%.4g", figure.value);
    std::string value = number;
    if (value.find('.') == std::string::npos)
      value.insert(std::min(value.find('e'), value.size()), ".0");
    std::string &line = lines[at - 1];
    const size_t indent = indentOf(line);
    if (line.back() == ':') { // value and source below
      for (size_t i = at; i < lines.size() && indentOf(lines[i]) > indent; ++i)
        for (const auto &[key, put] :
             {std::pair<std::string, std::string>{"value", value},
              {"source", '"' + source + '"'}})
          if (lines[i].compare(indentOf(lines[i]), key.size() + 1, key + ":") ==
              0)
            lines[i] =
                lines[i].substr(0, indentOf(lines[i])) + key + ": " + put;
      continue;
    }
    line = line.substr(0, line.find(':')) + ": " + value;
    for (size_t i = at; i < lines.size() && indentOf(lines[i]) == indent; ++i)
      if (lines[i].compare(indent, 8, "source: ") == 0 &&
          lines[i].find(source) == std::string::npos)
        lines[i].insert(lines[i].size() - 1, "; " + source);
  }
  std::string result;
  for (const std::string &line : lines)
    result += line + "\n";
  return result;
}

} // namespace accel
