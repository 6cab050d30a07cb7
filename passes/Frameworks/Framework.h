//===- Framework.h - What a framework does with a job -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A framework runs the training job: accel-run, or what Accelerate launches.
// The deciding passes ask it for every choice that the configuration leaves to
// it: dtypes, accumulation, prefetch, recomputation, the optimizer's kernel.
// One file per framework; the objects hold no state.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKS_FRAMEWORK_H
#define ACCEL_PASSES_FRAMEWORKS_FRAMEWORK_H

#include "runtime/plan/Plan.h"
#include "runtime/plan/UpdateKernel.h"

#include <cstdint>
#include <optional>
#include <string>

namespace accel {

enum class ExecutorKind { AccelRun, Fsdp2, Fsdp1, Ddp, Deepspeed, Single };
/// "accel-run", "fsdp2", ...: as --executor spells it.
const char *toString(ExecutorKind kind);
std::optional<ExecutorKind> parseExecutor(const std::string &text);

/// `version` is at least `other`, number by number ("2.15" > "2.9").
bool atLeast(const std::string &version, const std::string &other);

using OptimizerKernel = plan::UpdateKernel;

namespace frameworks {

struct Versions {
  std::string torch = "2.15", accelerate = "1.15.0";
};

/// What a configuration asks of precision.
struct PrecisionAsked {
  std::optional<plan::DType> param, reduce, output;
  /// The 16-bit dtype of `mixed_precision`, whatever carries it out.
  std::optional<plan::DType> mixed;
  bool autocast = false; // Accelerate enters torch.autocast
  /// The optimizer updates fp32 copies where parameters have 16 bits
  /// (plan::OptimizerDescription::masterCopy).
  bool masterCopies = true;
};

/// The dtypes of a unit; see sharding.precision.
struct Precision {
  plan::DType storage = plan::DType::F32, compute = plan::DType::F32,
              reduce = plan::DType::F32, output = plan::DType::F32,
              gradient = plan::DType::F32, state = plan::DType::F32;
  bool autocast = false;   // around the forward
  bool masterCopy = false; // in fp32, beside 16-bit storage
};

/// Units whose parameters are gathered ahead of their use.
struct PrefetchDepth {
  int64_t forward = 1, backward = 1;
};

/// A choice with its reason, for people.
template <typename T> struct Choice {
  T value;
  const char *why;
};

enum class Recompute { None, Pointwise };
/// What micro-batches before the last leave: reduced gradients, or unreduced
/// ones (no_sync).
enum class AccumulationMode { ReduceEach, KeepUnsharded };

class Framework {
public:
  virtual ~Framework() = default;

  virtual ExecutorKind kind() const = 0;
  const char *name() const { return toString(kind()); }

  /// Runs transformers' modules under PyTorch's autograd, operator by operator.
  virtual bool eager() const { return true; }
  /// Shards parameters and gathers (unshards) them for use.
  virtual bool unshards() const { return false; }
  /// The parameters that each module is the first to use are a unit, whatever a
  /// wrap policy says.
  virtual bool unitsByModule() const { return false; }
  /// torch.autocast casts the operands of matmuls; parameters keep their dtype.
  virtual bool castsByAutocast() const { return false; }
  /// Frozen and trainable parameters of a module are gathered in one
  /// collective.
  virtual bool joinsFrozen() const { return eager(); }
  /// Checkpoints around each child of a layer instead of the layer.
  virtual bool checkpointsChildren(const Versions &) const { return false; }

  /// Sizes of the axes (dp_replicate, dp_shard) for the sizes that the file
  /// asks for.
  virtual std::pair<int64_t, int64_t> meshOf(int64_t replicate,
                                             int64_t shard) const {
    return {replicate, shard};
  }
  /// `storage`: the dtype as loaded, upcast where the file says so.
  virtual Precision precision(const PrecisionAsked &asked, plan::DType storage,
                              const Versions &versions) const = 0;
  /// Nothing where no unit is gathered.
  virtual std::optional<Choice<PrefetchDepth>> prefetch() const {
    return std::nullopt;
  }
  virtual Choice<AccumulationMode> accumulation() const {
    return {AccumulationMode::KeepUnsharded,
            "Accelerate's accumulate() enters no_sync() but for the last "
            "micro-batch"};
  }
  virtual Choice<Recompute> recompute() const {
    return {Recompute::None, "no activation checkpointing: autograd saves what "
                             "the backward reads"};
  }
  /// Why the optimizer updates after the whole backward; null if a unit may be
  /// updated as soon as its gradient is reduced.
  virtual const char *updatesAtEnd() const {
    return "optimizer.step() runs after the backward";
  }
  /// Of an optimizer that has all kernels.
  virtual Choice<OptimizerKernel> optimizerKernel(bool cpu) const;
};

/// The chunks in which Liger Kernel's fused linear cross-entropy computes the
/// loss of `tokens` rows of `hidden` elements over `vocab` classes
/// (ops/fused_linear_cross_entropy.py): a chunk's logits are no larger than the
/// head's input, and its rows a power of two.
int64_t fusedLossChunks(int64_t tokens, int64_t hidden, int64_t vocab);

/// The framework of that kind.
const Framework &framework(ExecutorKind kind);

// One per file.
const Framework &accelRun();
const Framework &fsdp2();
const Framework &fsdp1();
const Framework &ddp();
const Framework &single();
const Framework &deepspeed();

} // namespace frameworks
} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKS_FRAMEWORK_H
