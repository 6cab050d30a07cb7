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

#include "passes/Targets/LinearOperands.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/UpdateKernel.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace accel {

enum class FrameworkKind {
  AccelRun,
  Fsdp2,
  Fsdp1,
  Ddp,
  Deepspeed,
  Megatron,
  Single
};
/// "accel-run", "fsdp2", ...: as --executor spells it.
const char *toString(FrameworkKind kind);
std::optional<FrameworkKind> parseExecutor(const std::string &text);
/// Each rank holds whole parameters, gradients and optimizer states: torch's
/// DistributedDataParallel, or one process.
inline bool neverShards(FrameworkKind kind) {
  return kind == FrameworkKind::Ddp || kind == FrameworkKind::Single;
}

/// `version` is at least `other`, number by number ("2.15" > "2.9").
bool atLeast(const std::string &version, const std::string &other);

using OptimizerKernel = plan::UpdateKernel;

namespace frameworks {

struct Versions {
  std::string torch = "2.15", accelerate = "1.15.0", transformers = "5.23.0";
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

/// Ranks that a configuration groups within a mesh: those that hold a second
/// copy of gathered parameters (ZeRO++ hpZ), and those that share one copy of
/// the model (MiCS). 0 or 1: none.
struct RankGroups {
  int64_t secondary = 0, shard = 0;
};

/// ZeRO++ and MiCS; see sharding.zero_plus.
struct ZeroPlus {
  RankGroups groups;
  bool quantizedWeights = false, quantizedGradients = false;
};

/// A choice with its reason, for people.
template <typename T> struct Choice {
  T value;
  const char *why;
};

enum class Recompute { None, Pointwise };

/// RMSNorm: operator by operator as models write it, the product cast to the
/// dtype of the input; the same with the weight multiplied in fp32 before the
/// cast; torch's one kernel.
enum class NormKernel { Written, WrittenWide, Fused };
/// Rotary positions: x cos + rotate_half(x) sin; complex multiplications in
/// fp32; one kernel.
enum class RotaryKernel { Halves, Complex, Fused };
/// Cross-entropy: log_softmax and nll_loss in fp32 or in the dtype of the
/// logits; one kernel of torch.compile; one that writes the gradient over the
/// logits (flash-attn's inplace_backward), or over a copy of them in fp32 that
/// was shifted by a token (Unsloth's, as fms-acceleration calls it), or over a
/// copy in fp32 (Megatron's).
enum class LossKernel {
  Wide,
  Narrow,
  Compiled,
  InPlace,
  InPlaceShifted,
  InPlaceWide
};
/// Attention: one kernel; or two batched matmuls, one kernel that scales, masks
/// and takes the softmax in 16 bits, and dropout between them.
enum class AttentionKernel { Fused, FusedSoftmax };
/// What selective activation checkpointing keeps of a layer: nothing is
/// selective; attention and every second matmul (torchtitan's per-operator
/// option, torchtitan/distributed/activation_checkpoint.py); all but what the
/// attention module computes; all but the core of attention, between its
/// projections.
enum class Selective { None, SecondMatmuls, AllButAttention, CoreAttention };

/// How a framework's models compute, where that decides tensors and seconds.
/// The default is transformers.
struct Kernels {
  /// Modules compute as transformers' do (passes/Kernels/EagerForm).
  bool transformers = true;
  NormKernel norm = NormKernel::Written;
  RotaryKernel rotary = RotaryKernel::Halves;
  LossKernel loss = LossKernel::Wide;
  bool repeatsKeys = false; // keys and values are copied for each query head
  /// The training loop computes the loss of the model's output: hooks of the
  /// model are on the logits, and the loop's variables hold those until the
  /// loss is there.
  bool lossOutside = false;
  Selective selective = Selective::None;
  /// Rate of its attention against the kernels that targets were measured with.
  double attentionRate = 1;
  /// Its attention in 16 bits is cuDNN's where the target has rates of that.
  bool cudnnAttention = false;
  AttentionKernel attention = AttentionKernel::Fused;
  /// torch's attention in 16 bits takes cuDNN's kernel for heads of at most 128
  /// elements, and of that many; 0: for none.
  int64_t cudnnHead = 0;
  /// torch's memory-efficient attention takes grouped queries (from 2.14 on, by
  /// check_batch_size_and_num_heads_dense of
  /// ATen/native/transformers/sdp_utils_cpp.h) and a mask that is trained (seen
  /// with 2.15, and not with 2.11; between them not known); else what no other
  /// kernel takes is computed by single matmuls in fp32.
  bool efficientTakesAll = true;
  bool fusedGate = false; // silu(gate) * up is one kernel
  /// The derivatives of the gate and of norms are written over what they read:
  /// over gate and up, over the gradient of a norm's output (Liger Kernel:
  /// ops/swiglu.py, ops/rms_norm.py with in_place).
  bool derivativesInPlace = false;
  /// What layers gather over tp is gathered again in the backward, not saved.
  bool gathersAgain = false;
  /// DTensor splits the layers over tp: with its copies around exchanges, and
  /// torchao's gathers of 8 bits.
  bool dtensor = false;
  /// Compiled layers exchange over tp beside their matmuls (torch's
  /// asynchronous tensor parallelism).
  bool asyncTensor = false;
  bool compiled = false; // the layers are under torch.compile
  /// Of the layers' matmuls.
  LinearOperands operands = LinearOperands::Computed;
  /// Matmuls and fused kernels run at the rates of NVIDIA's present libraries,
  /// where the target has those (ComputeRate::libraryMatmulEfficiency).
  bool libraryRates = false;
  bool tf32 = false; // fp32 matmuls round their operands to TF32
};

/// Kernels::cudnnHead of a release of torch on a device of that CUDA compute
/// capability (check_prefer_cudnn_attention and check_cudnn_tensor_shapes of
/// ATen/native/transformers/cuda/sdp_utils.cpp): first on Hopper and Blackwell
/// where cuDNN is newer than 9.15.0, which torch's wheels carry from 2.11 on.
int64_t cudnnHead(const std::string &torch, double capability);

/// Whether this torch keeps the workspaces of cuBLAS and cuBLASLt from their
/// first product on: 2.11 was seen to, 2.15 not to.
bool keepsWorkspaces(const std::string &torch);

/// Kernels that a script puts in place of those of transformers' modules: Liger
/// Kernel's (liger_kernel/transformers/monkey_patch.py: norms, rotary positions
/// and SwiGLU; the loss is a matter of its own), or the fused operations of
/// fms-acceleration ("foak": norms and rotary positions of llama, mistral and
/// mixtral, and Unsloth's cross-entropy).
enum class KernelSet {
  Liger,
  Foak,
  /// Megatron's cross_entropy_fusion_impl "te": Transformer Engine's
  /// cross-entropy writes the gradient over logits of 16 bits
  /// (transformer_engine/common/triton/cross_entropy.py).
  TransformerEngineLoss
};
const char *toString(KernelSet set); // "liger"
std::optional<KernelSet> parseKernelSet(const std::string &name);
/// Those of a model that is not transformers' keep all but Transformer Engine's
/// loss.
void useKernels(KernelSet set, Kernels &kernels);

/// Units that a framework makes without a wrap policy: each layer, and what is
/// left.
struct LayerUnits {
  /// The input embedding is a unit, the final norm and the head another one
  /// that stays gathered after the forward; else the root holds them.
  bool ends = true;
  bool keepsLastLayer = false; // it stays gathered after the forward
  const char *why = "";
};
/// What micro-batches before the last leave: reduced gradients, or unreduced
/// ones (no_sync).
enum class AccumulationMode { ReduceEach, KeepUnsharded };

class Framework {
public:
  virtual ~Framework() = default;

