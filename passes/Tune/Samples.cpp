//===- Samples.cpp - Ranks and micro-batches of a step's samples ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/Space.h"

#include <algorithm>
#include <cmath>

namespace accel::tune {

static std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d * d <= n; ++d)
    if (n % d == 0) {
      low.push_back(d);
      if (d != n / d)
        high.push_back(n / d);
    }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

MeshOption::MeshOption(plan::Mesh grid, int64_t accumulation, bool sequence)
    : mesh(std::move(grid)), accumulation(accumulation), sequence(sequence),
      sharing{mesh.size("tp"), mesh.size("cp"), mesh.size("sp"),
              mesh.size(plan::pipelineAxis)} {}

int Space::functionsOf(const Point &point) const {
  const MeshOption &option = mesh(point);
  if (!option.whole())
    return 0;
  const auto first =
      std::find_if(meshes.begin(), meshes.end(), [&](const MeshOption &other) {
        return other.sharesAs(option);
      });
  return static_cast<int>(first - meshes.begin());
}

int64_t Space::accumulationOf(const Point &point) const {
  const SplitOption &split = splits[point[Knob::Split]];
  if (meshes.empty() || !mesh(point).whole())
    return split.accumulation;
  // Those of the configured micro-batch, which is the first split's.
  return mesh(point).accumulation * splits.front().microBatch /
         split.microBatch;
}

std::vector<SplitOption> splitsOf(SplitOption configured, size_t limit) {
  int64_t samples = configured.microBatch * configured.accumulation;
  std::vector<int64_t> sizes = divisors(samples);
  auto distance = [&](int64_t size) {
    return std::abs(std::log2(static_cast<double>(size) /
                              static_cast<double>(configured.microBatch)));
  };
  std::stable_sort(sizes.begin(), sizes.end(), [&](int64_t a, int64_t b) {
    return distance(a) < distance(b);
  });
  if (sizes.size() > limit)
    sizes.resize(limit);
  std::vector<SplitOption> result;
  for (int64_t size : sizes)
    result.push_back({size, samples / size});
  return result;
}

std::vector<MeshOption> meshesOf(const plan::Mesh &configured,
                                 int64_t ranksPerNode) {
  const int64_t own = configured.ranks(plan::AxisRole::Shard);
  const int64_t ranks = own * configured.ranks(plan::AxisRole::Replicate);
  int64_t node = std::max<int64_t>(1, ranksPerNode);
  std::vector<MeshOption> result = {configured};
  std::vector<int64_t> sizes = divisors(ranks);
  for (size_t i = sizes.size(); i-- > 0;) {
    int64_t shard = sizes[i];
    // A shard group is whole nodes or divides one: others cross nodes for no
    // gain in bytes.
    if (shard > 1 && shard != own &&
        shard % configured.ranksPerSequence() == 0 &&
        (shard % node == 0 || node % shard == 0))
      result.emplace_back(configured.sharded(shard));
  }
  return result;
}

} // namespace accel::tune
