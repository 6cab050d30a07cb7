//===- StepLayout.h - What a candidate makes of a model ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Sizes and orders that follow from a model and a candidate and that all
// executor models need: the bytes of each unit in its several forms, blocks of
// calls between unit boundaries, where values are freed, and the picoseconds
// of collectives and copies. Reused from one candidate to the next.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_STEPLAYOUT_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_STEPLAYOUT_H

#include "passes/Cost/CollectiveCost.h"
#include "passes/FrameworkSteps/Engine.h"
#include "passes/FrameworkSteps/ParameterDtypes.h"
#include "runtime/plan/Optimizers.h"

namespace accel {

/// Bytes of one unit on one rank of the class at hand, rounded as the
/// allocator rounds them.
struct UnitSizes {
  int64_t numel = 0;       // of all parameters, as they are stored
  int64_t ranks = 1;       // over which they are sharded
  bool apart = false;      // StepLayout::isApart
  int64_t paddedNumel = 0; // of all ranks together, chunks padded
  int64_t trainablePadded = 0;
  int64_t shardStored = 0;   // parameters as kept, each a tensor
  int64_t trainedStored = 0; // those of them that the optimizer updates
  int64_t stateBytes = 0;    // of the optimizer, all states but paged ones
  int64_t pagedBytes = 0;    // plan::UpdateHabits::paged
  int64_t codedStates = 0;   // of `stateBytes`: elements as 8-bit codes
  int64_t updates = 0;       // parameters that the optimizer updates
  int64_t trainedBytes = 0;  // gradients of the shard, each a tensor
  int64_t cast = 0;          // the shard in the gathered dtype, one tensor
  int64_t gatherOutput = 0;  // of the collective, one tensor
  int64_t unsharded = 0;     // parameters as computed with, each a tensor
  int64_t stays = 0;         // of them: StepParameter::staysGathered
  int64_t gradients = 0;     // fresh from autograd, each a tensor
  int64_t heldGradients = 0; // unsharded, accumulated between micro-batches
  int64_t reduceInput = 0;   // one tensor
  int64_t reduceOutput = 0;  // one tensor
  int64_t shardGradient = 0; // cast for the optimizer; 0 where it is the above
  int firstCall = -1, lastCall = -1;
  bool operator==(const UnitSizes &) const = default;
  /// `gatherOutput` without what has small collectives of its own.
  int64_t ownOutput() const { return gatherOutput - stays; }
  /// Equal but for the calls.
  bool sameSizes(const UnitSizes &other) const {
    return numel == other.numel && ranks == other.ranks &&
           apart == other.apart && paddedNumel == other.paddedNumel &&
           trainablePadded == other.trainablePadded &&
           shardStored == other.shardStored &&
           trainedStored == other.trainedStored &&
           stateBytes == other.stateBytes && pagedBytes == other.pagedBytes &&
           codedStates == other.codedStates && updates == other.updates &&
           trainedBytes == other.trainedBytes && cast == other.cast &&
           gatherOutput == other.gatherOutput && unsharded == other.unsharded &&
           stays == other.stays && gradients == other.gradients &&
           heldGradients == other.heldGradients &&
           reduceInput == other.reduceInput &&
           reduceOutput == other.reduceOutput &&
           shardGradient == other.shardGradient;
  }
  /// Bytes and elements; calls stay.
  UnitSizes &operator+=(const UnitSizes &other);
};

/// The tensors of a unit, where a run is recorded; they sum to UnitSizes.
struct UnitParts {
  std::vector<int64_t> stored, states, unsharded;
  std::vector<int64_t> stays; // unsharded, UnitSizes::stays
  std::vector<int> trained;   // StepModel::parameters with gradients
  std::vector<int64_t> held;  // of these: unsharded, between micro-batches
  std::vector<int64_t> own;   // of these: the gradient that the rank updates by
};

/// Picoseconds of what is done with one unit.
struct UnitTimes {
  Picoseconds copyIn = 0, gather = 0, copyOut = 0;
  Picoseconds reduceCopy = 0, reduce = 0, allReduce = 0, castGradient = 0;
  Picoseconds add = 0; // to gradients that are there
  Picoseconds hostIn = 0, hostOut = 0;
};

/// Calls between two unit boundaries.
struct Block {
  int begin = 0, end = 0; // StepModel::calls
  int unit = -1;          // the one that is open for just these calls, or none
  /// Blocks from here on, itself included, that are like this one.
  int alike = 1;
};

/// Picoseconds and bytes of one call.
struct CallCost {
  Picoseconds forward = 0, backward = 0, recompute = 0;
  /// Of the forward and of the backward: what ranks exchange is waited for.
  /// What is recomputed is without it.
  Picoseconds forwardExchange = 0, backwardExchange = 0;
  int64_t freshGradients = 0; // of parameters that nobody gave one before
  /// Of parameters that a later call gave one: the engine of autograd makes a
  /// tensor of the sum, but where autocast's cast made the gradient.
  int64_t summedGradients = 0;
  /// Where gradients of earlier micro-batches are there: of parameters whose
  /// gradient waits from this call on for that of an earlier call, and of those
  /// for which this call is the earlier one.
  int64_t waitingGradients = 0, awaitedGradients = 0;
};

/// What a CUDA graph copies into its pool before its kernels run, in bytes,
/// because the addresses are others in each step.
struct GraphCopies {
  int64_t held = 0;     // inputs of the forward that the backward reads
  int64_t passing = 0;  // the other inputs
  int64_t tangents = 0; // gradients of outputs
  bool operator==(const GraphCopies &) const = default;
};

enum class RankClass { First, Last };

class StepLayout {
public:
  StepLayout(const StepModel &model, const Target &target)
      : model(model), target(target) {
    measureModel();
  }
  /// Fills everything below for `candidate`.
  void prepare(const Candidate &candidate, RankClass rankClass);

