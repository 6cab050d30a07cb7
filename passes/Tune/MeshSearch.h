//===- MeshSearch.h - Which ranks share what --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The search over whole meshes: tensor, context and pipeline parallelism, and
// what is left for data parallelism. Each mesh has functions of its own, so
// that an evaluation costs milliseconds, not microseconds: a lower bound of its
// bytes and seconds says first whether it is worth one. MeshProblem is the
// problem, `searchMeshes` the solver, and `wrongWith` judges what is a mesh of
// the problem, whoever made it. No MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TUNE_MESHSEARCH_H
#define ACCEL_PASSES_TUNE_MESHSEARCH_H

#include "passes/Tune/Search.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace accel::tune {

/// Sizes of a mesh; data-parallel ranks are the rest.
struct MeshSizes {
  int64_t tensor = 1, context = 1, stages = 1;
  /// Between tensor-parallel layers each rank has a part of the tokens.
  bool sequence = false;
  auto operator<=>(const MeshSizes &) const = default;
};

/// What one micro-batch takes of a layer on one rank that shares with nobody,
/// at the best that the device attains: for lower bounds.
struct LayerCost {
  double elements = 0;        // of weights that tensor-parallel ranks share
  double bytesPerElement = 0; // of them, that each copy has
  double sharedBytesPerElement = 0; // that data-parallel ranks share
  double inputBytes = 0;            // what the layer reads of the one before
  double keyBytes = 0;              // keys and values of attention
  double seconds = 0;               // of forward and backward, but attention
  /// Of what is saved, inputs of layers at least stay on the device.
  bool inputsStay = true;
};

/// A way to compute a layer on one rank of a mesh.
struct LayerWay {
  double savedBytes = 0; // of a micro-batch, on the device, beside the inputs
  double seconds = 0;    // forward and backward
};
/// Least seconds of a layer where the layers of a stage, some one way and some
/// another, save no more than `bytes` each in the mean: on the lower convex
/// hull of the ways. Those of the way that saves least where none is so small.
double secondsWithin(const std::vector<LayerWay> &ways, double bytes);

/// Seconds of a layer's attention, or of what is exchanged for it.
struct AttentionSeconds {
  double forward = 0, backward = 0;
};

struct MeshProblem {
  int64_t ranks = 1, ranksPerNode = 1;
  int64_t layers = 1, heads = 1, tokens = 1; // of a sequence
  /// Micro-batches of a step, of all ranks: those of a rank follow.
  int64_t microBatches = 1;
  /// Sizes that are kept, and the micro-batches of a rank.
  std::optional<int64_t> tensor, context, stages, accumulation;
  std::optional<bool> sequence;
  /// Layers of the last stage, where they are kept; else what equal numbers in
  /// the other stages leave.
  std::optional<int64_t> lastLayers;
  /// What is said of sequence parallelism where it makes no difference; else it
  /// is on unless it is kept off.
  bool idleSequence = false;
  LayerCost layer;
  int64_t fixedBytes = 0; // of every rank: the device's context
  /// Seconds in which so many ranks, of which so many are on a node, gather a
  /// buffer of these bytes; and in which they add one up, whichever way.
  using Exchange =
      std::function<double(int64_t ranks, int64_t inNode, double bytes)>;
  Exchange gather, addUp;
  /// In which so many ranks each pass a buffer to another, where
  /// context-parallel ranks have keys and values that way, beside attention, of
  /// which an exchange hides at most behind `overlap` of the seconds. Nothing:
  /// they are gathered.
  Exchange pass;
  double overlap = 1;
  /// Of a micro-batch's attention in a layer, on one rank that shares with
  /// nobody but computes no more keys at once than one of so many
  /// context-parallel ranks has.
  std::function<AttentionSeconds(int64_t context)> attention;
  /// Least seconds, forward and backward, of what is launched for the keys of
  /// one of the context-parallel ranks, beside the attention itself.
  double blockSeconds = 0;

  int64_t copies(const MeshSizes &mesh) const {
    return ranks / (mesh.tensor * mesh.context * mesh.stages);
  }
  int64_t accumulationOf(const MeshSizes &mesh) const {
    return microBatches / copies(mesh);
  }
};

/// Why the sizes are no mesh of the problem, or "".
std::string wrongWith(const MeshProblem &problem, const MeshSizes &mesh);

/// All meshes of the problem.
std::vector<MeshSizes> meshesOf(const MeshProblem &problem);

/// How many layers the last stage has, and each other one, as Megatron-LM
/// divides them.
struct LayersOfStages {
  int64_t last = 0, other = 0;
  int64_t most() const { return std::max(last, other); }
};
/// Nothing where the layers cannot be divided among so many stages.
std::optional<LayersOfStages> layersOfStages(const MeshProblem &problem,
                                             int64_t stages);

/// No setting of the mesh takes less: bytes of the rank that holds most,
/// seconds of a step.
Evaluation lowerBound(const MeshProblem &problem, const MeshSizes &mesh);
/// The same of settings within `budgetBytes`, from the ways to compute a layer
/// on one rank of such a mesh.
Evaluation lowerBound(const MeshProblem &problem, const MeshSizes &mesh,
                      const std::vector<LayerWay> &ways, int64_t budgetBytes);

/// The best settings of one mesh.
struct MeshVerdict {
  MeshSizes mesh;
  std::optional<Evaluation> best; // fastest within the budget
  Evaluation smallest;            // least bytes
};
using EvaluateMesh = std::function<MeshVerdict(const MeshSizes &)>;
/// Ways to compute a layer on one rank; what stages have no part in, so that it
/// is asked once for all of them. Nothing where there is no such mesh.
/// Of layers that differ, the ways of all.
using LayerWays = std::function<std::vector<LayerWay>(const MeshSizes &)>;

struct MeshSearchResult {
  /// Meshes with a setting that fits, fastest first: the first is exact, and
  /// the second where it is at most a quarter slower; what follows was met on
  /// the way.
  std::vector<MeshVerdict> fitting;
  /// Of those judged that do not fit, the one that lacks least.
  std::optional<MeshVerdict> lacking;
  /// The first by its bound of those whose tensor-parallel ranks are on several
  /// nodes, where those of the best are on one; or the other way round.
  std::optional<MeshVerdict> otherSide;
  int64_t meshes = 0, evaluated = 0;
};

/// The fastest mesh of the problem that fits `budgetBytes`, and the next: the
/// one of the least bound is looked at closer, first by the functions that it
/// has, then as a whole, until no bound is below what was found. `progress` is
/// told what is done of what may be left to do.
MeshSearchResult
searchMeshes(const MeshProblem &problem, int64_t budgetBytes,
             const LayerWays &layerWays, const EvaluateMesh &evaluate,
             const std::function<void(int64_t, int64_t)> &progress = {});

} // namespace accel::tune

#endif // ACCEL_PASSES_TUNE_MESHSEARCH_H
