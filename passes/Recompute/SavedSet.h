//===- SavedSet.h - Which forward values to keep ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The problem of activation checkpointing in one segment: keep what fits in
// `capBytes` so that the backward recomputes for the least time. Problem,
// solvers and verifier are apart: SolveExact.h proves its answer with a mixed
// integer program, SolveCut.h has the Lagrangian bound and a start, and
// `verifySavedSet` trusts neither.
//
// The program is Checkmate's (Jain et al., MLSys 2020) where a backward
// recomputes each value at most once: a binary for each storage that may be
// kept, a monotone closure of what must then be recomputed.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_SAVEDSET_H
#define ACCEL_PASSES_RECOMPUTE_SAVEDSET_H

#include "passes/Recompute/JointGraph.h"

#include <optional>

namespace accel {

/// A graph outlives the problem that is about it.
struct SavedSetProblem {
  SavedSetProblem(const JointGraph &graph, std::vector<double> seconds)
      : graph(graph), seconds(std::move(seconds)) {}
  const JointGraph &graph;
  std::vector<double> seconds; // by instruction, 0 or more
  int64_t capBytes = 0;        // on SplitBytes::saved
  /// On SplitBytes::backwardHeldPeak, in the order that splitGraph finds.
  std::optional<int64_t> capBackwardPeak;
};

struct SavedSetSolution {
  SavedSet saved;
  SplitBytes bytes; // of the split
  double recomputeSeconds = 0;
  /// No saved set within the caps recomputes for less, where a cap on the
  /// backward's peak is one on its peak in the order of need (splitGraph
  /// without reordering). At most the answer.
  double boundSeconds = 0;
  /// The same for a peak in whatever order; not tight.
  double anyOrderBoundSeconds = 0;
  bool feasible = false; // a set within the caps was found
  /// Where none was: it is proven that there is none.
  bool provenInfeasible = false;
  double solveSeconds = 0; // of CPU time
  int nodes = 0;           // of branch and bound
  /// (recompute - bound) / recompute, 0 where nothing is recomputed.
  double gap() const {
    return recomputeSeconds > 0
               ? (recomputeSeconds - boundSeconds) / recomputeSeconds
               : 0;
  }
};

/// Splits by `saved` and fills in what it holds and takes.
SavedSetSolution measureSavedSet(const SavedSetProblem &problem,
                                 const SavedSet &saved);

/// What is wrong with a solution, or "": a size, a cap that is not kept, an
/// operation computed twice that must not be, figures that are not those of
/// the split, a bound above the answer.
std::string verifySavedSet(const SavedSetProblem &problem,
                           const SavedSetSolution &solution);

/// The problem without views: storages that could be kept, operations that
/// could be repeated, and what each reads. Only those that the backward may
/// need are in it.
struct RecomputeModel {
  struct Storage {
    int slot = -1; // JointGraph::function, its own base
    int node = -1; // that makes it
    int64_t bytes = 0;
    bool needed = false;      // the backward reads it or a view of it
    std::vector<int> readers; // nodes
  };
  struct Node {
    int instruction = -1;
    double seconds = 0;
    bool mayRecompute = true;
    std::vector<int> reads, makes; // storages
  };
  std::vector<Storage> storages;
  std::vector<Node> nodes; // in the order of the joint
  explicit RecomputeModel(const SavedSetProblem &problem);

  /// By node: recomputed where the storages `kept` are kept.
  std::vector<bool> closure(const std::vector<bool> &kept) const;
  /// Keeps an operation that is not recomputed if any of its storages is
  /// kept.
  SavedSet savedSet(const std::vector<bool> &kept, size_t numOps) const;
  /// Storages of operations that `saved` keeps.
  std::vector<bool> kept(const SavedSet &saved) const;
  /// Of `kept`, the bytes that the backward or a repeated operation reads.
  int64_t savedBytes(const std::vector<bool> &kept) const;
  double seconds(const std::vector<bool> &repeated) const;
};

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_SAVEDSET_H
