//===- Plan.h - The plan artifact -------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The one structure that the compiler and the runtime share: what every rank
// holds, the compute functions, and the programs that run them. The compiler
// fills it (passes/Simulate works on the same structs), `toJson` makes
// plan.json of it, and accel-run reads it back. No MLIR, no LibTorch.
//
// Bytes are integers, sizes are elements unless a name says bytes, and every
// index is a position in the vector that its comment names. What a field is
// called in plan.json, and what it may be, is listed in Fields/.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_PLAN_H
#define ACCEL_RUNTIME_PLAN_PLAN_H

#include "runtime/plan/Functions.h"
#include "runtime/plan/Job.h"
#include "runtime/plan/Parameters.h"
#include "runtime/plan/Predicted.h"
#include "runtime/plan/Programs.h"
#include "runtime/plan/Stages.h"
#include "runtime/plan/Units.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace accel::plan {

/// What only the update reads waits in a file of each rank, and comes to
/// buffers of the host when its unit's turn is near.
struct Disk {
  std::string folder;  // empty: nothing is on a disk
  int64_t buffers = 0; // each takes what any unit has in the file
  bool readAhead = true, writeBehind = true;
  int64_t blockBytes = 1 << 20; // of one request
  int64_t queueDepth = 32;      // requests at once, of io_uring
  int64_t threads = 4;          // that read and write where there is none
  bool operator==(const Disk &) const = default;
};

/// What waits in pinned memory of the host, not on the device.
struct Offload {
  /// States, with a copy of the gradient's shard, and where `parameters` stay
  /// on the device one of the parameters' shard too: units are updated there.
  bool states = false;
  /// Shards. A gather copies its part from there; where a unit is cast for it,
  /// the host has the cast shard as well.
  bool parameters = false;
  /// What calls save for their backward, from the call that reads it last in
  /// the forward until it is fetched.
  bool activations = false;
  /// Where `states` are: they, and the parameters' shard where gathers do not
  /// read it (DiskLayout.h), are in no memory of the host.
  Disk disk;
  bool onDisk() const { return !disk.folder.empty(); }
  bool operator==(const Offload &) const = default;
};

/// All that accel-run is told.
struct Plan {
  static constexpr int formatVersion = 2;
  std::string generator;
  Job job;
  std::string target; // name of the target file
  std::string device; // "cpu" or "cuda"
  std::vector<Axis> axes;
  Offload offload;
  std::vector<OptimizerGroup> groups() const { return job.optimizer.groups; }
  /// Of workspaces that the libraries of the job's torch keep from their first
  /// product on (cuBLAS's, up to torch 2.11); 0 where it gives them back.
  int64_t keptWorkspaceBytes = 0;
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  std::vector<Unit> units;
  std::vector<Function> functions;
  std::vector<Program> programs;
  /// The optimizer step: programs by index with their repeat counts.
  std::vector<std::pair<int, int64_t>> step;
  int eval = -1; // program, or none
  /// Of a pipeline, by position on its axis; `step` is empty then, and there is
  /// no `eval`. Empty: all ranks run the same programs.
  std::vector<Stage> stages;
  /// Of a pipeline: "1f1b", "interleaved-1f1b", "zb-h1" or "zb-v".
  std::string schedule;
  Predicted predicted;
  std::vector<Decision> decisions;

  int64_t ranks() const;
  int64_t axisSize(const std::string &name) const;
  /// Product of the sizes of `axes`.
  int64_t groupSize(const std::vector<std::string> &axes) const;
  int64_t shardRanks(const Unit &unit) const;
  /// Stages of the pipeline, 1 without one.
  int numStages() const;
  /// Chunks of the model that each stage has, 1 without a pipeline.
  int numChunks() const;
  /// The step and the evaluation of a chunk of a stage, or of all ranks.
  const std::vector<std::pair<int, int64_t>> &stepOf(int stage,
                                                     int chunk = 0) const;
  int evalOf(int stage, int chunk = 0) const;
  /// Those of all its chunks.
  std::vector<std::pair<int, int64_t>> stepsOf(int stage) const;
  /// The program of the step's micro-batch `microBatch` in a chunk of a stage;
  /// -1 behind the last.
  int programOf(int stage, int chunk, int64_t microBatch) const;
  /// The position of a part among those of the schedule's programs; behind all
  /// of them where the schedule has no such part.
  size_t positionOf(Part part) const;
  bool operator==(const Plan &) const = default;
};

/// The chunk that is `shift` after a program's as the model goes through them.
struct ChunkPlace {
  int stage = 0, chunk = 0;
  /// A message between the two goes against those of first chunks: from the
  /// last stage to the first one's next chunk, or where the model returns.
  bool wraps = false;
  bool exists = false;
};
ChunkPlace placeBeside(const Plan &plan, const Program &program, int shift);

/// The shape that functions see of a parameter on one rank.
std::vector<int64_t> ownShape(const Plan &plan, const Parameter &parameter);
/// Elements of it.
int64_t ownNumel(const Plan &plan, const Parameter &parameter);
/// The ranks of `axis` share each of the unit's parameters inside of functions.
bool isSplitOver(const Plan &plan, const Unit &unit, const std::string &axis);
/// The unit that the parameters of a unit belong to: itself, or what it copies.
int ownerOf(const Plan &plan, int unit);
/// The unit of a stage's ranks that has the parameter; -1 without one.
int unitIn(const Plan &plan, int parameter, int stage);
/// The stages that have the unit's parameters, in their order.
std::vector<int64_t> stagesWith(const Plan &plan, int unit);
/// Several stages have the unit's parameters.
bool isTied(const Unit &unit);
/// Elements that one rank keeps of `unit`.
int64_t shardNumel(const Plan &plan, const Unit &unit);
/// Programs' inputs of this name are a buffer of the model, and no data.
bool isBuffer(const Plan &plan, const std::string &name);
/// The buffers that programs of a stage read, each as the input of the first
/// of them: what its ranks hold for the run.
std::vector<const Value *> buffersOf(const Plan &plan, int stage);
/// Bytes of a unit's buffer of this role, on one rank.
int64_t roleBytes(const Plan &plan, const Unit &unit, Role role);
/// Whose memory the buffer is on a device with streams (Device::allocate). What
/// is gathered and freed has the gathers' own, so that a gather waits for what
/// read earlier ones alone, and not for all that the computation has freed.
Stream memoryOf(const Unit &unit, Role role);
/// What all-reduces of a unit with Unit::hook are in.
DType hookDType(const Unit &unit);
/// True where the unit's parameters are read from the shard itself: on the
/// device, no shard axis and no cast, so no Gathered buffer exists.
bool readsShard(const Plan &plan, const Unit &unit);
/// True where gradients are written straight into ShardGradient: no shard axis
/// and the reduce dtype is the storage dtype.
bool writesShardGradient(const Plan &plan, const Unit &unit);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_PLAN_H
