//===- Groups.cpp - Process groups over mesh axes -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Groups.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

namespace accel::run {

Mesh::Mesh(const plan::Plan &plan, int rank)
    : plan(plan), ownRank(rank), coordinates(plan.axes.size()) {
  int64_t rest = rank;
  for (size_t i = plan.axes.size(); i-- > 0;) {
    coordinates[i] = rest % plan.axes[i].size;
    rest /= plan.axes[i].size;
  }
}

int Mesh::position(const std::vector<std::string> &axes) const {
  int64_t result = 0;
  for (size_t i = 0; i < plan.axes.size(); ++i)
    if (std::find(axes.begin(), axes.end(), plan.axes[i].name) != axes.end())
      result = result * plan.axes[i].size + coordinates[i];
  return result;
}

std::string Mesh::groupName(const std::vector<std::string> &axes) const {
  std::string name;
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    const bool inside =
        std::find(axes.begin(), axes.end(), plan.axes[i].name) != axes.end();
    name += (i ? "," : "") + plan.axes[i].name +
            (inside ? "" : "=" + std::to_string(coordinates[i]));
  }
  return name;
}

Groups::Groups(const plan::Plan &plan) : plan(plan), place(plan, 0) {}

Groups::Groups(const plan::Plan &plan, const Environment &environment,
               const Rendezvous &rendezvous)
    : plan(plan), place(plan, environment.rank), rendezvous(&rendezvous),
      localOnly(environment.localOnly) {}

Communicator *Groups::over(const std::vector<std::string> &axes,
                           const std::string &purpose) {
  const int64_t size = plan.groupSize(axes);
  if (size == 1)
    return nullptr;
  auto key = std::make_pair(place.groupName(axes), purpose);
  auto found = groups.find(key);
  if (found != groups.end())
    return found->second.get();
  const BackendKind kind =
      plan.device == "cuda" ? BackendKind::Nccl : BackendKind::Gloo;
  auto group = connect(kind, rendezvous->store(), purpose + "/" + key.first,
                       place.position(axes), size, localOnly);
  return (groups[key] = std::move(group)).get();
}

Communicator *Groups::world() {
  if (size() == 1)
    return nullptr;
  if (!everyone)
    everyone = connect(BackendKind::Gloo, rendezvous->store(), "world", rank(),
                       size(), localOnly);
  return everyone.get();
}

void Groups::barrier() {
  if (Communicator *all = world())
    all->barrier();
}

std::vector<double> Groups::gather(const std::vector<double> &values) {
  Communicator *all = world();
  if (!all)
    return values;
  const int64_t n = values.size();
  std::vector<double> result(n * size());
  std::copy(values.begin(), values.end(), result.begin() + n * rank());
  auto options = at::TensorOptions(at::ScalarType::Double);
  at::Tensor output = at::from_blob(result.data(), {n * size()}, options);
  at::Tensor input = at::from_blob(result.data() + n * rank(), {n}, options);
  all->allGather(output, input).wait();
  return result;
}

int Groups::firstFailure(bool ok) {
  std::vector<double> all = gather({ok ? 1.0 : 0.0});
  auto found = std::find(all.begin(), all.end(), 0.0);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

} // namespace accel::run
