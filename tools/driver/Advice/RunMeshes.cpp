//===- RunMeshes.cpp - Meshes that accel-run trains on --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Advice/RunMeshes.h"

#include "passes/FrameworkSteps/HostRoom.h"
#include "tools/driver/Text/Progress.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace accel {
namespace {

/// As a job's `mesh:` has them, outermost first; dp_shard with the ranks of ep.
constexpr std::array axes = {"pp", "dp_replicate", "dp_shard", "cp",
                             "sp", "tp",           "ep"};
constexpr size_t shardAt = 2, contextAt = 3, headsAt = 4, tensorAt = 5,
                 expertsAt = 6;
using Sizes = std::array<int64_t, axes.size()>;

/// A plan of accel-run takes tens of milliseconds.
constexpr size_t plannedAtMost = 64;

Sizes sizesOf(const plan::Mesh &mesh) {
  Sizes sizes;
  for (size_t a = 0; a < axes.size(); ++a)
    sizes[a] = mesh.size(axes[a]);
  sizes[shardAt] *= sizes[expertsAt];
  return sizes;
}

/// Ranks that do not have samples of their own.
int64_t sharing(const Sizes &sizes) {
  return sizes[0] * sizes[contextAt] * sizes[headsAt] * sizes[tensorAt];
}

class Meshes {
public:
  Meshes(const AdviceInputs &in, const Candidate &base)
      : in(in), job(in.inputs.job), own(sizesOf(base.mesh)),
        ranks(base.mesh.ranks()), ranksPerNode(base.ranksPerNode),
        microBatches(base.accumulation * ranks / sharing(own)) {}

  /// Those in which fewest ranks share a sample first, then with most shards.
  std::vector<Sizes> all() {
    Sizes sizes;
    sizes.fill(1);
    choose(sizes, 0, ranks);
    std::sort(found.begin(), found.end(), [](const Sizes &a, const Sizes &b) {
      auto key = [](const Sizes &s) {
        return std::tuple(sharing(s), s[expertsAt], -s[shardAt]);
      };
      return std::tuple(key(a), a) < std::tuple(key(b), b);
    });
    return found;
  }

  tune::ConfigEdit edit(const Sizes &sizes) const {
    tune::ConfigEdit edit;
    for (size_t a = 0; a < axes.size(); ++a)
      if (sizes[a] > 1 || own[a] > 1)
        edit.yaml.push_back({std::string("mesh.") + axes[a],
                             std::to_string(sizes[a]), job.file});
    const std::string steps = std::to_string(accumulationOf(sizes));
    if (accumulationOf(sizes) == accumulationOf(own))
      return edit;
    if (in.options.accumulation)
      edit.flags = {{"--grad-accum", steps}};
    else
      edit.yaml.push_back({"gradient_accumulation_steps", steps, job.file});
    return edit;
  }

  int64_t accumulationOf(const Sizes &sizes) const {
    return microBatches * sharing(sizes) / ranks;
  }

private:
  /// The rest are shards.
  void choose(Sizes &sizes, size_t axis, int64_t rest) {
    if (axis == shardAt)
      return choose(sizes, axis + 1, rest);
    if (axis == expertsAt) {
      sizes[shardAt] = rest;
      for (int64_t experts = 1; experts <= rest; ++experts)
        if (rest % experts == 0)
          take(sizes, experts);
      sizes[shardAt] = 1;
      return;
    }
    // Tensor-parallel ranks wait for each other in each layer.
    const int64_t most =
        axis == tensorAt ? std::min(rest, std::max<int64_t>(1, ranksPerNode))
        : axis == headsAt && sizes[contextAt] > 1 ? 1
                                                  : rest;
    for (int64_t size = 1; size <= most; ++size)
      if (rest % size == 0) {
        sizes[axis] = size;
        choose(sizes, axis + 1, rest / size);
      }
    sizes[axis] = 1;
  }

  void take(Sizes sizes, int64_t experts) {
    sizes[expertsAt] = experts;
    if (sizes != own && microBatches * sharing(sizes) % ranks == 0)
      found.push_back(sizes);
  }

  const AdviceInputs &in;
  const JobConfig &job;
  const Sizes own;
  const int64_t ranks, ranksPerNode;
  const int64_t microBatches; // of a step, of all ranks
  std::vector<Sizes> found;
};

std::string textOf(const Sizes &sizes) {
  std::string text;
  for (size_t a = 0; a < axes.size(); ++a)
    if (sizes[a] > 1)
      text += (text.empty() ? "" : ", ") + std::string(axes[a]) + " " +
              std::to_string(sizes[a]);
  return text.empty() ? "one rank" : text;
}

} // namespace

bool planRunMeshes(const AdviceInputs &in, bool all) {
  const JobConfig &job = in.inputs.job;
  // Sizes of parallelism_config are said there, and --global-batch follows
  // neither of both.
  return in.options.tune && in.target && job.isJob &&
         in.executor == FrameworkKind::AccelRun && !in.options.globalBatch &&
         (job.ownMesh ? all : !job.accelerate.mesh.written());
}

RunMeshes runMeshes(const AdviceInputs &in, const Candidate &base,
                    const StepPrediction &configured, int64_t budgetBytes) {
  Meshes meshes(in, base);
  std::vector<Sizes> all = meshes.all();
  RunMeshes result;
  result.meshes = static_cast<int64_t>(all.size());
  if (all.size() > plannedAtMost)
    all.resize(plannedAtMost);
  result.tried = static_cast<int64_t>(all.size());
  const Sizes own = sizesOf(base.mesh);
  auto add = [&](const Sizes &sizes, const StepPrediction &predicted) {
    RunMesh mesh;
    mesh.sizes = textOf(sizes);
    mesh.accumulation = meshes.accumulationOf(sizes);
    mesh.predicted = predicted;
    mesh.fits =
        predicted.deviceBytes <= budgetBytes &&
        hostHolds(in.device, FrameworkKind::AccelRun, predicted.hostBytes);
    if (sizes != own)
      mesh.edit = meshes.edit(sizes);
    result.planned.push_back(std::move(mesh));
  };
  add(own, configured);
  Progress progress("meshes");
  for (size_t i = 0; i < all.size(); ++i) {
    progress.show(static_cast<int64_t>(i), static_cast<int64_t>(all.size()));
    if (const auto predicted = in.replan({meshes.edit(all[i])}).front())
      add(all[i], *predicted);
    else
      ++result.refused;
  }
  std::stable_sort(
      result.planned.begin(), result.planned.end(),
      [](const RunMesh &a, const RunMesh &b) {
        if (a.fits != b.fits)
          return a.fits;
        return a.fits ? a.predicted.stepSeconds < b.predicted.stepSeconds
                      : a.predicted.deviceBytes < b.predicted.deviceBytes;
      });
  return result;
}

} // namespace accel
