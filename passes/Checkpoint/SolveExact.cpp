//===- SolveExact.cpp - The best saved set, proven ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Checkpoint/SolveExact.h"

#include "passes/Checkpoint/JointJson.h"
#include "passes/Checkpoint/PeakRows.h"
#include "passes/Checkpoint/SolveCut.h"
#include "runtime/plan/Sha256.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include <coin/CbcModel.hpp>
#include <coin/CglGomory.hpp>
#include <coin/CglKnapsackCover.hpp>
#include <coin/CglMixedIntegerRounding2.hpp>
#include <coin/CglProbing.hpp>
#include <coin/OsiClpSolverInterface.hpp>

namespace accel {

namespace {

/// The objective is scaled so that recomputing everything costs this much.
constexpr double objectiveOfAll = 1e5;
/// Objective differences below this are not searched for (1e-12 of all).
constexpr double cutoffIncrement = 1e-7;

/// A saved set that the program proposes, and what it proves.
struct Proposal {
  bool solved = false, infeasible = false;
  std::vector<bool> kept;
  double boundSeconds = 0;
  int nodes = 0;
};

class Program {
public:
  Program(const RecomputeModel &model, const SavedSetProblem &problem)
      : model(model) {
    build(problem);
  }

  /// Kept storages must not be exactly these.
  void exclude(const std::vector<bool> &kept) {
    CoinPackedVector row;
    double least = 1;
    for (size_t s = 0; s < kept.size(); ++s) {
      row.insert(static_cast<int>(s), kept[s] ? -1 : 1);
      least -= kept[s];
    }
    solver.addRow(row, least, solver.getInfinity());
  }

  /// Not all of these storages fit.
  void cover(const std::vector<bool> &kept) {
    CoinPackedVector row;
    double most = -1;
    for (size_t s = 0; s < kept.size(); ++s)
      if (kept[s]) {
        row.insert(static_cast<int>(s), 1);
        most += 1;
      }
    solver.addRow(row, -solver.getInfinity(), most);
  }

  Proposal solve(const std::vector<bool> *start, double limitSeconds) {
    CbcModel cbc(solver);
    cbc.setLogLevel(0);
    cbc.solver()->messageHandler()->setLogLevel(0);
    cbc.setDblParam(CbcModel::CbcCutoffIncrement, cutoffIncrement);
    cbc.setAllowableGap(cutoffIncrement);
    cbc.setAllowableFractionGap(0);
    cbc.setIntegerTolerance(1e-9);
    cbc.setMaximumSeconds(limitSeconds);
    CglProbing probing;
    CglKnapsackCover covers;
    CglGomory gomory;
    CglMixedIntegerRounding2 rounding;
    cbc.addCutGenerator(&probing, -1, "probing");
    cbc.addCutGenerator(&covers, -98, "knapsack");
    cbc.addCutGenerator(&gomory, -98, "gomory");
    cbc.addCutGenerator(&rounding, -98, "rounding");
    if (start)
      addStart(cbc, *start);
    cbc.branchAndBound();
    Proposal proposal;
    proposal.nodes = cbc.getNodeCount();
    proposal.infeasible = cbc.isProvenInfeasible();
    const double *best = cbc.bestSolution();
    if (!best)
      return proposal;
    proposal.solved = true;
    for (size_t s = 0; s < model.storages.size(); ++s)
      proposal.kept.push_back(best[s] > 0.5);
    double bound = cbc.isProvenOptimal() ? cbc.getObjValue()
                                         : cbc.getBestPossibleObjValue();
    proposal.boundSeconds = bound / scale;
    return proposal;
  }

private:
  int column(size_t node) const {
    return static_cast<int>(model.storages.size() + node);
  }

  void build(const SavedSetProblem &problem) {
    solver.messageHandler()->setLogLevel(0);
    const double infinity = solver.getInfinity();
    const size_t numStorages = model.storages.size();
    double all = 0;
    for (const auto &node : model.nodes)
      all += node.seconds;
    scale = objectiveOfAll / std::max(all, 1e-300);
    for (size_t s = 0; s < numStorages; ++s) {
      solver.addCol(0, nullptr, nullptr, 0, 1, 0);
      solver.setInteger(static_cast<int>(s));
    }
    for (const auto &node : model.nodes)
      solver.addCol(0, nullptr, nullptr, 0, node.mayRecompute ? 1 : 0,
                    node.seconds * scale);
    int64_t unit = 0;
    for (const auto &storage : model.storages)
      unit = std::gcd(unit, storage.bytes);
    unit = std::max<int64_t>(unit, 1);
    CoinPackedVector bytes;
    for (size_t s = 0; s < numStorages; ++s) {
      const auto &storage = model.storages[s];
      const int x = static_cast<int>(s), y = column(storage.node);
      bytes.insert(x, static_cast<double>(storage.bytes / unit));
      if (storage.needed) {
        const int columns[] = {x, y};
        const double ones[] = {1, 1};
        solver.addRow(2, columns, ones, 1, infinity);
      }
      for (int reader : storage.readers) {
        const int columns[] = {x, y, column(reader)};
        const double values[] = {1, 1, -1};
        solver.addRow(3, columns, values, 0, infinity);
      }
    }
    solver.addRow(bytes, -infinity,
                  static_cast<double>(problem.capBytes / unit));
    if (!problem.capBackwardPeak)
      return;
    for (const PeakRow &row : peakRows(problem.graph, model)) {
      CoinPackedVector held;
      for (int s : row.held)
        held.insert(s, static_cast<double>(model.storages[s].bytes / unit));
      solver.addRow(held, -infinity,
                    std::floor(static_cast<double>(*problem.capBackwardPeak -
                                                   row.constant) /
                               static_cast<double>(unit)));
    }
  }

