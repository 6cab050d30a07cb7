//===- Optimizers.h - What each optimizer holds and moves -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One description per optimizer: hyperparameters, states, passes over memory,
// temporaries. Readers and writers of job.yaml and plan.json, the layout of
// units, the memory and cost models and the runtime read it; the runtime adds
// the update itself (runtime/optimizer). docs/adding-an-optimizer.md lists the
// files that a new one takes.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_OPTIMIZERS_H
#define ACCEL_RUNTIME_PLAN_OPTIMIZERS_H

#include "runtime/plan/Plan.h"
#include "runtime/plan/UpdateKernel.h"

#include <array>
#include <limits>

namespace accel::plan {

/// A hyperparameter beside lr and weight_decay, as job.yaml and plan.json
/// spell it.
struct Hyperparameter {
  enum class Kind {
    Number,
    Numbers, // a list, as long as `standard`
    Flag     // 0 or 1; true or false in files
  };
  const char *name;
  const char *description;
  Kind kind = Kind::Number;
  std::vector<double> standard; // one number unless `kind` is Numbers
  /// Each number is in [least, below).
  double least = 0, below = std::numeric_limits<double>::infinity();
};

/// How many elements a state has for a parameter.
enum class StateShape {
  Whole,        // as many as the parameter
  Rows,         // one for each row: the shape without its last dimension
  Columns,      // one for each column: without the last dimension but one
  PerBlock,     // one for each 256 elements
  Double,       // two for each element
  DoubleBlocks, // two for each 256 elements
  Halves,       // one for each two elements
  Table256,     // 256 numbers of the state's own
  Table16       // 16
};

/// Which parameters have a state.
enum class StateOf {
  All,
  Matrices, // two dimensions or more
  Vectors,  // fewer than two
  TwoDimensional,
  NotTwoDimensional,
  Large,   // 4096 elements or more
  Small,   // fewer than 4096
  Blocked, // 4096 or more, in whole blocks of 256
  Apart    // the others
};

struct StateRule {
  const char *name; // in checkpoints
  StateShape shape = StateShape::Whole;
  StateOf of = StateOf::All;
  /// None: the dtype of the parameter that the update writes.
  std::optional<DType> dtype;
  /// A hyperparameter without which (0) there is no such state.
  const char *needs = nullptr;
};

/// What an update moves through memory and allocates.
struct UpdateCost {
  /// Bytes read and written, in multiples of the bytes held.
  double parameters = 2, gradients = 1, states = 2;
  /// Temporaries in multiples of gradient bytes: of all tensors at once, of
  /// one tensor at a time, and what is left of a tensor's while the next is
  /// updated.
  double lists = 0, tensors = 0, carried = 0;
  /// Temporaries are f32 even where the gradient has 16 bits, and then there
  /// are as many f32 copies more.
  bool inF32 = false;
  double copies = 0;
};

/// What an update of one parameter reads, beside its elements' own states.
enum class UpdateReads {
  Elements,       // nothing: any part of a parameter is updated alone
  RowsAndColumns, // sums over rows and columns, and over all elements
  Matrices        // whole matrices
};

struct OptimizerDescription {
  const char *name;
  const char *summary;
  const char *source;     // the code or paper that it follows
  double lr, weightDecay; // defaults
  std::vector<Hyperparameter> hyperparameters;
  std::vector<StateRule> states;
  /// What frameworks launch; the first is the default.
  std::vector<UpdateKernel> kernels;
  UpdateCost (*cost)(const Optimizer &values, UpdateKernel kernel);
  /// What is wrong with values that are each in range; null: nothing.
  const char *(*conflict)(const Optimizer &values) = nullptr;
  /// Under frameworks that keep parameters in 16 bits (DeepSpeed), the update
  /// is of an f32 copy.
  bool masterCopy = true;
  /// accel-run executes it, with these kernels; others are predicted only.
  bool executed = false;
  UpdateKernel onCpu = UpdateKernel::Fused, onCuda = UpdateKernel::Fused;
  /// Of accel-run's own update where that is none of the kernels.
  UpdateCost (*ownCost)(const Optimizer &values) = nullptr;
  UpdateReads reads = UpdateReads::Elements;
  /// FLOPs of matmuls, and bytes of temporaries beside `cost`, of a
  /// two-dimensional parameter.
  double (*matmulFlops)(const Optimizer &values, int64_t rows,
                        int64_t columns) = nullptr;
  int64_t (*matmulBytes)(int64_t rows, int64_t columns) = nullptr;
  /// Why FSDP2 (its parameters are DTensors) or frameworks with flat shards
  /// (FSDP1, ZeRO) cannot run it; null where they can.
  const char *failsOnDTensors = nullptr;
  const char *failsOnFlatShards = nullptr;
};

const std::vector<OptimizerDescription> &optimizers();
/// Null for a name that is not known.
/// Keller Jordan's coefficients of Newton-Schulz, torch's default and ours.
inline constexpr std::array<double, 3> newtonSchulz = {3.4445, -4.775, 2.0315};

const OptimizerDescription *findOptimizer(const std::string &name);
/// The names, or those that accel-run executes.
std::vector<std::string> optimizerNames(bool executedOnly = false);

/// The value of a hyperparameter: what was set, else the default. Empty where
/// the optimizer has no such hyperparameter.
std::vector<double> valueOf(const Optimizer &optimizer, const char *name);
/// The `i`th number of it; 0 where there is none.
double numberOf(const Optimizer &optimizer, const char *name, size_t i = 0);
/// As many numbers as the hyperparameter has. Where all have their defaults
/// none is stored, so that equal optimizers compare equal.
void setValue(Optimizer &optimizer, const char *name,
              const std::vector<double> &numbers);

/// An optimizer with its values applied: what layout and cost ask.
struct OptimizerRule {
  OptimizerRule() = default;
  /// `dtype` replaces the parameter's dtype for states that have none of their
  /// own.
  explicit OptimizerRule(const Optimizer &optimizer,
                         std::optional<DType> dtype = std::nullopt,
                         UpdateHabits habits = {});

