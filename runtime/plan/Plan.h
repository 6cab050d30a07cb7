//===- Plan.h - The plan artifact -------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The one structure that the compiler and the runtime share: what every rank
// holds, the compute functions, and the programs that run them. The compiler
// fills it (passes/Simulate works on the same structs), `writePlan` makes
// plan.json of it, and accel-run reads it back. No MLIR, no LibTorch.
//
// Bytes are integers, sizes are elements unless a name says bytes, and every
// index is a position in the vector that its comment names.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_PLAN_H
#define ACCEL_RUNTIME_PLAN_PLAN_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace accel::plan {

/// Tensors start at multiples of this many bytes, in flat buffers and in the
/// memory model alike (c10's CPU allocator aligns to 64).
constexpr int64_t alignmentBytes = 64;

enum class DType { F64, F32, BF16, F16, I64, I32, I16, U8, I1 };
/// Bytes of one element.
int64_t itemSize(DType dtype);
/// "f32", "bf16", ...: the spelling in MLIR text and in plan.json.
const char *toString(DType dtype);
std::optional<DType> parseDType(const std::string &text);
/// `bytes` rounded up to `alignmentBytes`.
int64_t alignedBytes(int64_t bytes);

//===----------------------------------------------------------------------===//
// What each rank holds
//===----------------------------------------------------------------------===//

/// One named axis of the device mesh; the last axis varies fastest with rank.
struct Axis {
  std::string name; // dp_replicate, dp_shard, (cp, tp, pp later)
  int64_t size = 1;
  bool operator==(const Axis &) const = default;
};

/// How a parameter gets its first value when no weights are read.
struct Initializer {
  enum class Kind {
    Normal, // mean 0
    Ones,
    Zeros,
    TruncatedNormal, // mean 0, drawn again until it is in [low, high]
    Uniform,         // in [low, high)
    Constant,
    /// Row p: sin(p f_i), then cos(p f_i), with f_i falling geometrically from
    /// 1 to 1 / value over half of the columns (Whisper's encoder).
    Sinusoids
  } kind = Kind::Zeros;
  double value = 0.0; // standard deviation, constant or wavelength / 2 pi
  double low = 0.0, high = 0.0;
  int64_t zeroRow = -1; // this row is zero all the same: an embedding's padding
  bool operator==(const Initializer &) const = default;
};

struct Parameter {
  std::string fqn;                  // as named_parameters() spells it
  std::vector<std::string> aliases; // other FQNs of a tied parameter
  std::vector<std::string> stored;  // names in checkpoints, see storedParts
  /// FQN and aliases in the model without its adapter, where that renames it;
  /// the weight files know it by these. Fresh values come from (seed, the first
  /// of these).
  std::vector<std::string> baseNames;
  /// Name in the weights of an adapter, which hold it trained; empty: not part
  /// of one.
  std::string adapterKey;
  std::vector<int64_t> shape; // global
  DType dtype = DType::F32;   // in which the checkpoint is written
  bool trainable = true;
  int group = 0;      // optimizer group (Optimizer::groups)
  int unit = -1;      // units
  int64_t offset = 0; // elements, in the unit's flat buffer
  Initializer init;
  int64_t numel() const;
  bool operator==(const Parameter &) const = default;
};

/// A tensor of the model that is not trained; persistent ones are part of the
/// checkpoint. Every rank holds all of it; programs have an input of its name,
/// whose values are in Job::archive.
struct Buffer {
  std::string fqn; // as named_buffers() spells it
  std::vector<int64_t> shape;
  DType dtype = DType::F32;
  bool persistent = false;
  bool operator==(const Buffer &) const = default;
};

/// One optimizer state of a unit, by its description's name: "exp_avg".
struct State {
  std::string name;
  DType dtype = DType::F32;
  bool operator==(const State &) const = default;
};

/// Parameters that are stored, gathered and reduced together, as one flat
/// buffer of `padded` elements; rank i of the shard group keeps elements
/// [i * padded / n, (i + 1) * padded / n).
struct Unit {
  std::string name;                   // FQN of the module, "" is the root unit
  std::vector<std::string> shardAxes; // empty: every rank holds all of it
  std::vector<std::string> replicateAxes; // gradients are all-reduced over them
  DType storage = DType::F32; // the flat shard and its gradient shard
  DType gather = DType::F32;  // the gathered buffer, and compute
  DType reduce = DType::F32;  // the gradient buffer on the wire
  bool trainable = true;
  std::vector<State> states;
  std::vector<int> parameters; // by offset
  int64_t numel = 0;           // sum of the parameters' elements
  int64_t padded = 0;          // with alignment gaps, a multiple of 64 * ranks
  /// Optimizer groups in the flat buffer: elements [begin, end) of group.
  struct GroupRange {
    int group = 0;
    int64_t begin = 0, end = 0;
    bool operator==(const GroupRange &) const = default;
  };
  std::vector<GroupRange> groupRanges;
  bool operator==(const Unit &) const = default;
};

