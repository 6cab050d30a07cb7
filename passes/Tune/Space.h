//===- Space.h - What may be chosen, and what is fixed ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The space of the joint search: one knob per subject that can be decided, its
// options, whether it is open and who fixed it otherwise. A Point names one
// option of each knob; `expand` makes the Candidate of it that an executor
// model evaluates. No MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TUNE_SPACE_H
#define ACCEL_PASSES_TUNE_SPACE_H

#include "passes/FrameworkSteps/StepEvaluator.h"

#include <array>
#include <string>
#include <vector>

namespace accel::tune {

enum class Knob {
  Mesh,              // Space::meshes
  Split,             // Space::splits
  Wrap,              // Space::wraps
  Precision,         // Space::precisions
  Reshard,           // layers, from the last, whose parameters stay gathered
  ForwardPrefetch,   // units ahead
  BackwardPrefetch,  // units ahead
  Checkpoint,        // Point::counts
  Accumulation,      // 0: reduce each micro-batch, 1: keep gradients unsharded
  ParameterOffload,  // 0, 1
  OptimizerOffload,  // 0, 1
  ActivationOffload, // layers, from the first, whose saved values go to the
                     // host
  Bucket,            // Space::buckets (DDP)
  ZeroStage,         // Space::zeroStages (DeepSpeed)
  Loss,              // Space::lossChunks
  Optimizer,         // Space::optimizers
  Reductions,        // of a backward, from its first, that it waits for
};
constexpr int numKnobs = 17;
/// "mesh", "micro-batch", "wrap", ...: as decisions and --tune name them.
const char *toString(Knob knob);

/// One option of each knob. Of Checkpoint, `counts` says how many calls of
/// each group use each of its variants, group by group.
struct Point {
  std::array<int, numKnobs> at{};
  std::vector<int> counts;
  int &operator[](Knob knob) { return at[static_cast<int>(knob)]; }
  int operator[](Knob knob) const { return at[static_cast<int>(knob)]; }
  bool operator==(const Point &) const = default;
  auto operator<=>(const Point &) const = default;
};

/// Whether a knob may be turned; `by` says who fixed it, for people ("fsdp.yaml
/// says fsdp_reshard_after_forward: true", "ddp does not shard").
struct KnobState {
  bool open = false;
  std::string by;
  std::string file; // of the line that fixed it; empty: none
  int line = 0, column = 0;
};

/// A mesh, and what goes with it where tensor, context and pipeline parallelism
/// are chosen too (MeshSearch.h).
struct MeshOption {
  MeshOption(plan::Mesh mesh, int64_t accumulation = 0, bool sequence = false);
  plan::Mesh mesh; // not changed later
  /// Micro-batches of a rank, at the samples of a step and the configured
  /// micro-batch; 0: as Space::splits say, and functions are alike in all
  /// meshes.
  int64_t accumulation = 0;
  bool sequence = false; // sequence parallelism
  /// Of the last stage; 0: as many as the others. It follows from the stages.
  int64_t lastLayers = 0;
  bool allowed = true;
  bool whole() const { return accumulation > 0; }
  /// Ranks share functions, sequences and the model alike.
  bool sharesAs(const MeshOption &other) const {
    return sharing == other.sharing && sequence == other.sequence;
  }

private:
  /// Ranks of tp, cp, sp and stages: a search asks for them at every point.
  std::array<int64_t, 4> sharing;
};
/// The same samples a step: microBatch * accumulation is constant.
struct SplitOption {
  int64_t microBatch = 1, accumulation = 1;
};
struct WrapOption {
  std::string name;        // "a layer", "half a layer", "2 layers"
  std::vector<int> unitOf; // by parameter
  int units = 0, root = -1;
  /// By unit: positions in Space::layers of the first and last layer that it
  /// belongs to; {-1, -1} for units of no layer.
  std::vector<std::array<int, 2>> layers;
  /// By unit of no layer: freed after the forward unless every unit is kept.
  std::vector<bool> reshard;
  double perLayer = 1; // layers a unit; 0.5: two units a layer
  bool allowed = true;
};
struct PrecisionOption {
  std::string name; // "bf16, reduced in f32"
  StepDtypes dtypes;
  std::string precision; // of the YAML's mixed_precision; empty: as configured
};

/// Another way to keep and update the states of the configured optimizer.
struct OptimizerOption {
  std::string name; // as TrainingArguments.optim has it; of the first, as told
  UpdateRule update;
  OptimizerKernel kernel = OptimizerKernel::Foreach;
  /// What is not as it was beside bytes and seconds; empty: nothing.
  std::string caution;
  bool allowed = true;
};

/// Calls of one kind, between which variants are shared out. The most
/// recomputed come first in the forward: their larger temporaries then meet
/// the fewest saved values in the backward.
struct LayerGroup {
  int kind = 0;
  std::string name; // of the kind
  std::vector<int> calls;
  std::vector<int> variants; // of the kind, by falling saved bytes
  std::vector<std::string> names;
  std::vector<bool> allowed; // by position in `variants`
  std::vector<bool> solved;  // of these, for a cap in bytes
  int offset = 0;            // of this group in Point::counts
  bool layer = false;
  /// A call has no path, so that only the mode of the whole job is said of it.
  bool unnamed = false;
};

struct Space {
  Candidate base; // as configured: what no knob says
  Point configured;
  std::array<KnobState, numKnobs> knobs;
  std::vector<MeshOption> meshes;
  std::vector<SplitOption> splits;
  std::vector<WrapOption> wraps;
  std::vector<PrecisionOption> precisions;
  std::vector<int64_t> buckets;
  std::vector<int> zeroStages;
  /// Parts in which the loss is computed, as configured first; 0 stands for
  /// fusedLossChunks of the model. Empty: as in `base`.
  std::vector<int64_t> lossChunks;
  /// As configured first; empty: as in `base`.
  std::vector<OptimizerOption> optimizers;
  std::vector<LayerGroup> groups;
  std::vector<int> layers; // StepModel::calls, in order
  int minPrefetch = 0, maxPrefetch = 3;
  int maxReductions = 0; // of a backward
  /// All layers alike: what a YAML can say.
  bool uniformReshard = false, uniformCheckpoint = false;
  /// Saved values go to the host only of layers that are recomputed, all
  /// of them (fsdp_activation_checkpointing_offload).
  bool offloadNeedsFull = true;
  /// A job.yaml, which has keys that an accelerate YAML has not.
  bool isJob = false;