  const OptimizerDescription *description = nullptr;
  Optimizer values;
  UpdateHabits habits;
  std::vector<StateRule> states;
  std::array<UpdateCost, numUpdateKernels> costs;

  const UpdateCost &cost(UpdateKernel kernel) const {
    return costs[static_cast<int>(kernel)];
  }
  /// The kernel of accel-run on a plan's device, "cpu" or "cuda".
  UpdateCost ownCost(const std::string &device) const {
    if (description->ownCost)
      return description->ownCost(values);
    return cost(device == "cuda" ? description->onCuda : description->onCpu);
  }
  static DType dtypeOf(const StateRule &state, DType parameter) {
    return state.dtype.value_or(parameter);
  }
  /// Elements of a state of a parameter that the rank holds as `shape` with
  /// `rows` for its first dimension; 0 where it has none. `wide`: its states
  /// are those of a small parameter, whatever its size.
  static int64_t elements(const StateRule &state,
                          const std::vector<int64_t> &shape, int64_t rows,
                          bool wide = false);
  /// Bytes of all states of a parameter, without rounding.
  int64_t stateBytes(const std::vector<int64_t> &shape, DType parameter) const;
  /// Every state is as large as its parameter and all parameters have it, so
  /// that a shard has it as it has the parameters.
  bool isFlat() const;
  /// Temporaries of one parameter's update, whose gradient takes `bytes` in
  /// elements of `item`; `carried` bytes of them are left during the next
  /// one's.
  int64_t temporaryBytes(UpdateKernel kernel, const std::vector<int64_t> &shape,
                         int64_t rows, int64_t bytes, int64_t item,
                         int64_t &carried) const;
};

/// What transformers calls an optimizer (TrainingArguments.optim).
struct TransformersOptimizer {
  const char *name;
  const char *optimizer = nullptr; // a description's name; null: not modelled
  std::optional<UpdateKernel> kernel = std::nullopt;
  std::optional<DType> stateDtype = std::nullopt; // bitsandbytes' 32-bit states
  const char *failsOnDTensors = nullptr;          // beside the description's
  UpdateHabits habits = {}; // `wideEmbeddings` from transformers 4.52 on
};
const std::vector<TransformersOptimizer> &transformersOptimizers();
const TransformersOptimizer *findTransformersOptimizer(const std::string &name);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_OPTIMIZERS_H
