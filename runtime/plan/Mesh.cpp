//===- Mesh.cpp - A job's ranks as named axes -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Mesh.h"

#include "runtime/plan/Saturating.h"

#include <algorithm>
#include <limits>

namespace accel::plan {

AxisRole axisRole(std::string_view axis) {
  if (axis == "dp_replicate")
    return AxisRole::Replicate;
  return axis == "dp_shard" || sharesSequences(axis) || axis == expertAxis ||
                 axis == secondaryAxis
             ? AxisRole::Shard
             : AxisRole::Other;
}

bool sharesSamples(std::string_view axis) {
  return sharesSequences(axis) || axisRole(axis) == AxisRole::Other;
}

bool sharesSequences(std::string_view axis) {
  return axis == "cp" || axis == "sp";
}

Mesh Mesh::dataParallel() { return {{{"dp_replicate", 1}, {"dp_shard", 1}}}; }

int64_t Mesh::ranks() const {
  int64_t n = 1;
  for (const Axis &axis : axes)
    n = saturatingMul(n, axis.size);
  return n;
}

int64_t Mesh::ranks(AxisSet set) const {
  int64_t n = 1;
  for (size_t i = 0; i < axes.size(); ++i)
    if (set.contains(i))
      n = saturatingMul(n, axes[i].size);
  return n;
}

int64_t Mesh::ranksPerSample() const {
  int64_t n = 1;
  for (const Axis &axis : axes)
    if (sharesSamples(axis.name))
      n = saturatingMul(n, axis.size);
  return n;
}

int64_t Mesh::ranksPerSequence() const {
  int64_t n = 1;
  for (const Axis &axis : axes)
    if (sharesSequences(axis.name))
      n = saturatingMul(n, axis.size);
  return n;
}

int64_t Mesh::size(std::string_view name) const {
  for (const Axis &axis : axes)
    if (axis.name == name)
      return axis.size;
  return 1;
}

void Mesh::resize(const std::string &name, int64_t size) {
  for (Axis &axis : axes)
    if (axis.name == name) {
      axis.size = size;
      return;
    }
  axes.push_back({name, size});
}

Mesh Mesh::onto(const std::string &name) const {
  Mesh result = *this;
  for (Axis &axis : result.axes)
    axis.size = 1;
  result.resize(name, ranks());
  return result;
}

Mesh Mesh::sharded(int64_t shard) const {
  Mesh result = *this;
  const int64_t data = ranks(AxisRole::Replicate) * ranks(AxisRole::Shard);
  result.resize("dp_replicate", data / std::max<int64_t>(shard, 1));
  const int64_t others = ranksPerSequence() * size(expertAxis);
  result.resize("dp_shard", shard / std::max<int64_t>(others, 1));
  return result;
}

AxisSet Mesh::set(const std::vector<std::string> &wanted) const {
  AxisSet result;
  for (size_t i = 0; i < axes.size(); ++i)
    if (std::find(wanted.begin(), wanted.end(), axes[i].name) != wanted.end())
      result.add(i);
  return result;
}

AxisSet Mesh::set(AxisRole role) const {
  AxisSet result;
  for (size_t i = 0; i < axes.size(); ++i)
    if (axisRole(axes[i].name) == role)
      result.add(i);
  return result;
}

std::vector<std::string> Mesh::names(AxisSet set) const {
  std::vector<std::string> result;
  for (size_t i = 0; i < axes.size(); ++i)
    if (set.contains(i))
      result.push_back(axes[i].name);
  return result;
}

AxisGroup Mesh::group(AxisSet set, int64_t ranksPerNode) const {
  AxisGroup result;
  result.ranks = ranks(set);
  int64_t stride = 1; // between neighbours of an axis
  for (size_t i = axes.size(); i-- > 0;) {
    if (set.contains(i))
      result.inNode *= std::clamp<int64_t>(ranksPerNode / stride, 1,
                                           std::max<int64_t>(1, axes[i].size));
    stride = saturatingMul(stride, std::max<int64_t>(1, axes[i].size));
  }
  return result;
}

} // namespace accel::plan
