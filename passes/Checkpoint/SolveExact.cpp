//===- SolveExact.cpp - The best saved set, proven ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Checkpoint/SolveExact.h"

#include "passes/Checkpoint/JointJson.h"
#include "passes/Checkpoint/PeakMoments.h"
#include "passes/Checkpoint/PeakRows.h"
#include "passes/Checkpoint/SolveCut.h"
#include "runtime/plan/Sha256.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

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
  /// `anyOrder`: with what a cap on the backward's peak means in any order.
  Program(const RecomputeModel &model, const SavedSetProblem &problem,
          bool anyOrder)
      : model(model), anyOrder(anyOrder) {
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

  /// At this moment of the order of need, no more than `cap` bytes live.
  void limit(const PeakMoment &moment, int64_t cap) {
    const double infinity = solver.getInfinity();
    const size_t numNodes = model.nodes.size();
    const int z = solver.getNumCols(); // repeated by now, by node
    for (size_t n = 0; n < numNodes; ++n)
      solver.addCol(0, nullptr, nullptr, 0, 1, 0);
    auto now = [&](int node) { return z + node; };
    auto row = [&](std::initializer_list<std::pair<int, double>> terms,
                   double low, double high) {
      CoinPackedVector packed;
      for (auto [column, value] : terms)
        packed.insert(column, value);
      solver.addRow(packed, low, high);
    };
    for (size_t n = 0; n < numNodes; ++n) {
      const int node = static_cast<int>(n);
      row({{now(node), 1}, {column(n), -1}}, -infinity, 0);
      // By now only if somebody asks for it by now.
      CoinPackedVector asked;
      double askedAtMost = 0;
      asked.insert(now(node), 1);
      std::vector<bool> counted(numNodes);
      for (int s : model.nodes[n].makes) {
        if (moment.readByNow[s]) {
          row({{now(node), 1}, {s, 1}}, 1, infinity);
          asked.insert(s, 1);
          ++askedAtMost;
        }
        for (int reader : model.storages[s].readers) {
          row({{now(node), 1}, {s, 1}, {now(reader), -1}}, 0, infinity);
          if (!counted[reader])
            asked.insert(now(reader), -1);
          counted[reader] = true;
        }
      }
      solver.addRow(asked, -infinity, askedAtMost);
    }
    CoinPackedVector held;
    auto addLive = [&](int s) {
      int live = solver.getNumCols();
      solver.addCol(0, nullptr, nullptr, 0, 1, 0);
      held.insert(live, static_cast<double>(model.storages[s].bytes / unit));
      return live;
    };
    for (int s : moment.later) {
      int live = addLive(s);
      row({{live, 1}, {s, -1}}, 0, infinity);
      row({{live, 1}, {now(model.storages[s].node), -1}}, 0, infinity);
    }
    for (int s : moment.maybe) {
      if (model.storages[s].readers.empty())
        continue;
      int live = addLive(s);
      for (int reader : model.storages[s].readers)
        for (int there : {s, now(model.storages[s].node)})
          row({{live, 1},
               {there, -1},
               {column(static_cast<size_t>(reader)), -1},
               {now(reader), 1}},
              -1, infinity);
    }
    solver.addRow(held, -infinity,
                  std::floor(static_cast<double>(cap - moment.constant) /
                             static_cast<double>(unit)));
  }

  /// `start` is known to be possible; where rows were added for moments, only
  /// its objective is used.
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
    if (start && solver.getNumCols() == column(model.nodes.size()))
      addStart(cbc, *start);
    else if (start)
      cbc.setCutoff(model.seconds(model.closure(*start)) * scale -
                    cutoffIncrement);
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
    int64_t divisor = 0;
    for (const auto &storage : model.storages)
      divisor = std::gcd(divisor, storage.bytes);
    unit = std::max<int64_t>(divisor, 1);
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
    if (!problem.capBackwardPeak || !anyOrder)
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
  const bool anyOrder;
  OsiClpSolverInterface solver;
  double scale = 1;
  int64_t unit = 1; // of bytes
};

} // namespace

namespace {

class Solve {
public:
  Solve(const SavedSetProblem &problem, const SolveLimits &limits)
      : problem(problem), limits(limits), model(problem) {}

  SavedSetSolution run() {
    const CutResult cuts = solveByCuts(model, problem.capBytes);
    if (!cuts.feasible) {
      best.provenInfeasible = true;
      return finish();
    }
    bound = cuts.boundSeconds;
    consider(cuts.kept);
    if (!isProven())
      solveAnyOrder();
    if (problem.capBackwardPeak && !isProven() && !best.provenInfeasible) {
      descend();
      solveOrderOfNeed();
    }
    return finish();
  }

private:
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  }
  double left() const { return std::max(limits.seconds - elapsed(), 0.01); }