  /// Fills `parts`; after prepare.
  void listParts(RankClass rankClass);

  const StepModel &model;
  const Target &target;
  const Candidate *candidate = nullptr;

  std::vector<UnitSizes> units;
  std::vector<UnitTimes> times;
  std::vector<UnitParts> parts; // by unit; filled by listParts
  std::vector<int> gatherOrder; // units by first call, the root first
  std::vector<Block> blocks;
  std::vector<bool> longLived; // by unit: open over several blocks
  std::vector<CallCost> calls;
  /// By call: the units that open before and close after it.
  std::vector<std::vector<int>> opens, closes;

  const SegmentKind &kind(int call) const {
    return model.kinds[model.calls[call].kind];
  }
  const SegmentVariant &variant(int call) const {
    return kind(call).variants[candidate->variants[call]];
  }

  /// By value: the last call that reads it in the forward, the first call
  /// whose backward reads it (or -1), and the last call that gives it a
  /// gradient (or -1).
  std::vector<int> lastReader, savedUntil, firstGradient;

  /// Whether the kernels of a call are in a CUDA graph: of what is compiled,
  /// and in a model that is compiled as a whole of what has no backward.
  bool isReplayed(int call) const {
    if (!candidate->replaysGraphs)
      return false;
    const bool trained = kind(call).parameterGradientBytes > 0 ||
                         kind(call).inputGradientBytes > 0;
    return variant(call).compiledForwardKernels > 0 ||
           (candidate->compiledWhole && !trained);
  }
  /// By call, of those that are replayed.
  std::vector<GraphCopies> graphCopies;
  /// By unit: of UnitSizes::gradients, what graphs make.
  std::vector<int64_t> graphGradients;

  /// By parameter: the calls that read it first and last, or -1.
  std::vector<int> firstUser, lastUser;
  std::vector<int> modules; // by call: those that have parameters of their own

  ParameterDtypes dtypes() const { return ParameterDtypes(*candidate); }
  /// The sum of two gradients of the parameter is a tensor of its own
  /// (torch/csrc/autograd/input_buffer.cpp).
  bool sumsApart(int parameter) const;
  /// A loss in chunks calls matmuls by hand, so that autocast copies the head's
  /// weight for each and keeps none.
  int64_t headCastBytes(int call) const;
  /// Several calls give it a gradient, and autograd hands on their sum.
  bool waits(int parameter) const;
  /// The gradient that autograd leaves of a parameter.
  int64_t freshGradientBytes(int parameter) const {
    return freshGradientOfKind[kindOf[parameter]];
  }

  /// The module that has all parameters of a unit.
  std::string moduleOf(int unit) const;

