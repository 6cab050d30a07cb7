//===- Programs.h - What a rank does, in order ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A program is one kind of micro-batch: instructions on streams, over values
// (activations) and the buffers of units. All ranks run the same programs, but
// for a pipeline, whose stages have programs of their own: what a stage does
// with a micro-batch, in two parts. Between them the micro-batch's values stay
// in a frame, and the rank runs parts of other micro-batches.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_PROGRAMS_H
#define ACCEL_RUNTIME_PLAN_PROGRAMS_H

#include "runtime/plan/DType.h"

#include <string>
#include <vector>

namespace accel::plan {

/// What a unit's buffer is for. Per unit at most one of each exists at a time.
enum class Role {
  Gathered,      // all parameters, `padded` elements of Unit::gather
  Gradient,      // all gradients, `padded` elements of Unit::reduce
  Receive,       // what the other ranks' all-to-all pieces arrive in:
                 // padded - padded / ranks elements of Unit::reduce; with
                 // Unit::hook padded elements of that, for the all-reduce
  ShardGradient, // padded / ranks elements of Unit::storage; the optimizer
                 // reads it. Lives from the first reduction of an instruction
                 // to the update, across micro-batches.
};
const char *toString(Role role);

/// HostOut and HostIn copy to and from the host's pinned memory; Host is the
/// host itself, which updates what is there.
enum class Stream { Compute, Gather, Reduce, Send, HostOut, HostIn, Host };
constexpr int numStreams = 7;
const char *toString(Stream stream);

/// An activation, passed between calls. Its storage is freed by a call that
/// consumes it or by a Free instruction.
struct Value {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  int64_t bytes = 0; // aligned; 0 if it shares the storage of `alias`, and of
                     // a buffer, which lives as long as the run
  int alias = -1;    // Program::values: the owner, which has no alias itself
  bool operator==(const Value &) const = default;
};

/// What `bytes` is unless the value is a part of a larger storage.
int64_t defaultBytes(const Value &value);

/// A parameter as a call's argument: a view of the unit's gathered buffer, or
/// of its shard where the unit is neither sharded nor cast.
struct ParamRef {
  int unit = -1;
  int parameter = -1; // Plan::parameters; unit and FQN in plan.json
  bool operator==(const ParamRef &) const = default;
};

/// Where a call leaves a parameter's gradient.
struct GradRef {
  int unit = -1;
  int parameter = -1;
  bool accumulate = false; // add instead of write; part of the function too
  bool operator==(const GradRef &) const = default;
};

enum class ProgramInstructionKind {
  Alloc,         // unit, role; a Gradient's alignment gaps are zeroed
  Free,          // unit, role; or values
  AllGather,     // unit: shard -> Gathered (cast), over Unit::shardAxes
  ReduceScatter, // unit: Gradient -> ShardGradient, over Unit::shardAxes
  AllReduce,     // unit: ShardGradient, over Unit::replicateAxes; cast to
                 // Receive and back with Unit::hook
  Await,         // timepoint
  Call,          // function
  GradNorm,      // all units: total norm -> clip coefficient, found_inf
  Optimizer,     // unit: update its shard from its ShardGradient, or on the
                 // host from the copy that Offload has made of it there
  Send,          // inputs: one value, to the stage `shift` after this one;
                 // without a timepoint a copy for these ranks' next chunk
  Receive,       // outputs: one value, from the stage `shift` before this one
  Pause,         // the end of a part of a micro-batch in a stage
  Offload,       // unit: ShardGradient -> its copy on the host; or inputs:
                 // values -> theirs (Plan::offload)
  Fetch,         // inputs: values that Offload has copied -> outputs
};
const char *toString(ProgramInstructionKind kind);
/// Where an instruction of this kind runs unless it says otherwise: gathers on
/// Gather, reductions on Reduce, sends on Send, copies to the host on HostOut
/// and from it on HostIn, all else on Compute.
Stream defaultStream(ProgramInstructionKind kind);
/// The buffer that an instruction of this kind is about unless it says
/// otherwise: what a collective moves, what norm and update read, else
/// Gathered.
Role defaultRole(ProgramInstructionKind kind);

/// Starts of collectives and copies give a timepoint that exactly one Await
/// takes. Those of one stream run in order; others only wait where they await.
struct ProgramInstruction {
  ProgramInstructionKind kind = ProgramInstructionKind::Call;
  Stream stream = Stream::Compute;
  int unit = -1;
  Role role = Role::Gathered;    // Await: of the start that it awaits
  int timepoint = -1;            // started or awaited
  bool accumulate = false;       // ReduceScatter: add to ShardGradient
  std::vector<std::string> axes; // collectives: the group, as mesh axes
  std::string algorithm;         // ReduceScatter: "direct" or "all_to_all"
  int shift = 0;                 // Send, Receive: 1, or -1 for gradients
  int function = -1;             // Call: Plan::functions
  std::vector<int> inputs;       // Call, Send, Offload, Fetch: values
  std::vector<bool> consumed;    // Call: input i is given up to the function
  std::vector<ParamRef> params;
  std::vector<GradRef> gradients;
  std::vector<int> outputs; // Call: values (-1: dropped); Receive, Fetch
  /// Call of a function with keys: the number of the call in the model's
  /// forward. Its backward has the same, so that it repeats what was drawn.
  int draw = -1;
  std::vector<int> values; // Free
  std::string where;       // module path, or what it is for
  bool operator==(const ProgramInstruction &) const = default;
};

/// One kind of micro-batch. `inputs` are the values that the runtime binds
/// before it starts, by name: "loss_seed" (0-d f32: loss scale / (data-parallel
/// ranks * accumulation slots)) and the batch, whose first dimension is the
/// micro-batch: "input_ids" and "labels" (int64) or others that data.arrays
/// gives.
struct Program {
  std::string name; // "train", "first", "middle", "last", "eval", or those of
                    // a stage: "stage1.first", "stage1.chunk1.first"
  int stage = 0;    // of a pipeline: whose ranks run it
  int chunk = 0;    // of those that the stage has
  std::vector<Value> values;
  std::vector<int> inputs;
  int loss = -1; // value, 0-d f32: mean over the micro-batch
  /// Value, int64: for each row of the logits the place of the largest one, of
  /// an evaluation that asks for them; or -1.
  int predictions = -1;
  std::vector<ProgramInstruction> instructions;
  int64_t peakBytes = 0; // predicted, own buffers without workspaces
  int peakInstruction = -1;
  bool operator==(const Program &) const = default;
};

/// The position of the Pause; the number of instructions without one.
size_t endOfForward(const Program &program);
/// Where the parts of the program begin, each at the Pause before it, and its
/// end.
std::vector<size_t> partsOf(const Program &program);
/// The value that owns the storage of `value`.
inline int rootOf(const Program &program, int value) {
  const int alias = program.values[value].alias;
  return alias < 0 ? value : alias;
}
/// Bytes of the storages of `values`, each counted once.
int64_t storageBytes(const Program &program, const std::vector<int> &values);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_PROGRAMS_H