//===----------------------------------------------------------------------===//
// Compute functions: operator lists over numbered slots
//===----------------------------------------------------------------------===//

/// A tensor inside a function. A view shares the storage of `base`; any other
/// slot is its own base and owns `bytes` (aligned) while a slot of its storage
/// is live. Inputs, params and gradients are owned by the caller.
struct Slot {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  int base = -1; // Function::slots; own index if not a view
  bool operator==(const Slot &) const = default;
};

/// One argument of an operator, in the order of its ATen schema.
struct Arg {
  enum class Kind {
    None,   // a missing optional
    Tensor, // slot
    Tensors,
    Int,
    Float,
    Bool,
    Ints,
    Bools,
    Type,    // ScalarType argument
    Wrapped, // Python scalar in a Tensor slot: a 0-d wrapped number (floating)
    Text,    // a string of the schema: gelu's approximate
    Key,     // intValue: what a random operator draws by, mixed with the job's
             // seed, the micro-batch and the call (Step::draw) where it runs
  } kind = Kind::None;
  int slot = -1;
  int64_t intValue = 0; // Int, Key, Bool (0/1)
  double floatValue = 0;
  std::vector<int64_t> ints; // Ints, Bools, Tensors (slots)
  DType dtype = DType::F32;
  std::string text; // Text
  bool operator==(const Arg &) const = default;
};

/// One operator call. `op` is "aten::mm" or "aten::mm.out" (name.overload).
/// `results` are slots (-1 where a result is not used); an `out=` or in-place
/// operator names its destination among `args` and has no results.
struct Instruction {
  enum class Kind { Aten, Opaque } kind = Kind::Aten;
  std::string op;
  std::vector<Arg> args;
  std::vector<int> results;
  std::vector<int> frees; // slots whose last use this is (never caller-owned
                          // ones, except inputs that the call gives up)
  int64_t workspaceBytes = 0; // what the operator allocates and frees inside
  double flops = 0;           // for the time model
  double movedBytes = 0;      // read and written, for the time model
  std::string where;          // module path with `*`, for traces and messages
  bool operator==(const Instruction &) const = default;
};

struct Function {
  std::string name; // "LlamaDecoderLayer.forward"
  std::vector<Slot> slots;
  std::vector<int> inputs;    // slots: tensors passed by value
  std::vector<int> params;    // slots: views of gathered units
  std::vector<int> gradients; // slots: views of gradient buffers, written here
  std::vector<int> outputs;   // slots
  /// Relative names of `params` and of `gradients` ("self_attn.q_proj.weight").
  std::vector<std::string> paramNames, gradientNames;
  std::vector<Instruction> instructions;
  /// Own storage of slot `i` in bytes (aligned); 0 for a view.
  int64_t slotBytes(int i) const;
  /// An instruction has a key: calls say what they draw by.
  bool draws() const;
  bool operator==(const Function &) const = default;
};

//===----------------------------------------------------------------------===//
// Programs: what a rank does, in order
//===----------------------------------------------------------------------===//

/// What a unit's buffer is for. Per unit at most one of each exists at a time.
enum class Role {
  Gathered,      // all parameters, `padded` elements of Unit::gather
  Gradient,      // all gradients, `padded` elements of Unit::reduce
  Receive,       // what the other ranks' all-to-all pieces arrive in:
                 // padded - padded / ranks elements of Unit::reduce
  ShardGradient, // padded / ranks elements of Unit::storage; the optimizer
                 // reads it. Lives from the first reduction of a step to the
                 // update, across micro-batches.
};
const char *toString(Role role);

enum class Stream { Compute, Gather, Reduce };
const char *toString(Stream stream);