  void addStart(CbcModel &cbc, const std::vector<bool> &kept) {
    std::vector<double> values;
    double objective = 0;
    for (bool keep : kept)
      values.push_back(keep);
    const std::vector<bool> repeated = model.closure(kept);
    for (size_t n = 0; n < model.nodes.size(); ++n) {
      values.push_back(repeated[n]);
      objective += repeated[n] ? model.nodes[n].seconds * scale : 0;
    }
    cbc.setBestSolution(values.data(), static_cast<int>(values.size()),
                        objective, true);
  }

  const RecomputeModel &model;
  OsiClpSolverInterface solver;
  double scale = 1;
};

} // namespace

SavedSetSolution solveExact(const SavedSetProblem &problem,
                            const SolveLimits &limits) {
  const auto begin = std::chrono::steady_clock::now();
  auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  };
  const size_t numOps = problem.graph.marks.size();
  const RecomputeModel model(problem);
  const CutResult cuts = solveByCuts(model, problem.capBytes);
  SavedSetSolution best;
  auto finish = [&](double bound) {
    best.boundSeconds = best.feasible
                            ? std::min(std::max(bound, cuts.boundSeconds),
                                       best.recomputeSeconds)
                            : bound;
    best.solveSeconds = elapsed();
    return best;
  };
  if (!cuts.feasible) {
    best.provenInfeasible = true;
    return finish(0);
  }
  int nodes = 0;
  auto consider = [&](const std::vector<bool> &kept) {
    SavedSetSolution found =
        measureSavedSet(problem, model.savedSet(kept, numOps));
    bool better =
        found.feasible &&
        (!best.feasible || found.recomputeSeconds < best.recomputeSeconds ||
         (found.recomputeSeconds == best.recomputeSeconds &&
          found.bytes.saved < best.bytes.saved));
    if (better)
      best = found;
    best.nodes = nodes;
    return found;
  };
  consider(cuts.kept);
  if (best.feasible && best.recomputeSeconds <= cuts.boundSeconds)
    return finish(best.recomputeSeconds);
  Program program(model, problem);
  double bound = cuts.boundSeconds;
  for (int round = 0; round < limits.rounds; ++round) {
    const std::vector<bool> start =
        best.feasible ? model.kept(best.saved) : std::vector<bool>();
    Proposal proposal =
        program.solve(best.feasible ? &start : nullptr,
                      std::max(limits.seconds - elapsed(), 0.01));
    nodes += proposal.nodes;
    best.nodes = nodes;
    if (!proposal.solved) {
      best.provenInfeasible = proposal.infeasible && !best.feasible;
      if (proposal.infeasible && best.feasible)
        bound = best.recomputeSeconds; // nothing else is left
      break;
    }
    bound = std::max(bound, proposal.boundSeconds);
    SavedSetSolution found = consider(proposal.kept);
    if (best.feasible && best.recomputeSeconds <= bound * (1 + 1e-9)) {
      bound = best.recomputeSeconds;
      break;
    }
    if (found.feasible || elapsed() > limits.seconds)
      break;
    // Within the solver's tolerance but not within the cap, or above the peak.
    if (found.bytes.saved > problem.capBytes)
      program.cover(proposal.kept);
    else
      program.exclude(proposal.kept);
  }
  return finish(bound);
}

const SavedSetSolution &solveCached(const SavedSetProblem &problem) {
  static std::map<std::string, SavedSetSolution> solved;
  plan::Sha256 hash;
  hash.update(toJson(problem.graph));
  auto add = [&](const auto &value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    hash.update({bytes, sizeof value});
  };
  for (double seconds : problem.seconds)
    add(seconds);
  add(problem.capBytes);
  add(problem.capBackwardPeak.value_or(-1));
  auto [entry, isNew] = solved.try_emplace(hash.hexDigest());
  if (isNew)
    entry->second = solveExact(problem);
  return entry->second;
}

} // namespace accel