  bool isProven() const {
    return best.feasible && best.recomputeSeconds <= bound * (1 + 1e-9);
  }

  SavedSetSolution finish() {
    if (isProven())
      bound = best.recomputeSeconds;
    best.boundSeconds =
        best.feasible ? std::min(bound, best.recomputeSeconds) : bound;
    best.nodes = nodes;
    best.solveSeconds = elapsed();
    return best;
  }

  SavedSetSolution consider(const std::vector<bool> &kept) {
    SavedSetSolution found = measureSavedSet(
        problem, model.savedSet(kept, problem.graph.marks.size()));
    if (found.feasible &&
        (!best.feasible || found.recomputeSeconds < best.recomputeSeconds ||
         (found.recomputeSeconds == best.recomputeSeconds &&
          found.bytes.saved < best.bytes.saved)))
      best = found;
    return found;
  }

  Proposal propose(Program &program) {
    std::vector<bool> start;
    if (best.feasible)
      start = model.kept(best.saved);
    Proposal proposal = program.solve(best.feasible ? &start : nullptr, left());
    nodes += proposal.nodes;
    return proposal;
  }

  /// With rows that hold in any order, so that the bound holds too. Sets whose
  /// real peak is too high are cut off one by one, which is enough where they
  /// are few.
  void solveAnyOrder() {
    Program program(model, problem, /*anyOrder=*/true);
    const int rounds = problem.capBackwardPeak ? limits.rounds : 100;
    for (int round = 0; round < rounds && elapsed() < limits.seconds; ++round) {
      Proposal proposal = propose(program);
      if (!proposal.solved) {
        if (proposal.infeasible && best.feasible)
          bound = best.recomputeSeconds; // nothing else is left
        best.provenInfeasible = proposal.infeasible && !best.feasible;
        return;
      }
      bound = std::max(bound, proposal.boundSeconds);
      SavedSetSolution found = consider(proposal.kept);
      if (found.feasible || isProven())
        return;
      // Within the solver's tolerance but not within the cap, or too high.
      if (found.bytes.saved > problem.capBytes)
        program.cover(proposal.kept);
      else
        program.exclude(proposal.kept);
    }
  }

  /// A start under a cap on the peak: the best sets of fewer and fewer bytes,
  /// until the peak of one is low enough.
  void descend() {
    SavedSetProblem smaller = problem;
    smaller.capBackwardPeak.reset();
    while (elapsed() < limits.seconds) {
      const CutResult cuts = solveByCuts(model, smaller.capBytes);
      if (!cuts.feasible)
        return;
      Program program(model, smaller, /*anyOrder=*/false);
      Proposal proposal = program.solve(&cuts.kept, left());
      nodes += proposal.nodes;
      if (!proposal.solved ||
          (best.feasible && proposal.boundSeconds >= best.recomputeSeconds))
        return;
      SavedSetSolution found = consider(proposal.kept);
      smaller.capBytes = std::min(found.bytes.saved, smaller.capBytes) - 1;
      if (found.feasible || smaller.capBytes < 0)
        return;
    }
  }

  /// With the moments at which what was proposed is too high in the order of
  /// need. Its answer is the best in that order; the other order may do better.
  void solveOrderOfNeed() {
    Program program(model, problem, /*anyOrder=*/false);
    const PeakMoments moments(problem.graph, model);
    for (int round = 0;
         round < limits.orderRounds && elapsed() < limits.seconds; ++round) {
      Proposal proposal = propose(program);
      if (!proposal.solved)
        return;
      SavedSetSolution found = consider(proposal.kept);
      if (found.feasible)
        return;
      int moment = moments.fullest(found.saved, *problem.capBackwardPeak);
      if (found.bytes.saved > problem.capBytes)
        program.cover(proposal.kept);
      else if (moment >= 0 && added.insert(moment).second)
        program.limit(moments.at(moment), *problem.capBackwardPeak);
      else
        program.exclude(proposal.kept);
    }
  }

  const std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
  const SavedSetProblem &problem;
  const SolveLimits &limits;
  const RecomputeModel model;
  SavedSetSolution best;
  double bound = 0;
  int nodes = 0;
  std::set<int> added; // moments
};

} // namespace

SavedSetSolution solveExact(const SavedSetProblem &problem,
                            const SolveLimits &limits) {
  return Solve(problem, limits).run();
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