  /// Of accel-run, whose step model depends on it; 1 for others.
  int64_t modelChunks(const Point &point) const {
    return base.executor == FrameworkKind::AccelRun && !lossChunks.empty()
               ? lossChunks[point[Knob::Loss]]
               : 1;
  }

  const KnobState &state(Knob knob) const {
    return knobs[static_cast<int>(knob)];
  }
  KnobState &state(Knob knob) { return knobs[static_cast<int>(knob)]; }
  bool open(Knob knob) const { return state(knob).open; }
  const MeshOption &mesh(const Point &point) const {
    return meshes[point[Knob::Mesh]];
  }
  /// The first mesh whose functions are those of the point's: 0 where all are
  /// alike.
  int functionsOf(const Point &point) const;
  /// The option of the loss at the point where it has functions of its own
  /// (accel-run's parts, Liger Kernel's operators); else 0.
  int functionsOfLoss(const Point &point) const;
  /// Micro-batches of a rank, at the samples of a step.
  int64_t accumulationOf(const Point &point) const;
  /// The values that a knob may have: those of an open one, else the
  /// configured one alone. Not for Checkpoint. Counts of layers are multiples
  /// of what the wrap at `point` gathers together.
  std::vector<int> values(Knob knob, const Point &point) const;
  bool allows(Knob knob, const Point &point) const;
  /// The counts of each variant of a group at `point`.
  int count(const Point &point, int group, int variant) const {
    return point.counts[groups[group].offset + variant];
  }
  /// Of alike layers, the counts that there are: one entry per variant that
  /// every group of layers may have. Other calls are as configured, or, under
  /// accel-run, in what one `activation_checkpointing` means for them.
  std::vector<std::vector<int>> uniformCounts() const;
  /// Why the point is outside the space (ranges, counts, what goes together),
  /// or "".
  std::string problem(const Point &point) const;
  /// The same of the knobs alone, whatever the counts.
  std::string problemBesideCounts(const Point &point) const;
};

/// The parts of a Space that follow from the model: layers, groups with all
/// their variants, and wrap options ("as configured" first, then halves and
/// groups of layers that differ from it). `halves` allows two units a layer.
void addModel(Space &space, const StepModel &model, bool halves,
              bool severalLayers);

/// The Point that the base candidate is, apart from mesh, split and precision
/// (option 0 of each). False where it is outside the space.
bool locate(Space &space, const StepModel &model);

/// The candidate of a point. `model` is that of the point's micro-batch.
Candidate expand(const Space &space, const StepModel &model,
                 const Point &point);

/// `n * m` splits of the samples of a step into micro-batches, from the
/// smallest micro-batch; at most `limit`, the configured one always among them.
std::vector<SplitOption> splitsOf(SplitOption configured, size_t limit);

/// Meshes of `ranks` whose shard axis divides them: powers of the prime
/// factors, widest shard first; the configured one is moved to the front.
std::vector<MeshOption> meshesOf(const plan::Mesh &configured,
                                 int64_t ranksPerNode);

} // namespace accel::tune

#endif // ACCEL_PASSES_TUNE_SPACE_H