/// An activation, passed between calls. Its storage is freed by a call that
/// consumes it or by a Free step.
struct Value {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  int64_t bytes = 0; // aligned; 0 if it shares the storage of `alias`
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

enum class StepKind {
  Alloc,         // unit, role; a Gradient's alignment gaps are zeroed
  Free,          // unit, role; or values
  AllGather,     // unit: shard -> Gathered (cast), over Unit::shardAxes
  ReduceScatter, // unit: Gradient -> ShardGradient, over Unit::shardAxes
  AllReduce,     // unit: ShardGradient, over Unit::replicateAxes
  Await,         // timepoint
  Call,          // function
  GradNorm,      // all units: total norm -> clip coefficient, found_inf
  Optimizer,     // unit: update its shard from its ShardGradient
};
const char *toString(StepKind kind);
/// Where a step of this kind runs unless it says otherwise: gathers on Gather,
/// reductions on Reduce, all else on Compute.
Stream defaultStream(StepKind kind);
/// The buffer that a step of this kind is about unless it says otherwise: what
/// a collective moves, what norm and update read, else Gathered.
Role defaultRole(StepKind kind);

/// Starts of collectives give a timepoint that exactly one Await takes. Steps
/// of one stream run in order; others only wait where they await.
struct Step {
  StepKind kind = StepKind::Call;
  Stream stream = Stream::Compute;
  int unit = -1;
  Role role = Role::Gathered;    // Await: of the start that it awaits
  int timepoint = -1;            // started or awaited
  bool accumulate = false;       // ReduceScatter: add to ShardGradient
  std::vector<std::string> axes; // collectives: the group, as mesh axes
  std::string algorithm;         // ReduceScatter: "direct" or "all_to_all"
  int function = -1;             // Call: Plan::functions
  std::vector<int> inputs;       // Call: values
  std::vector<bool> consumed;    // Call: input i is given up to the function
  std::vector<ParamRef> params;
  std::vector<GradRef> gradients;
  std::vector<int> outputs; // Call: values (-1: dropped)
  /// Call of a function with keys: the number of the call in the model's
  /// forward. Its backward has the same, so that it repeats what was drawn.
  int draw = -1;
  std::vector<int> values; // Free
  std::string where;       // module path, or what it is for
  bool operator==(const Step &) const = default;
};

/// One kind of micro-batch. `inputs` are the values that the runtime binds
/// before it starts, by name: "loss_seed" (0-d f32: loss scale / (data-parallel
/// ranks * accumulation slots)) and the batch, whose first dimension is the
/// micro-batch: "input_ids" and "labels" (int64) or others that data.arrays
/// gives.
struct Program {
  std::string name; // "train", "first", "middle", "last", "eval"
  std::vector<Value> values;
  std::vector<int> inputs;
  int loss = -1; // value, 0-d f32: mean over the micro-batch
  std::vector<Step> steps;
  int64_t peakBytes = 0; // predicted, own buffers without workspaces
  int peakStep = -1;
  bool operator==(const Program &) const = default;
};

//===----------------------------------------------------------------------===//
// The job, as the runtime needs it
//===----------------------------------------------------------------------===//

struct OptimizerGroup {
  double lr = 1e-3;
  double weightDecay = 0.01;
  bool operator==(const OptimizerGroup &) const = default;
};
struct Optimizer {
  std::string name = "adamw"; // a description's (Optimizers.h)
  /// The description's hyperparameters one after the other, a flag as 0 or 1;
  /// empty: its defaults. Read through valueOf.
  std::vector<double> values;
  double maxGradNorm = 0.0; // 0: no clipping
  std::vector<OptimizerGroup> groups;
  bool operator==(const Optimizer &) const = default;
};
struct LrSchedule {
  int64_t steps = 0;
  int64_t warmupSteps = 0;
  std::string decay = "constant"; // constant, linear, cosine
  double minLr = 0.0;
  bool operator==(const LrSchedule &) const = default;
};
/// Where samples come from; paths are absolute or relative to the plan file.
struct Data {
  std::string kind; // "", tokens, text, npy, arrays
  std::string path;
  std::map<std::string, std::string> arrays;
  std::string dtype = "uint16";
  bool shuffle = false;
  int64_t seed = 0;
  bool operator==(const Data &) const = default;
};
struct Checkpoint {
  std::string dir; // empty: nothing is written
  int64_t every = 0, keep = 0;
  std::string stateDict = "sharded"; // or full
  bool operator==(const Checkpoint &) const = default;
};
struct InputLimit {
  std::string name;
  int64_t limit = 0;
  bool operator==(const InputLimit &) const = default;
};
struct Job {
  /// Tokens of a micro-batch on one rank; samples where there are no tokens.
  int64_t itemsPerMicroBatch() const {
    return microBatch * (sequenceLength > 0 ? sequenceLength : 1);
  }
  std::string modelName, modelPath; // HF folder with config.json
  /// What to start from, or empty: safetensors, or the .pt2 of the model.
  std::vector<std::string> weightFiles;
  /// Text of the adapter_config.json beside the adapter's weights; empty: the
  /// model has no adapter, and whole models are exported.
  std::string adapterConfig;
  std::string archive;    // .pt2 with the values of `Plan::buffers`; or empty
  int64_t seed = 0;       // of initial values
  int64_t randomSeed = 0; // of what random operators draw
  std::string precision = "no"; // no, bf16, fp16
  bool lossScaling = false;     // fp16
  int64_t microBatch = 1, accumulation = 1;
  int64_t sequenceLength = 0; // tokens of a sample; 0: samples have no tokens
  int64_t vocab = 0;
  /// Integers of this input are in [0, limit); labels may be -100 too. Of
  /// "input_ids" and "labels" the limit is `vocab` unless one is here.
  std::vector<InputLimit> inputLimits;
  Optimizer optimizer;
  LrSchedule schedule;
  Data data, evalData;
  int64_t evalEvery = 0, evalBatches = 0;
  Checkpoint checkpoint;
  bool operator==(const Job &) const = default;
};

/// One line of "why": `where` is a unit, parameter or "job".
struct Decision {
  std::string what, where, choice, why;
  std::string file; // of the YAML line that caused it; empty: a default
  int line = 0, column = 0;
  std::vector<std::string> alternatives;
  bool operator==(const Decision &) const = default;
};

struct Breakdown { // bytes at the peak; sums to peakBytes
  int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0,
          logits = 0, gathered = 0, buffers = 0;
  bool operator==(const Breakdown &) const = default;
};
struct Predicted {
  int64_t peakBytes = 0;       // own buffers and workspaces
  int64_t ownPeakBytes = 0;    // own buffers alone, exact
  int64_t persistentBytes = 0; // between steps
  int64_t reservedBytes = 0, deviceBytes = 0;
  Breakdown breakdown;
  std::string peakProgram;
  int peakStep = -1;
  std::string peakWhere;
  double stepSeconds = 0, computeSeconds = 0, exposedCommSeconds = 0;
  double tokensPerSecond = 0;
  bool hasTime = false;
  bool operator==(const Predicted &) const = default;
};

/// A tensor of a checkpoint: elements [begin, begin + product of shape) of a
/// parameter.
struct StoredPart {
  std::string name;
  std::vector<int64_t> shape;
  int64_t begin = 0;
};

/// The tensors that save_pretrained of transformers writes for the parameter
/// `fqn` of `shape`, one after another in memory. `stored` is empty where the
/// parameter is its tensor, one name where that is called otherwise. Names with
/// `*` in them stand for one set per index of the first dimension, each an
/// equal part of the second: a [E, 2 I, H] that is stored as {"e.*.w1",
/// "e.*.w3"} is "e.0.w1" [I, H], "e.0.w3", "e.1.w1", ... Nothing where the
/// names do not fit the shape.
std::optional<std::vector<StoredPart>>
storedParts(const std::string &fqn, const std::vector<std::string> &stored,
            const std::vector<int64_t> &shape);

struct Plan {
  static constexpr int formatVersion = 1;
  std::string generator;
  Job job;
  std::string target; // name of the target file
  std::string device; // "cpu" or "cuda"
  std::vector<Axis> axes;
  std::vector<OptimizerGroup> groups() const { return job.optimizer.groups; }
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  std::vector<Unit> units;
  std::vector<Function> functions;
  std::vector<Program> programs;
  /// The optimizer step: programs by index with their repeat counts.
  std::vector<std::pair<int, int64_t>> step;
  int eval = -1; // program, or none
  Predicted predicted;
  std::vector<Decision> decisions;

  int64_t ranks() const;
  int64_t axisSize(const std::string &name) const;
  /// Product of the sizes of `axes`.
  int64_t groupSize(const std::vector<std::string> &axes) const;
  int64_t shardRanks(const Unit &unit) const;
  bool operator==(const Plan &) const = default;
};

/// Elements that one rank keeps of `unit`.
int64_t shardNumel(const Plan &plan, const Unit &unit);
/// Bytes of a unit's buffer of this role, on one rank.
int64_t roleBytes(const Plan &plan, const Unit &unit, Role role);
/// True where the unit's parameters are read from the shard itself: no shard
/// axis and no cast, so no Gathered buffer exists.
bool readsShard(const Plan &plan, const Unit &unit);
/// True where gradients are written straight into ShardGradient: no shard axis
/// and the reduce dtype is the storage dtype.
bool writesShardGradient(const Plan &plan, const Unit &unit);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_PLAN_H
