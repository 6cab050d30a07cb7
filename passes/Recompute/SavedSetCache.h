//===- SavedSetCache.h - Solved saved sets for the joint search -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_SAVEDSETCACHE_H
#define ACCEL_PASSES_RECOMPUTE_SAVEDSETCACHE_H

#include "passes/Recompute/Pareto.h"

#include <map>
#include <string>
#include <vector>

namespace accel {

/// A way to run a segment that was solved for a cap in bytes.
struct SavedSetPlan {
  /// "54% kept": of the bytes that keeping everything takes.
  std::string name;
  double share = 0; // of the same, the cap that it was solved for
  SavedSet saved;
};

/// The solved ways of a model's segments. The joint search compares models of
/// several micro-batches and precisions, whose ways must correspond: so a
/// segment is solved for the first model that is asked about, and others take
/// over its sets where their joint graph has the same operations (bytes and
/// seconds grow alike with the micro-batch), or are solved at the same shares.
class SavedSetCache {
public:
  /// `points`: caps at which a segment is solved, 0 for none.
  explicit SavedSetCache(int points) : points(points) {}

  /// The ways of the segment `name` beside its three modes, by falling share:
  /// of paretoFront those that keep other bytes than a mode and than each
  /// other, and that save at least a hundredth of them or of the seconds.
  const std::vector<SavedSetPlan> &
  of(const std::string &name, const JointGraph &graph, const Target &target);

private:
  using Key = std::pair<std::string, std::string>; // name, operations
  int points;
  std::map<std::string, std::vector<SavedSetPlan>> first;
  std::map<Key, std::vector<SavedSetPlan>> known;
};

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_SAVEDSETCACHE_H
