//===- Mesh.h - A job's ranks as named axes ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_MESH_H
#define ACCEL_RUNTIME_PLAN_MESH_H

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace accel::plan {

/// What an axis does with the parameters of a unit.
enum class AxisRole {
  Replicate, // each rank has a copy; gradients are all-reduced
  Shard,     // each rank has a part; parameters are gathered over it
  Other      // inside of functions or between stages (tp, pp)
};
/// dp_replicate replicates; dp_shard, cp, sp and ep shard, as FSDP units are
/// sharded over their product (Accelerate's dp_shard_cp), and so does zero_hpz.
/// A unit of experts that ep shares is sharded over the others.
AxisRole axisRole(std::string_view axis);

/// Ranks that differ in this axis alone read the same samples, of which each
/// computes a part: tp, cp, sp, pp.
bool sharesSamples(std::string_view axis);

/// Ranks that differ in this axis alone have other experts, read other samples
/// and send each other the rows of those: ep.
inline constexpr const char *expertAxis = "ep";

/// Ranks that differ in this axis alone each have a part of every sequence: cp
/// by ring attention, sp by an exchange of tokens for heads.
bool sharesSequences(std::string_view axis);

/// Of ranks that shard with all others and hold a second copy among themselves
/// (ZeRO++ hpZ).
inline constexpr const char *secondaryAxis = "zero_hpz";

/// Axes of one mesh, by their position in Mesh::axes.
class AxisSet {
public:
  void add(size_t axis) { bits |= uint64_t(1) << axis; }
  bool contains(size_t axis) const { return bits >> axis & 1; }
  bool empty() const { return bits == 0; }
  bool operator==(const AxisSet &) const = default;

private:
  uint64_t bits = 0;
};

/// The ranks that differ in the coordinates of some axes alone: who takes part
/// in one collective.
struct AxisGroup {
  int64_t ranks = 1;
  int64_t inNode = 1; // of them on one node
  bool operator==(const AxisGroup &) const = default;
};

/// A grid of ranks. Axes are outermost first: neighbours in the last one are
/// neighbouring ranks.
struct Mesh {
  std::vector<Axis> axes;

  /// dp_replicate and dp_shard, of one rank each.
  static Mesh dataParallel();

  /// Product of all sizes; saturates.
  int64_t ranks() const;
  /// Product of the sizes of `set`; saturates.
  int64_t ranks(AxisSet set) const;
  /// 1 for an axis that is not there.
  int64_t size(std::string_view axis) const;
  /// Changes an axis, or adds it as the innermost.
  void resize(const std::string &axis, int64_t size);
  /// Product of the sizes of the axes with a role; saturates.
  int64_t ranks(AxisRole role) const { return ranks(set(role)); }
  /// Ranks that read the same samples, each computing a part; saturates.
  int64_t ranksPerSample() const;
  /// Ranks that each have a part of every sequence.
  int64_t ranksPerSequence() const;
  /// As many ranks, of which `shard`, a multiple of ranksPerSequence and of the
  /// ranks that share experts, share one copy: dp_shard with those of that
  /// size, and the rest on dp_replicate.
  Mesh sharded(int64_t shard) const;
  /// The same axes with all ranks on one of them, which is added if need be.
  Mesh onto(const std::string &axis) const;

  /// Those of `names` that are there.
  AxisSet set(const std::vector<std::string> &names) const;
  /// Those with a role.
  AxisSet set(AxisRole role) const;
  std::vector<std::string> names(AxisSet set) const;
  /// Ranks with neighbouring numbers share a node.
  AxisGroup group(AxisSet set, int64_t ranksPerNode) const;

  bool operator==(const Mesh &) const = default;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_MESH_H