  /// The model of its step (passes/FrameworkSteps).
  virtual FrameworkKind kind() const = 0;
  /// As #sharding.framework spells it.
  virtual std::string name() const { return toString(kind()); }

  /// Runs transformers' modules under PyTorch's autograd, operator by operator.
  virtual bool eager() const { return true; }
  /// The model's forward, which also makes the loss, names what its layers
  /// return until the loss is there (transformers: `outputs`, from which
  /// `hidden_states` is taken, in the forward of each ...ForCausalLM).
  virtual bool namesHiddenStates() const { return eager(); }
  /// Shards parameters and gathers (unshards) them for use.
  virtual bool unshards() const { return false; }
  /// Under tensor parallelism, activations between layers are sharded by tokens
  /// (sequence parallelism).
  virtual bool shardsSequence() const { return false; }
  /// Under tensor parallelism, logits are gathered before the loss.
  virtual bool gathersLogits() const { return eager() && !shardsSequence(); }
  /// Gathers a weight that scales itself to fp8 in one byte an element
  /// (fsdp_pre_all_gather of torchao/float8/fsdp_utils.py).
  virtual bool gathersFp8() const { return false; }
  /// The parameters that each module is the first to use are a unit, whatever a
  /// wrap policy says.
  virtual bool unitsByModule() const { return false; }
  /// torch.autocast casts the operands of matmuls; parameters keep their dtype.
  virtual bool castsByAutocast() const { return false; }
  /// Frozen and trainable parameters of a module are gathered in one
  /// collective.
  virtual bool joinsFrozen() const { return eager(); }
  /// How its models compute; `compiled`: the job asks for torch.compile.
  virtual Kernels kernels(const Versions &, bool compiled) const {
    Kernels usual;
    usual.compiled = compiled;
    return usual;
  }
  /// Nothing where a wrap policy decides.
  virtual std::optional<LayerUnits> layerUnits(const Versions &) const {
    return std::nullopt;
  }
  /// Checkpoints around each child of a layer instead of the layer.
  virtual bool checkpointsChildren(const Versions &) const { return false; }

