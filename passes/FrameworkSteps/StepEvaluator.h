//===- StepEvaluator.h - What a step holds and takes ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// An executor model turns a StepModel and a Candidate into the actions of a
// step in issue order: computations, collectives and copies on streams, with
// what each allocates and frees. One engine (Engine.h) makes the memory
// timeline and the seconds of them.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_STEPEVALUATOR_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_STEPEVALUATOR_H

#include "passes/Frameworks/Framework.h"
#include "passes/Replay/Replay.h"
#include "passes/StepModel/StepModel.h"
#include "passes/Targets/Target.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Stages.h"
#include "runtime/plan/UpdateKernel.h"

#include <array>
#include <memory>
#include <optional>

namespace accel {

/// Where dtypes, upcasts and copies differ: what the executor does with the
/// parameters as loaded, by Accelerate and torch version.
struct StepDtypes {
  plan::DType storage = plan::DType::F32;  // sharded parameters
  plan::DType compute = plan::DType::F32;  // gathered parameters
  plan::DType reduce = plan::DType::F32;   // gradients on the wire
  plan::DType gradient = plan::DType::F32; // gradients that the update reads
  /// Of states that the optimizer keeps in the parameter's dtype.
  plan::DType state = plan::DType::F32;
  bool masterCopy = false; // the optimizer updates fp32 copies (DeepSpeed)
  /// Each parameter is stored in the dtype that it was loaded in, which may
  /// differ (an fp32 adapter of a bf16 model).
  bool storesAsLoaded = false;
  /// Each parameter is computed with in the dtype that it is stored in: no
  /// policy and no conversion of the model.
  bool computesAsStored = false;
  /// Each parameter is gathered in the dtype that it is stored in, and autocast
  /// makes the copies that are computed with.
  bool gathersAsStored = false;
  bool upcastFrozen = false; // frozen parameters are stored as the others
  bool autocast = false;     // torch.autocast instead of cast parameters
  bool outputFloat = false;  // logits are converted to fp32 by a wrapper
};

/// Shared by all candidates of a job.
using UpdateRule = std::shared_ptr<const plan::OptimizerRule>;
UpdateRule makeUpdateRule(const plan::Optimizer &optimizer,
                          std::optional<plan::DType> stateDtype = std::nullopt,
                          plan::UpdateHabits habits = {});
/// AdamW with its defaults.
const UpdateRule &adamwRule();

/// DeepSpeed's zero_optimization, with its defaults (runtime/zero/config.py).
/// Elements, not bytes.
struct ZeroBuffers {
  int64_t reduceBucket = 500'000'000;     // reduce_bucket_size
  int64_t prefetchBucket = 50'000'000;    // stage3_prefetch_bucket_size
  int64_t persistenceThreshold = 100'000; // stage3_param_persistence_threshold
  /// stage3_max_reuse_distance and stage3_max_live_parameters, elements: those
  /// of DeepSpeed and of Accelerate, as lower ones are refused.
  int64_t reuseDistance = 1'000'000'000, liveParameters = 1'000'000'000;
  /// overlap_comm: stages 1 and 2 have two buckets. Stage 3 has one.
  bool overlap = false;
  int64_t subGroup = 1'000'000'000; // sub_group_size
  /// ZeRO++: zero_hpz_partition_size (the mesh's axis zero_hpz),
  int64_t secondaryRanks = 0;
  /// zero_quantized_weights, zero_quantized_gradients.
  bool quantizedWeights = false, quantizedGradients = false;
};

/// Megatron-Core's settings (sharding.megatron); its stages are the axis "pp"
/// of the mesh.
struct MegatronStep {
  bool distributedOptimizer = false;
  bool overlapsGradients = false, overlapsParameters = false;
  bool transformerEngine = false; // computes the layers
  int chunks = 1;                 // of layers, that each rank of a pipeline has
  int lastLayers = 0;             // of the last chunk; 0: as the others
  int64_t experts = 1;            // ranks that share the experts of a layer
  int64_t expertTensor = 1;       // ranks that split each of them
  /// Bytes of an element of a layer's weights, where those have 8 or 4 bits
  /// (fp8_param_gather); 0: they have the dtype of computation.
  double narrowWeightBytes = 0;
  /// Megatron's FSDP: a rank holds a part of each weight and gradient
  /// (data_parallel_sharding_strategy optim_grads_params).
  bool shardsParameters = false;
  /// Beside it: the first layers of which activations are on the host
  /// (cpu_offloading_num_layers).
  int offloadedLayers = 0;
};

/// What a trainer of preferences computes beside the model that it trains
/// (TRL's DPOTrainer and GRPOTrainer).
struct PreferenceStep {
  /// Frozen weights that the loss is compared with: a second model, or the
  /// trained one without its adapter.
  enum class Reference { None, Itself, Second };
  Reference reference = Reference::None;
  /// Completions are scored before the forward that is trained, not beside what
  /// it saved: by the reference, and
  bool scoresFirst = false;
  bool scoresItself = false; // by the trained weights
  /// The loss is log-probabilities of the logits, in full (TRL's
  /// selective_log_softmax).
  bool logProbabilities = false;
  /// Of all logits in fp32, and a second model has the dtype of computation
  /// (LLaMA-Factory's get_batch_logps and create_ref_model).
  bool whole = false;
  /// Of each device: what an engine that generates completions keeps.
  int64_t generationBytes = 0;
};

/// How a step is run: all that the configuration fixes and the search decides.
struct Candidate {
  FrameworkKind executor = FrameworkKind::Fsdp2;
  plan::Mesh mesh = plan::Mesh::dataParallel();
  int64_t ranksPerNode = 1;
  /// The ranks over which units are sharded, and those that hold copies.
  plan::AxisGroup shards() const {
    return mesh.group(mesh.set(plan::AxisRole::Shard), ranksPerNode);
  }
  plan::AxisGroup replicas() const {
    return mesh.group(mesh.set(plan::AxisRole::Replicate), ranksPerNode);
  }
  /// Those of the former that have the same experts.
  plan::AxisGroup sameExperts() const {
    plan::AxisSet set;
    for (size_t i = 0; i < mesh.axes.size(); ++i)
      if (plan::axisRole(mesh.axes[i].name) == plan::AxisRole::Shard &&
          mesh.axes[i].name != plan::expertAxis)
        set.add(i);
    return mesh.group(set, ranksPerNode);
  }
  /// Variant of each call (SegmentKind::variants).
  std::vector<int> variants;
  /// Unit of each parameter, and for each unit whether it is gathered again
  /// in the backward; sizes as StepModel::parameters and `numUnits`.
  std::vector<int> unitOf;
  std::vector<bool> reshardAfterForward;
  int numUnits() const { return static_cast<int>(reshardAfterForward.size()); }
  /// accel-run: every rank holds all parameters between steps, beside its
  /// shards, and gathers each unit after its update.
  bool wholeParameters = false;
  int rootUnit = -1; // the one with torch's root rules, or none
  int forwardPrefetch = 1, backwardPrefetch = 1; // units ahead
  /// accel-run: gathers of a backward, from the first behind the loss's, that
  /// start where they are needed.
  int64_t holdGathers = 0;
  /// accel-run: reductions that a backward waits for, from its first.
  int64_t awaitReductions = 0;
  int64_t accumulation = 1;
  bool reduceEachMicroBatch = true; // else gradients stay unsharded (no_sync)
  StepDtypes dtypes;
  OptimizerKernel optimizer = OptimizerKernel::Foreach;
  UpdateRule update = adamwRule();
  bool offloadParameters = false; // shards (and the optimizer) on the host
  bool offloadOptimizer = false;
  /// accel-run: the states are on the drive (plan::Disk).
  std::optional<plan::Disk> disk;
  /// Calls whose saved values go to the host between forward and backward.
  std::vector<bool> offloadActivations;
  /// accel-run: all that calls save, beside the next call and ahead of its use.
  bool offloadSaved = false;
  int64_t bucketBytes = 25 << 20, firstBucketBytes = 1 << 20; // DDP
  bool gradientAsBucketView = false;
  std::string commHook; // DDP: "", "fp16", "bf16", "powersgd"
  int zeroStage = 3;    // DeepSpeed
  ZeroBuffers zero;
  /// The optimizer holds fp32 copies: DeepSpeed's partitions are copies of
  /// fp32 parameters too (single_partition_of_fp32_groups,
  /// fp32_partitioned_groups_flat), and stage 0 updates those as they are.
  bool holdsMasterCopy() const {
    return dtypes.masterCopy &&
           (dtypes.compute != plan::DType::F32 || zeroStage > 0);
  }
  MegatronStep megatron;
  /// Ranks that each compute other layers.
  int stages() const { return static_cast<int>(mesh.size(plan::pipelineAxis)); }
  bool clipGradients = false;
  /// Checkpointed layers are reentrant (torch.utils.checkpoint with
  /// use_reentrant=True).
  bool reentrantCheckpoints = false;
  /// A checkpoint calls the module that shards, rather than being called by it.
  bool checkpointsUnits = false;
  bool compiled = false; // torch.compile: pointwise operators are fused
  /// All of the model, not each layer by itself.
  bool compiledWhole = false;
  /// Kernels of compiled calls are CUDA graphs (CudaGraphs.cpp).
  bool replaysGraphs = false;
  /// The loss is computed of the model's output: hooks of its root are on the
  /// logits.
  bool lossOutside = false;
  /// Chunks of the tokens that the loss is computed in, each with its backward
  /// before the next (fused linear cross-entropy); 1: no chunks. Ignored by
  /// accel-run: its step model is built from the chunked head.
  int64_t lossChunks = 1;
  /// The training loop keeps the model's outputs, and so the logits, until the
  /// backward has run (as the loop of Accelerate's documentation does, and
  /// transformers' Trainer does not).
  bool holdsOutputs = false;
  PreferenceStep preference;
  /// What was on the device before the shards: the allocator keeps its blocks.
  /// AsShards: nothing; ByUnit: a unit's parameters, moved there to be sharded;
  /// ByParameter: each alone, as rank 0 broadcasts it.
  enum class Loading : uint8_t { AsShards, ByUnit, ByParameter };
  Loading loading = Loading::AsShards;
  std::string torchVersion = "2.15", accelerateVersion = "1.15";
};

/// A step as decided: its costs, and how it is run.
struct DecidedStep {
  std::shared_ptr<const StepModel> model;
  Candidate candidate;
};

/// What bytes are held for. The first seven are Breakdown's.
enum class Holding {
  Parameters,
  Gradients,
  Optimizer,
  Activations,
  Logits,
  Gathered,
  Buffers
};
constexpr int numHoldings = 7;
const char *toString(Holding holding);

/// Seconds of a step in which nothing computes, by what is waited for.
struct Exposed {
  std::string cause; // "gather model.layers.*", "reduce", "host copy"
  double seconds = 0;
};

/// One rank class of a step, as predicted.
struct StepPrediction {
  int64_t peakBytes = 0;       // tensors
  int64_t persistentBytes = 0; // between steps
  int64_t endBytes = 0;        // after the step: the same
  int64_t reservedBytes = 0;   // with the allocator's segments, by stream pool
  /// Where the segments were replayed too, tensor by tensor, `reservedBytes` is
  /// that of an executor that never shards, and of others the larger of it and
  /// of the estimate: the peak of each pool and the target's share of idle
  /// bytes.
  bool replayed = false;
  int64_t replayedBytes = 0;          // where replayed
  int64_t estimatedReservedBytes = 0; // where replayed
  /// Where replayed: what max_memory_allocated tells. A block whose rest is too
  /// small to be another one counts whole. 0: not known.
  int64_t replayedAllocatedBytes = 0;
  /// The segments are more than the budget, but idle ones can be returned to
  /// the full device first: so many times a step. 0: that need not be, or is
  /// of no use.
  int64_t allocatorRetries = 0;
  int64_t deviceBytes = 0; // with context, communicators, libraries
  int64_t hostBytes = 0;   // pinned and pageable memory of one rank
  int64_t diskBytes = 0;   // of one rank's file
  /// Of states in managed memory: on the device while there is room, and in
  /// none of the other figures.
  int64_t pagedBytes = 0;
  std::array<int64_t, numHoldings> atPeak{}; // sums to peakBytes
  std::string peakWhere;                     // "backward of model.layers.31"
  int peakAction = -1;
  double stepSeconds = 0, computeSeconds = 0, exposedSeconds = 0;
  /// Of `computeSeconds`. An update on the host is exposed instead.
  double recomputeSeconds = 0, optimizerSeconds = 0;
  double tokensPerSecondPerDevice = 0;
  std::vector<Exposed> exposed; // largest first; on request
};

/// The dtypes of all units, of which `p` is a trainable one's.
StepDtypes stepDtypesOf(const frameworks::Precision &p, bool upcastFrozen);

/// frameworks::fusedLossChunks of the model's head; 1 where no call ends in the
/// loss of one.
int64_t fusedLossChunks(const StepModel &model);

struct EvaluateOptions {
  bool detail = false; // fills the lists
  /// Runs repeated layers one by one; the result is the same.
  bool expanded = false;
  /// The rank with the smallest shards instead of the first.
  bool lastRank = false;
};

class StageRecording; // StageRun.h

/// Evaluates candidates of one model on one target; reusable and cheap to call
/// (no allocation of its own after the first calls).
class StepEvaluator {
public:
  StepEvaluator(const StepModel &model, const Target &target);
  ~StepEvaluator();
  /// `detail` fills the lists. The candidate must pass verifyCandidate.
  StepPrediction evaluate(const Candidate &candidate, bool detail = false) {
    EvaluateOptions options;
    options.detail = detail;
    return evaluate(candidate, options);
  }
  StepPrediction evaluate(const Candidate &candidate,
                          const EvaluateOptions &options);

