//===- SolveExact.cpp - The best saved set, proven ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/SolveExact.h"

#include "passes/Recompute/JointJson.h"
#include "passes/Recompute/PeakMoments.h"
#include "passes/Recompute/PeakRows.h"
#include "passes/Recompute/SolveCut.h"
#include "runtime/plan/Sha256.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

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
/// Moments that the program learns from one set that is too high.
constexpr size_t momentsARound = 4;

/// A saved set that the program proposes, and what it proves.
struct Proposal {
  bool solved = false, infeasible = false;
  std::vector<bool> kept;
  double boundSeconds = 0;
  int nodes = 0;
};

class Program {
public:
  /// With what a cap on the backward's peak means in any order.
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

  /// At this moment of the order of need, no more than `cap` bytes live.
  void limit(const PeakMoments &moments, const PeakMoment &moment,
             int64_t cap) {
    const int after = stageColumns(moments, moment.stage);
    const int before =
        moment.stage > 0 ? stageColumns(moments, moment.stage - 1) : -1;
    const bool atNode = moment.own < 0;
    // Columns of "repeated by now"; -1 where that is never so.
    auto byNow = [&](int node) {
      if (node <= moment.node || before < 0)
        return node <= moment.node ? after + node : -1;
      return before + node;
    };
    auto readByNow = [&](int node) {
      if (atNode && node == moment.node)
        return before < 0 ? -1 : before + node;
      return byNow(node);
    };
    std::map<int, double> held; // results of one operation share a column
    auto add = [](CoinPackedVector &row, int column, double value) {
      if (column >= 0)
        row.insert(column, value);
    };
    for (int s : moment.later) {
      held[s] += bytesOf(s);
      if (const int made = byNow(model.storages[s].node); made >= 0)
        held[made] += bytesOf(s);
    }
    for (int s : moment.maybe) {
      if (model.storages[s].readers.empty())
        continue;
      const int live = solver.getNumCols();
      solver.addCol(0, nullptr, nullptr, 0, 1, 0);
      held[live] = bytesOf(s);
      for (int reader : model.storages[s].readers) {
        CoinPackedVector row;
        row.insert(live, 1);
        row.insert(s, -1);
        add(row, byNow(model.storages[s].node), -1);
        row.insert(column(static_cast<size_t>(reader)), -1);
        add(row, readByNow(reader), 1);
        solver.addRow(row, -1, solver.getInfinity());
      }
    }
    CoinPackedVector row;
    for (auto [column, bytes] : held)
      row.insert(column, bytes);
    solver.addRow(row, -solver.getInfinity(),
                  std::floor(static_cast<double>(cap - moment.constant) /
                             static_cast<double>(unit)));
  }

  /// `start` is known to be possible; where rows were added for moments, only
  /// its objective is used.
  Proposal solve(const std::vector<bool> *start, int maxNodes) {
    CbcModel cbc(solver);
    cbc.setLogLevel(0);
    cbc.solver()->messageHandler()->setLogLevel(0);
    cbc.setDblParam(CbcModel::CbcCutoffIncrement, cutoffIncrement);
    cbc.setAllowableGap(cutoffIncrement);
    cbc.setAllowableFractionGap(0);
    cbc.setIntegerTolerance(1e-9);
    cbc.setMaximumNodes(maxNodes);
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
    const double reached = cbc.isProvenOptimal()
                               ? cbc.getObjValue()
                               : cbc.getBestPossibleObjValue();
    if (!proposal.infeasible)
      proposal.boundSeconds = std::max(reached, 0.0) / scale;
    const double *best = cbc.bestSolution();
    if (!best)
      return proposal;
    proposal.solved = true;
    for (size_t s = 0; s < model.storages.size(); ++s)
      proposal.kept.push_back(best[s] > 0.5);
    return proposal;
  }

private:
  int column(size_t node) const {
    return static_cast<int>(model.storages.size() + node);
  }
  /// Only one operation reads it, and keeping that one's result instead takes
  /// no more bytes at any moment and repeats less.
  bool isDominated(int s) const {
    const auto &storage = model.storages[s];
    if (storage.needed || storage.readers.size() != 1)
      return false;
    const auto &reader = model.nodes[storage.readers.front()];
    return reader.makes.size() == 1 &&
           model.storages[reader.makes.front()].bytes <= storage.bytes;
  }

  double bytesOf(int storage) const {
    return static_cast<double>(model.storages[storage].bytes / unit);
  }

  void row(std::initializer_list<std::pair<int, double>> terms, double low,
           double high) {
    CoinPackedVector packed;
    for (auto [column, value] : terms)
      packed.insert(column, value);
    solver.addRow(packed, low, high);
  }