  /// The mesh that it makes of the one that the file asks for, with the groups
  /// as axes.
  virtual plan::Mesh meshOf(const plan::Mesh &asked, const RankGroups &) const {
    return asked;
  }
  /// What becomes of ZeRO++ and MiCS in that stage, over a mesh; `why` is empty
  /// where all that was asked is done.
  virtual Choice<ZeroPlus> zeroPlus(const ZeroPlus &, int64_t stage,
                                    const plan::Mesh &,
                                    int64_t ranksPerNode) const {
    (void)stage, (void)ranksPerNode;
    return {{}, "ZeRO++ and MiCS are DeepSpeed's"};
  }
  /// `storage`: the dtype as loaded, upcast where the file says so.
  virtual Precision precision(const PrecisionAsked &asked, plan::DType storage,
                              const Versions &versions) const = 0;
  /// Nothing where no unit is gathered.
  virtual std::optional<Choice<PrefetchDepth>> prefetch() const {
    return std::nullopt;
  }
  virtual Choice<AccumulationMode> accumulation(const Versions &) const {
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

/// The framework of that kind, as Accelerate launches it.
const Framework &framework(FrameworkKind kind);

/// A trainer with models of its own ("torchtitan") over what shards them; the
/// framework of that kind where `trainer` is empty. Null for a trainer that is
/// not known.
const Framework *findTrainer(const std::string &trainer, FrameworkKind over);
/// What a trainer shards with where nothing else is said; nothing for a name
/// that is no trainer's.
std::optional<FrameworkKind> trainerExecutor(const std::string &trainer);
/// By Framework::name; null for another.
const Framework *findFramework(const std::string &name);

// One per file.
const Framework &accelRun();
const Framework &fsdp2();
const Framework &fsdp1();
const Framework &ddp();
const Framework &single();
const Framework &deepspeed();
const Framework &megatron();

/// A trainer's models and choices; it shards with `over`, which answers all
/// else. Objects live as long as the program.
class Trainer : public Framework {
public:
  Trainer(const char *trainer, const Framework &over)
      : trainer(trainer), over(over) {}
  FrameworkKind kind() const override { return over.kind(); }
  std::string name() const override;
  bool unshards() const override { return over.unshards(); }
  bool gathersFp8() const override { return over.gathersFp8(); }
  bool unitsByModule() const override { return over.unitsByModule(); }
  bool castsByAutocast() const override { return over.castsByAutocast(); }
  plan::Mesh meshOf(const plan::Mesh &asked,
                    const RankGroups &groups) const override {
    return over.meshOf(asked, groups);
  }
  Choice<ZeroPlus> zeroPlus(const ZeroPlus &asked, int64_t stage,
                            const plan::Mesh &mesh,
                            int64_t ranksPerNode) const override {
    return over.zeroPlus(asked, stage, mesh, ranksPerNode);
  }
  Precision precision(const PrecisionAsked &asked, plan::DType storage,
                      const Versions &versions) const override {
    return over.precision(asked, storage, versions);
  }
  std::optional<Choice<PrefetchDepth>> prefetch() const override {
    return over.prefetch();
  }
  Choice<AccumulationMode> accumulation(const Versions &) const override {
    return {AccumulationMode::ReduceEach,
            "its training loop reduces every micro-batch"};
  }

protected:
  const char *trainer;
  const Framework &over;
};

/// Makes the trainer's framework over another one; one function per trainer.
struct TrainerEntry {
  const char *name;
  FrameworkKind usual; // trainerExecutor
  std::unique_ptr<Framework> (*make)(const Framework &over);
};
extern const TrainerEntry torchtitanEntry, llmFoundryEntry, fmsFsdpEntry,
    torchtuneEntry, kempnerForgeEntry, coreAttentionEntry;

} // namespace frameworks
} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKS_FRAMEWORK_H