  /// Every tensor of the first `steps` optimizer steps in the order in which
  /// the CPU thread asks for them, for the allocator's replay. Of a step with
  /// more than three micro-batches, three. Nothing for accel-run, which has an
  /// allocator of its own, and without a CUDA device.
  std::optional<replay::Problem> record(const Candidate &candidate, int steps,
                                        bool lastRank = false);

  /// The same, a step at a time: whoever replays them stops where nothing
  /// changes any more. One at a time, and nothing is evaluated meanwhile.
  class Recording {
  public:
    Recording(StepEvaluator &evaluator, const Candidate &candidate,
              bool lastRank);
    ~Recording();
    /// One more step. False where it cannot be recorded.
    bool step();
    int steps() const { return made; }
    const replay::Problem &problem() const;
    /// Events that were played take no memory any more.
    void dropEvents();

    Recording(const Recording &) = delete;
    Recording &operator=(const Recording &) = delete;

  private:
    struct Run;
    // Null, both: nothing can be recorded.
    std::unique_ptr<Run> run;
    std::unique_ptr<StageRecording> stage;
    int made = 0;
  };

  StepEvaluator(const StepEvaluator &) = delete;
  StepEvaluator &operator=(const StepEvaluator &) = delete;

private:
  struct State;
  State *state;
};

/// The allocator of one rank, by replay.
struct ReservedReplay {
  int64_t reservedBytes = 0;  // segments at their peak, on a device without end
  int64_t allocatedBytes = 0; // tensors at theirs
  int steps = 0;              // until the segments stopped growing
  /// On a device of the capacity, idle segments go back to it when it is full:
  /// whether that is enough, and how many times a step.
  bool survives = true;
  int64_t retries = 0;
};

/// Replays steps until the segments stop growing, three to six of them.
/// `capacityBytes`: what the device has for segments, 0: no end.
std::optional<ReservedReplay> replayReserved(StepEvaluator &evaluator,
                                             const Candidate &candidate,
                                             replay::AllocatorRules rules,
                                             int64_t capacityBytes = 0,
                                             bool lastRank = false);

/// Lets a replay raise the estimate: reservedBytes, deviceBytes.
/// `budgetBytes` is what the rank may use of the device, with `contextBytes` of
/// other things; 0: no end. `onDevice`: a job that the replay survives in the
/// budget, returning idle segments, is counted as taking no more than that, and
/// how often it returns them is counted. Changes nothing where there is no
/// replay.
void replayInto(StepPrediction &prediction, StepEvaluator &evaluator,
                const Candidate &candidate, const replay::AllocatorRules &rules,
                int64_t contextBytes, int64_t budgetBytes,
                bool onDevice = false);

/// What is wrong with a candidate for this model and executor (sizes, ranges,
/// what the executor cannot do), or "". Every solver's answer passes here.
std::string verifyCandidate(const StepModel &model, const Candidate &candidate);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_STEPEVALUATOR_H
