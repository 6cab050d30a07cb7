//===- Groups.cpp - Process groups over mesh axes -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Groups.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace accel::run {

static bool isSet(const char *variable) {
  const char *text = std::getenv(variable);
  return text && std::string(text) == "1";
}

std::vector<std::string> collectiveVariables(const plan::Plan &plan) {
  std::vector<std::string> set;
  if (plan.device == "cuda")
    for (const char *variable : collectiveSwitches)
      if (isSet(variable))
        set.push_back(variable);
  return set;
}

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

std::vector<int> Mesh::members(const std::vector<std::string> &axes) const {
  const std::string own = groupName(axes);
  std::vector<int> result(plan.groupSize(axes));
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    const Mesh other(plan, rank);
    if (other.groupName(axes) == own)
      result[other.position(axes)] = rank;
  }
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

bool Mesh::speaksForStage() const {
  std::vector<std::string> others;
  for (const plan::Axis &axis : plan.axes)
    if (axis.name != plan::pipelineAxis)
      others.push_back(axis.name);
  return position(others) == 0;
}

Groups::Groups(const plan::Plan &plan) : plan(plan), place(plan, 0) {}

Groups::Groups(const plan::Plan &plan, const Environment &environment,
               const Rendezvous &rendezvous)
    : plan(plan), place(plan, environment.rank), rendezvous(&rendezvous),
      localOnly(environment.localOnly) {}

Groups::~Groups() = default;

/// NCCL holds memory of the device for each communicator. Those of one set of
/// ranks may be one: ranks start its collectives in the same order, and NCCL
/// runs them one after the other whatever streams they are on.
static std::string communicatorOf(const plan::Plan &plan,
                                  const std::string &purpose) {
  const bool isGather =
      purpose == "gather" && plan.device == "cuda" && isSet(oneCommunicator);
  return isGather ? "reduce" : purpose;
}

Communicator *Groups::over(const std::vector<std::string> &axes,
                           const std::string &use) {
  if (plan.groupSize(axes) == 1 &&
      !(plan.device == "cuda" && isSet(selfGroups)))
    return nullptr;
  const std::string name = place.groupName(axes);
  const std::string purpose = communicatorOf(plan, use);
  auto found = groups.find({name, purpose});
  return found == groups.end() ? connected(name, purpose, place.members(axes))
                               : found->second.get();
}

Communicator *Groups::among(const std::vector<int64_t> &stages,
                            const std::vector<std::string> &axes,
                            const std::string &purpose) {
  std::string name = place.groupName(axes);
  for (int64_t stage : stages)
    name += (stage == stages.front() ? " of " : "+") + std::to_string(stage);
  auto found = groups.find({name, purpose});
  if (found != groups.end())
    return found->second.get();
  std::vector<int> members = place.members(axes);
  std::erase_if(members, [&](int rank) {
    return std::find(stages.begin(), stages.end(),
                     Mesh(plan, rank).position({plan::pipelineAxis})) ==
           stages.end();
  });
  return connected(name, purpose, std::move(members));
}

Communicator *Groups::connected(const std::string &name,
                                const std::string &purpose,
                                std::vector<int> members) {
  const BackendKind kind = plan.device != "cuda"    ? BackendKind::Gloo
                           : isSet(hostCollectives) ? BackendKind::Staged
                                                    : BackendKind::Nccl;
  if (!rendezvous && !alone)
    alone = c10::make_intrusive<c10d::HashStore>();
  const auto own = std::find(members.begin(), members.end(), rank());
  const int position = static_cast<int>(own - members.begin());
  return (groups[{name, purpose}] = connect(
              kind, rendezvous ? rendezvous->store() : alone,
              {purpose + "/" + name, position, std::move(members)}, localOnly))
      .get();
}

Communicator *Groups::world() {
  if (size() == 1)
    return nullptr;
  if (!everyone) {
    GroupDescription all{"world", rank(), std::vector<int>(size())};
    std::iota(all.members.begin(), all.members.end(), 0);
    // Numbers of the host; by NCCL they wait for what the device was given.
    const bool byDevice =
        plan.device == "cuda" && (!hasGloo() || isSet(withoutGloo));
    everyone = connect(byDevice ? BackendKind::Lifted : BackendKind::Gloo,
                       rendezvous->store(), all, localOnly);
  }
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

void Groups::combine(std::vector<double> &sums, std::vector<double> &maxima) {
  Communicator *all = world();
  if (!all)
    return;
  auto reduce = [&](std::vector<double> &values, bool max) {
    if (values.empty())
      return;
    at::Tensor tensor =
        at::from_blob(values.data(), {static_cast<int64_t>(values.size())},
                      at::TensorOptions(at::ScalarType::Double));
    all->allReduce(tensor, max).wait();
  };
  reduce(sums, false);
  reduce(maxima, true);
}

int Groups::firstFailure(bool ok) {
  std::vector<double> all = gather({ok ? 1.0 : 0.0});
  auto found = std::find(all.begin(), all.end(), 0.0);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

} // namespace accel::run
