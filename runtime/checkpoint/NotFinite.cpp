//===- NotFinite.cpp - Values that must not be saved ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/NotFinite.h"

#include "runtime/checkpoint/Pieces.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace accel::run {

namespace {

bool areFinite(const std::vector<at::Tensor> &tensors) {
  std::map<std::pair<c10::DeviceType, at::ScalarType>, std::vector<at::Tensor>>
      kinds;
  for (const at::Tensor &tensor : tensors)
    if (tensor.numel() > 0 && at::isFloatingType(tensor.scalar_type()))
      kinds[{tensor.device().type(), tensor.scalar_type()}].push_back(tensor);
  for (const auto &[kind, list] : kinds) {
    // The least and the greatest value: both are NaN where one is.
    const auto count = static_cast<int64_t>(list.size());
    const at::Tensor ends =
        at::zeros({2 * count}, kind.second).to(list.front().device());
    for (int64_t i = 0; i < count; ++i) {
      at::Tensor least = ends.select(0, 2 * i);
      at::Tensor greatest = ends.select(0, 2 * i + 1);
      at::aminmax_out(least, greatest, list[i]);
    }
    const at::Tensor read = ends.to(c10::kCPU).to(at::kDouble);
    for (int64_t i = 0; i < 2 * count; ++i)
      if (!std::isfinite(read.const_data_ptr<double>()[i]))
        return false;
  }
  return true;
}

/// The parameter of the first of `pieces` that has a value in `flat` that is
/// not finite, or -1: what fills a shard up belongs to none.
int firstIn(const at::Tensor &flat, const std::vector<Piece> &pieces) {
  for (const Piece &piece : pieces)
    if (!areFinite({flat.narrow(0, piece.offset, piece.end - piece.begin)}))
      return piece.parameter;
  return -1;
}

NotFinite findIn(Executor &executor, UnitStorage &unit) {
  const plan::Plan &plan = executor.plan();
  const Mesh &mesh = executor.groups().mesh();
  const std::vector<Piece> pieces = piecesOf(plan, unit, mesh);
  if (const int parameter = firstIn(unit.shard(), pieces); parameter >= 0)
    return {parameter, false};
  for (int i = 0; i < unit.numStates(); ++i) {
    if (areFinite({unit.state(i)}))
      continue;
    const int parameter =
        firstIn(unit.state(i), hasOwnLayout(unit.stateLayouts()[i])
                                   ? piecesOfState(plan, unit, i, mesh)
                                   : pieces);
    if (parameter >= 0)
      return {parameter, true};
  }
  return {};
}

} // namespace

NotFinite findNotFinite(Executor &executor) {
  executor.device().synchronize();
  const plan::Plan &plan = executor.plan();
  const Executor::Holding holding(executor);
  std::vector<int> units; // those of `tensors`
  std::vector<at::Tensor> tensors;
  auto find = [&]() -> NotFinite {
    if (!areFinite(tensors))
      for (int unit : units)
        if (const NotFinite found = findIn(executor, executor.unit(unit));
            found.parameter >= 0)
          return found;
    units.clear();
    tensors.clear();
    return {};
  };
  for (int u = 0; u < static_cast<int>(plan.units.size()); ++u) {
    if (!executor.holds(u) || !plan.units[u].trainable)
      continue;
    executor.hold(u, /*changes=*/false);
    UnitStorage &unit = executor.unit(u);
    units.push_back(u);
    tensors.push_back(unit.shard());
    for (int i = 0; i < unit.numStates(); ++i)
      tensors.push_back(unit.state(i));
    // On a drive one unit is there at a time.
    if (executor.diskStates())
      if (const NotFinite found = find(); found.parameter >= 0)
        return found;
  }
  return find();
}

} // namespace accel::run