  int64_t round(int64_t bytes) const {
    return (bytes + rounding - 1) / rounding * rounding;
  }
  /// Who gathers and reduces units, and who all-reduces their gradients.
  plan::AxisGroup shards, replicas;
  /// Who gathers and reduces the experts that ranks share: those that have the
  /// same (FSDP2 on transformers' efsdp).
  plan::AxisGroup sameExperts;
  /// Experts that ranks share are, under FSDP2, a module of their own inside of
  /// the layer, with owners of their own.
  bool isApart(const StepParameter &parameter) const {
    return candidate->executor == FrameworkKind::Fsdp2 && parameter.expert;
  }
  static bool isApart(const UnitSizes &unit) { return unit.apart; }
  /// The unit's module lies in that of another one, and ends its forward
  /// first; after `opens` are known.
  bool isInner(int u) const;
  /// A call reads it; others get no gradient (a tower without images).
  bool isRead(int parameter) const { return firstUser[parameter] >= 0; }
  /// Who gathers and reduces this parameter.
  const plan::AxisGroup &shardsOf(const StepParameter &parameter) const {
    return isApart(parameter) ? sameExperts : shards;
  }
  /// A kernel that moves `bytes`.
  Picoseconds copyTime(double bytes) const;
  /// A copy over the host's link.
  Picoseconds hostTime(double bytes) const;
  /// The optimizer on the device, over these bytes of parameters, gradients
  /// and states.
  Picoseconds updateTime(double parameters, double gradients,
                         double states) const;
  /// What decoding and encoding that many elements of states takes.
  Picoseconds codingTime(int64_t codedStates) const;

  /// Lists of temporaries of the update, each as large as all gradients that
  /// this rank updates by.
  double updateLists() const {
    return candidate->update->cost(candidate->optimizer).lists;
  }

  int64_t rounding = 512;
  /// Of the update, over all units: the most that one parameter takes beside
  /// lists of all, and FLOPs of matmuls in bf16.
  int64_t updateTemporary = 0;
  double updateFlops = 0;

private:
  void measureModel();
  void measureUnits(RankClass rankClass);
  void measureKinds(RankClass rankClass);
  /// It gets a gradient. Executors that keep each parameter apart give none to
  /// what no call reads (a tower without images), and torch's optimizers skip
  /// it; FSDP1's flat parameters and ZeRO's partitions have states for all that
  /// they hold.
  bool isUpdated(int parameter) const;
  void addParameter(UnitSizes &unit, int parameter, RankClass rankClass) const;
  const UnitSizes &sizesOf(int parameter) const {
    return sizesOfKind[kindOf[parameter]];
  }
  /// A parameter as the optimizer sees it on this rank: rows of its own shape,
  /// or one dimension where the framework's shards are flat.
  struct Updated {
    const std::vector<int64_t> &shape;
    int64_t rows, numel;
  };
  /// Of one state of a parameter; 0 where it is paged, whose bytes are added to
  /// `paged` if that is asked for.
  int64_t stateBytes(const plan::StateRule &state, const Updated &own,
                     const StepParameter &parameter,
                     int64_t *paged = nullptr) const;
  Updated updated(const StepParameter &parameter, RankClass rankClass) const;
  void measureUpdate(RankClass rankClass);
  void measureTimes();
  /// What wrappers and checkpoints take of the CPU beside the operators of a
  /// call, in operators.
  struct HostOps {
    double forward = 0, backward = 0;
    bool operator==(const HostOps &) const = default;
  };
  double checkpointOps(const SegmentVariant &variant) const;
  std::vector<HostOps> hooksOfWrapper() const; // by call
  void measureGraphs();
  bool movesInput(int call, size_t input) const;
  bool startsGraph(int call) const;
  /// Of a head and loss in parts, forward and backward.
  Picoseconds lossPartsTime(int call) const;
  Picoseconds lossGradientsTime(int call) const;
  /// The largest parameter of a call that ends in the loss; null: it has none.
  const StepParameter *headOf(int call) const;
  UnitTimes timesOf(const UnitSizes &unit) const;
  void findLifetimes();
  void findBlocks();
  bool alike(const Block &a, const Block &b) const;

  /// Parameters that differ only in their names take the same: one of each
  /// kind, the kind of each, and what the candidate makes of a kind.
  std::vector<int> kinds; // the first parameter of each
  std::vector<int> kindOf;
  std::vector<UnitSizes> sizesOfKind;
  std::vector<int64_t> freshGradientOfKind;
  /// What `units` was made of.
  struct Measured {
    std::vector<int> unitOf;
    int rootUnit = -1;
    int64_t rounding = 0;
    std::vector<UnitSizes> sizesOfKind;
  } measured;
};

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_STEPLAYOUT_H
