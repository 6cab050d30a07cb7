//===- ac_solve.cpp - Solves saved sets of joint graphs -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// ac-solve [--target NAME] [--budgets N | --caps BYTES,...] [--peaks BYTES,...]
//          < graphs.json
//
// Reads one joint graph or a list of them (JointJson.h; `accel-opt opt
// --pass-pipeline='builtin.module(print-joint)'`), solves each at N caps
// evenly spaced up to what keeping everything takes, or at the caps given
// (with a cap on the backward's peak each, 0 for none), and prints one JSON
// line for each: what was found, what was proven, and how long it took. Every
// answer is verified; exit 1 if one is wrong. Graphs without seconds take
// those of the target.
//
//===----------------------------------------------------------------------===//
#include "frontends/Diagnostics/Diagnostics.h"
#include "passes/Recompute/JointJson.h"
#include "passes/Recompute/SolveCut.h"
#include "passes/Recompute/SolveExact.h"
#include "passes/Targets/ReadTarget.h"

#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace accel;

namespace {

std::vector<int64_t> numbers(const char *text) {
  std::vector<int64_t> result;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    result.push_back(std::stoll(part));
  return result;
}

struct Options {
  std::string target = "h100-sxm-80gb";
  int budgets = 20;
  std::vector<int64_t> caps, peaks;
};

/// Prints the line of one problem; whether the answer is right.
bool solveOne(const SavedSetProblem &problem) {
  const SavedSetSolution solution = solveExact(problem);
  const CutResult cuts = solveByCuts(RecomputeModel(problem), problem.capBytes);
  std::string wrong =
      solution.feasible ? verifySavedSet(problem, solution) : "";
  nlohmann::json kept = nlohmann::json::array();
  for (size_t op = 0; op < solution.saved.size(); ++op)
    if (solution.saved[op])
      kept.push_back(op);
  nlohmann::json line = {{"name", problem.graph.function.name},
                         {"cap", problem.capBytes},
                         {"feasible", solution.feasible},
                         {"proven_infeasible", solution.provenInfeasible},
                         {"saved_bytes", solution.bytes.saved},
                         {"backward_peak", solution.bytes.backwardHeldPeak},
                         {"recompute_s", solution.recomputeSeconds},
                         {"bound_s", solution.boundSeconds},
                         {"any_order_bound_s", solution.anyOrderBoundSeconds},
                         {"gap", solution.gap()},
                         {"solve_s", solution.solveSeconds},
                         {"nodes", solution.nodes},
                         {"cut_recompute_s", cuts.seconds},
                         {"cut_bound_s", cuts.boundSeconds},
                         {"saved", kept},
                         {"wrong", wrong}};
  if (problem.capBackwardPeak)
    line["cap_peak"] = *problem.capBackwardPeak;
  std::cout << line.dump() << "\n";
  return wrong.empty();
}

bool solveAll(const ReadJoint &read, const Options &options,
              const Target &target) {
  SavedSetProblem problem(read.graph, read.seconds.empty()
                                          ? instructionTimes(read.graph, target)
                                          : read.seconds);
  problem.capBytes = std::numeric_limits<int64_t>::max();
  const int64_t all =
      measureSavedSet(problem, savedByMode(read.graph, "none")).bytes.saved;
  std::vector<int64_t> caps = options.caps;
  if (caps.empty())
    for (int i = 0; i < options.budgets; ++i)
      caps.push_back(all * i / std::max(options.budgets - 1, 1));
  bool right = true;
  for (size_t i = 0; i < caps.size(); ++i) {
    problem.capBytes = caps[i];
    problem.capBackwardPeak.reset();
    if (i < options.peaks.size() && options.peaks[i] > 0)
      problem.capBackwardPeak = options.peaks[i];
    right &= solveOne(problem);
  }
  return right;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const char *value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value && name == "--target") {
      options.target = value;
    } else if (value && name == "--budgets") {
      options.budgets = std::stoi(value);
    } else if (value && name == "--caps") {
      options.caps = numbers(value);
    } else if (value && name == "--peaks") {
      options.peaks = numbers(value);
    } else {
      std::cerr << "usage: ac-solve [--target NAME] [--budgets N | --caps "
                   "BYTES,...] [--peaks BYTES,...] < graphs.json\n";
      return 64;
    }
  }
  DiagnosticEngine engine;
  std::optional<Target> target = loadTarget(options.target, engine);
  if (!target) {
    std::cerr << "ac-solve: no target '" << options.target << "'\n";
    return 1;
  }
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded()) {
    std::cerr << "ac-solve: the input is no JSON\n";
    return 1;
  }
  if (!document.is_array())
    document = nlohmann::json::array({document});
  bool right = true;
  for (const nlohmann::json &one : document) {
    ReadJoint read = readJoint(one.dump());
    if (!read.error.empty()) {
      std::cerr << "ac-solve: " << read.error << "\n";
      return 1;
    }
    right &= solveAll(read, options, *target);
  }
  return right ? 0 : 1;
}
