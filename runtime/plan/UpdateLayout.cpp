//===- UpdateLayout.cpp - What an update reads under flat shards ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/UpdateLayout.h"

#include <algorithm>

namespace accel::plan {

namespace {

/// Elements of f32 to which parts are aligned.
constexpr int64_t partElements = alignmentBytes / 4;

int64_t aligned(int64_t numel) {
  return (numel + partElements - 1) / partElements * partElements;
}

} // namespace

int64_t UpdatedParameter::numel() const {
  int64_t n = 1;
  for (int64_t size : shape)
    n *= size;
  return n;
}

UpdateShape updateShape(const Plan &plan, const Unit &unit) {
  UpdateShape shape;
  shape.shard = shardNumel(plan, unit);
  shape.ranks = plan.shardRanks(unit);
  shape.storage = unit.storage;
  for (int index : unit.parameters) {
    const Parameter &p = plan.parameters[index];
    if (p.trainable || !unit.trainable)
      shape.parameters.push_back({ownShape(plan, p), index, p.offset, p.group});
  }
  return shape;
}

std::vector<StateLayout> stateLayouts(const OptimizerRule &rule,
                                      const UpdateShape &shape) {
  std::vector<StateLayout> layouts;
  for (const StateRule &state : rule.states) {
    StateLayout layout;
    layout.rule = state;
    layout.dtype = OptimizerRule::dtypeOf(state, shape.storage);
    int64_t at = 0;
    for (size_t i = 0; i < shape.parameters.size(); ++i) {
      const std::vector<int64_t> &own = shape.parameters[i].shape;
      const int64_t numel =
          OptimizerRule::elements(state, own, own.empty() ? 1 : own.front());
      if (numel == 0)
        continue;
      layout.parts.push_back({static_cast<int>(i), at, numel});
      at += aligned(numel);
    }
    layout.sharded = state.shape == StateShape::Whole &&
                     (state.of == StateOf::All || at > shape.shard);
    layout.elements = layout.sharded ? shape.shard : at;
    if (!layout.parts.empty())
      layouts.push_back(std::move(layout));
  }
  return layouts;
}

std::vector<StateLayout> stateLayouts(const Plan &plan, const Unit &unit) {
  const OptimizerRule rule(plan.job.optimizer);
  if (!rule.description)
    return {};
  return stateLayouts(rule, updateShape(plan, unit));
}

FactoredLayout factoredLayout(const UpdateShape &shape) {
  FactoredLayout layout;
  int64_t largest = 0;
  for (const UpdatedParameter &p : shape.parameters) {
    FactoredLayout::Part &part = layout.parts.emplace_back();
    largest = std::max(largest, p.numel());
    if (p.shape.size() < 2 || p.numel() == 0)
      continue;
    part.columns = p.shape.back();
    part.rows = p.shape[p.shape.size() - 2];
    part.batch = p.numel() / (part.rows * part.columns);
    part.rowSums = layout.sums;
    part.columnSums = part.rowSums + aligned(part.batch * part.rows);
    layout.sums = part.columnSums + aligned(part.batch * part.columns);
  }
  int64_t floats = layout.sums;
  for (size_t i = 0; i < layout.parts.size(); ++i) {
    FactoredLayout::Part &part = layout.parts[i];
    part.factors = floats;
    floats += aligned(part.batch > 0
                          ? part.batch
                          : std::min(shape.parameters[i].numel(), shape.shard));
  }
  layout.squaresBegin = floats * itemSize(DType::F32);
  layout.scratchBegin = layout.squaresBegin +
                        alignedBytes(static_cast<int64_t>(layout.parts.size()) *
                                     itemSize(DType::F64));
  if (itemSize(shape.storage) < itemSize(DType::F32))
    layout.scratchBytes =
        alignedBytes(std::min(largest, shape.shard) * itemSize(DType::F32));
  layout.bytes = layout.scratchBegin + layout.scratchBytes;
  return layout;
}

MatrixLayout matrixLayout(const UpdateShape &shape) {
  MatrixLayout layout;
  std::vector<int> matrices;
  for (size_t i = 0; i < shape.parameters.size(); ++i)
    if (shape.parameters[i].shape.size() == 2 &&
        shape.parameters[i].numel() > 0)
      matrices.push_back(static_cast<int>(i));
  if (matrices.empty())
    return layout;
  const auto longer = [&](int a, int b) {
    return shape.parameters[a].numel() > shape.parameters[b].numel();
  };
  std::stable_sort(matrices.begin(), matrices.end(), longer);
  int64_t sent = 0, largest = 0, gram = 0;
  for (size_t at = 0; at < matrices.size();) {
    const auto n =
        std::min(matrices.size() - at,
                 static_cast<size_t>(std::max<int64_t>(shape.ranks, 1)));
    layout.rounds.emplace_back(matrices.begin() + at,
                               matrices.begin() + at + n);
    int64_t parts = 0;
    for (int index : layout.rounds.back()) {
      const UpdatedParameter &p = shape.parameters[index];
      const int64_t k = std::min(p.shape[0], p.shape[1]);
      parts += p.numel();
      largest = std::max(largest, p.numel());
      gram = std::max(gram, k * k);
    }
    sent = std::max(sent, std::min(parts, shape.shard));
    at += n;
  }
  const auto place = [&](int64_t elements) {
    const int64_t begin = layout.bytes;
    layout.bytes += alignedBytes(elements * itemSize(DType::BF16));
    return begin;
  };
  layout.sentBegin = place(sent);
  layout.matrixBegin = place(largest);
  layout.nextBegin = place(largest);
  layout.gramBegin = place(gram);
  layout.polynomialBegin = place(gram);
  layout.normBegin = place(1);
  return layout;
}

/// Each round ends with its slowest matrix.
static void addMatrixWork(const OptimizerRule &rule, const UpdateShape &shape,
                          UpdateWork &work) {
  const MatrixLayout layout = matrixLayout(shape);
  work.workspaceBytes = layout.bytes;
  for (const std::vector<int> &matrices : layout.rounds) {
    double flops = 0, largest = 0, all = 0;
    for (int index : matrices) {
      const UpdatedParameter &p = shape.parameters[index];
      flops = std::max(flops, rule.description->matmulFlops(
                                  rule.values, p.shape[0], p.shape[1]));
      largest = std::max(largest, static_cast<double>(p.numel()));
      all += static_cast<double>(p.numel());
    }
    work.flops += flops;
    // Scaled by its norm, and what a step of the iteration reads and writes.
    work.movedBytes += 5 * largest * itemSize(DType::BF16);
    if (shape.ranks > 1) {
      const double bytes = std::min(all, static_cast<double>(shape.shard)) *
                           itemSize(DType::BF16);
      work.exchanges.insert(work.exchanges.end(), 2, {false, bytes});
    }
  }
}

UpdateWork updateWork(const OptimizerRule &rule, const UpdateShape &shape,
                      const std::string &device) {
  UpdateWork work;
  const UpdateCost cost = rule.ownCost(device);
  const auto shard = static_cast<double>(shape.shard);
  const double storage = shard * static_cast<double>(itemSize(shape.storage));
  double states = 0;
  for (const StateLayout &layout : stateLayouts(rule, shape))
    states += static_cast<double>(layout.elements) *
              static_cast<double>(itemSize(layout.dtype));
  work.movedBytes =
      (cost.parameters + cost.gradients) * storage + cost.states * states;
  if (rule.description->reads == UpdateReads::Matrices)
    addMatrixWork(rule, shape, work);
  if (rule.description->reads != UpdateReads::RowsAndColumns)
    return work;
  const FactoredLayout layout = factoredLayout(shape);
  work.workspaceBytes = layout.bytes;
  if (layout.scratchBytes > 0) // made twice: for its norm, and to be applied
    work.movedBytes += 2 * cost.gradients * shard * 4;
  if (shape.ranks > 1)
    work.exchanges = {
        {true, static_cast<double>(layout.sums * itemSize(DType::F32))},
        {true,
         static_cast<double>(layout.parts.size() * itemSize(DType::F64))}};
  return work;
}

std::vector<Rectangle> rectangles(int64_t begin, int64_t count, int64_t rows,
                                  int64_t columns) {
  std::vector<Rectangle> result;
  const int64_t end = begin + count;
  for (int64_t at = begin; at < end;) {
    const int64_t row = at / columns, column = at % columns;
    const int64_t matrix = row / rows;
    Rectangle next = {at - begin, row, 1, matrix * columns + column, 0};
    const int64_t whole = std::min((matrix + 1) * rows, end / columns) - row;
    if (column == 0 && whole > 0) {
      next.rowCount = whole;
      next.columnCount = columns;
    } else {
      next.columnCount = std::min(columns - column, end - at);
    }
    result.push_back(next);
    at += next.rowCount * next.columnCount;
  }
  return result;
}

std::vector<State> unitStates(const Plan &plan, const Unit &unit) {
  std::vector<State> states;
  for (const StateLayout &layout : stateLayouts(plan, unit))
    states.push_back({layout.rule.name, layout.dtype});
  return states;
}

int64_t stateBytes(const Plan &plan, const Unit &unit) {
  const OptimizerRule rule(plan.job.optimizer);
  std::vector<StateLayout> layouts;
  if (rule.description && !rule.isFlat())
    layouts = stateLayouts(rule, updateShape(plan, unit));
  int64_t bytes = 0;
  for (const State &state : unit.states) {
    int64_t elements = shardNumel(plan, unit);
    for (const StateLayout &layout : layouts)
      if (state.name == layout.rule.name)
        elements = layout.elements;
    bytes += alignedBytes(elements * itemSize(state.dtype));
  }
  return bytes;
}

} // namespace accel::plan
