//===- Groups.h - Process groups over mesh axes -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_GROUPS_H
#define ACCEL_RUNTIME_COLLECTIVES_GROUPS_H

#include "runtime/collectives/Backend.h"
#include "runtime/collectives/Environment.h"
#include "runtime/collectives/Rendezvous.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace accel::run {

/// Variables of the environment, set to 1, by which a rank's collectives are
/// others than those of the plan alone: ranks must be given the same.
std::vector<std::string> collectiveVariables(const plan::Plan &plan);

/// Where a rank stands in the mesh.
class Mesh {
public:
  Mesh(const plan::Plan &plan, int rank);

  /// Position among the ranks that differ from this one only along `axes`,
  /// which are counted in the mesh's order, the last fastest.
  int position(const std::vector<std::string> &axes) const;
  /// The ranks that differ from this one only along `axes`, by position.
  std::vector<int> members(const std::vector<std::string> &axes) const;
  /// Names this rank's group over `axes`: other coordinates are part of it.
  std::string groupName(const std::vector<std::string> &axes) const;
  /// How many ranks differ from this one only along `axes`.
  int64_t size(const std::vector<std::string> &axes) const {
    return plan.groupSize(axes);
  }
  /// Data-parallel index and size: dp_replicate x dp_shard x ep.
  int dataIndex() const { return position(dataAxes()); }
  int64_t dataSize() const { return plan.groupSize(dataAxes()); }
  int rank() const { return ownRank; }
  /// The one of its stage's ranks whose place along all other axes is 0.
  bool speaksForStage() const;

private:
  static std::vector<std::string> dataAxes() {
    return {"dp_replicate", "dp_shard", "ep"};
  }
  const plan::Plan &plan;
  int ownRank;
  std::vector<int64_t> coordinates; // by Plan::axes
};

/// The communicators of one rank, one for each set of mesh axes and purpose:
/// collectives of one communicator run in order, those of two may overlap.
class Groups {
public:
  /// A job of one rank: no store, no groups.
  explicit Groups(const plan::Plan &plan);
  Groups(const plan::Plan &plan, const Environment &environment,
         const Rendezvous &rendezvous);
  ~Groups();

  const Mesh &mesh() const { return place; }
  int rank() const { return place.rank(); }
  int64_t size() const { return plan.ranks(); }

  /// Null where the axes' sizes multiply to 1, unless ACCEL_RUN_SELF_GROUPS=1
  /// asks for NCCL groups of one rank too, and with
  /// ACCEL_RUN_HOST_COLLECTIVES=1 GPUs communicate through the host's memory:
  /// for machines with one GPU. `use` is a stream's name, or that of a use
  /// outside of programs; with ACCEL_RUN_ONE_COMMUNICATOR=1 GPUs gather by the
  /// communicator of reductions. The first call connects: every rank must make
  /// it, in the same order.
  Communicator *over(const std::vector<std::string> &axes,
                     const std::string &use);
  /// The same, and of the pipeline's axis the ranks of `stages` alone, of which
  /// this is one: theirs is the first call, no other rank makes it.
  Communicator *among(const std::vector<int64_t> &stages,
                      const std::vector<std::string> &axes,
                      const std::string &purpose);
  /// All ranks, on host memory (Gloo, also in CUDA jobs): control traffic.
  Communicator *world();
  /// Waits for all ranks; nothing to do for one.
  void barrier();
  /// Everyone's `values`, rank after rank.
  std::vector<double> gather(const std::vector<double> &values);
  /// Of all ranks' `sums` the sums, and of their `maxima` the largest: two
  /// small messages a rank, however many ranks there are.
  void combine(std::vector<double> &sums, std::vector<double> &maxima);
  /// The lowest rank that says it is not `ok`, or -1.
  int firstFailure(bool ok);

private:
  Communicator *connected(const std::string &name, const std::string &purpose,
                          std::vector<int> members);

  const plan::Plan &plan;
  Mesh place;
  const Rendezvous *rendezvous = nullptr;
  c10::intrusive_ptr<c10d::Store> alone; // of a job of one rank
  bool localOnly = false;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Communicator>>
      groups;
  std::unique_ptr<Communicator> everyone;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_GROUPS_H