  /// The first of the columns, by node, of what is repeated by the end of a
  /// stage.
  int stageColumns(const PeakMoments &moments, int stage) {
    auto [entry, isNew] = stages.try_emplace(stage, solver.getNumCols());
    const int first = entry->second;
    if (!isNew)
      return first;
    const double infinity = solver.getInfinity();
    const std::vector<bool> &readBy = moments.readBy(stage);
    for (size_t n = 0; n < model.nodes.size(); ++n)
      solver.addCol(0, nullptr, nullptr, 0, 1, 0);
    auto now = [&](size_t node) { return first + static_cast<int>(node); };
    for (size_t n = 0; n < model.nodes.size(); ++n) {
      row({{now(n), 1}, {column(n), -1}}, -infinity, 0);
      if (entry != stages.begin())
        row({{now(n), 1}, {std::prev(entry)->second + static_cast<int>(n), -1}},
            0, infinity);
      if (std::next(entry) != stages.end())
        row({{now(n), 1}, {std::next(entry)->second + static_cast<int>(n), -1}},
            -infinity, 0);
      // By now only if somebody asks for it by now.
      CoinPackedVector asked;
      double askedAtMost = 0;
      asked.insert(now(n), 1);
      std::set<int> counted;
      for (int s : model.nodes[n].makes) {
        if (readBy[s]) {
          row({{now(n), 1}, {s, 1}}, 1, infinity);
          asked.insert(s, 1);
          ++askedAtMost;
        }
        for (int reader : model.storages[s].readers) {
          row({{now(n), 1}, {s, 1}, {first + reader, -1}}, 0, infinity);
          if (counted.insert(reader).second)
            asked.insert(first + reader, -1);
        }
      }
      solver.addRow(asked, -infinity, askedAtMost);
    }
    return first;
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
    for (size_t x = 0; x < numStorages; ++x)
      if (isDominated(static_cast<int>(x)))
        solver.setColUpper(static_cast<int>(x), 0);
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
      // What is recomputed is not kept.
      if (problem.capBackwardPeak)
        row({{x, 1}, {y, 1}}, -infinity, 1);
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

  void addStart(CbcModel &cbc, std::vector<bool> kept) {
    std::vector<double> values;
    double objective = 0;
    for (size_t s = 0; s < kept.size(); ++s)
      if (kept[s] && isDominated(static_cast<int>(s))) {
        kept[s] = false;
        const int reader = model.storages[s].readers.front();
        kept[model.nodes[reader].makes.front()] = true;
      }
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
  std::map<int, int> stages; // to the first column
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
    best.anyOrderBoundSeconds = bound = cuts.boundSeconds;
    consider(cuts.kept);
    if (!isProven())
      solve();
    return finish();
  }

private:
  bool isProven() const {
    return best.feasible && best.recomputeSeconds <= bound * (1 + 1e-9);
  }

  SavedSetSolution finish() {
    if (isProven())
      bound = best.recomputeSeconds;
    best.boundSeconds =
        best.feasible ? std::min(bound, best.recomputeSeconds) : bound;
    if (!problem.capBackwardPeak)
      best.anyOrderBoundSeconds = best.boundSeconds;
    best.nodes = nodes;
    best.solveSeconds =
        static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    return best;
  }

  SavedSetSolution consider(const std::vector<bool> &kept) {
    SavedSetSolution found = measureSavedSet(
        problem, model.savedSet(kept, problem.graph.marks.size()));
    if (found.feasible &&
        (!best.feasible || found.recomputeSeconds < best.recomputeSeconds ||
         (found.recomputeSeconds == best.recomputeSeconds &&
          found.bytes.saved < best.bytes.saved))) {
      found.anyOrderBoundSeconds = best.anyOrderBoundSeconds;
      best = found;
    }
    return found;
  }

  /// What the program proposes is the best if it is within the caps; if not,
  /// it learns why.
  void solve() {
    Program program(model, problem);
    std::optional<PeakMoments> moments;
    for (int round = 0; round < limits.rounds && nodes < limits.nodes;
         ++round) {
      std::vector<bool> start;
      if (best.feasible)
        start = model.kept(best.saved);
      const Proposal proposal =
          program.solve(best.feasible ? &start : nullptr, limits.nodes - nodes);
      // A solve that cuts away everything at the root counts too.
      nodes += std::max(proposal.nodes, 1);
      if (proposal.infeasible) {
        if (best.feasible)
          bound = best.recomputeSeconds; // nothing better is left
        best.provenInfeasible = !best.feasible;
        return;
      }
      bound = std::max(bound, proposal.boundSeconds);
      if (round == 0)
        best.anyOrderBoundSeconds = bound;
      if (!proposal.solved)
        return;
      const SavedSetSolution found = consider(proposal.kept);
      if (found.feasible || isProven())
        return;
      // Within the solver's tolerance but not within the cap, or too high.
      if (found.bytes.saved > problem.capBytes) {
        program.cover(proposal.kept);
        continue;
      }
      if (!moments)
        moments.emplace(problem.graph, model);
      bool learned = false;
      for (const PeakMoment &moment :
           moments->fullest(model.kept(found.saved), *problem.capBackwardPeak,
                            momentsARound))
        if (added.insert({moment.stage, moment.node, moment.own}).second) {
          program.limit(*moments, moment, *problem.capBackwardPeak);
          learned = true;
        }
      if (!learned)
        program.exclude(proposal.kept);
    }
  }

  const std::clock_t begin = std::clock();
  const SavedSetProblem &problem;
  const SolveLimits &limits;
  const RecomputeModel model;
  SavedSetSolution best;
  double bound = 0;
  int nodes = 0;
  std::set<std::tuple<int, int, int>> added; // moments
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
