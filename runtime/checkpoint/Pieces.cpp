//===- Pieces.cpp - Parameters inside of flat shards ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Pieces.h"

#include "runtime/collectives/Groups.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/OptimizerOfStates.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>

namespace accel::run {

namespace {
constexpr int64_t chunkElements = int64_t(1) << 20;
} // namespace

namespace {

/// The part of a parameter that one rank has: global runs of its elements.
class OwnPart {
public:
  OwnPart(const plan::Plan &plan, const plan::Parameter &parameter,
          const Mesh &mesh)
      : parameter(parameter), own(plan::ownShape(plan, parameter)),
        splits(own.size()), contiguous(0) {
    for (const plan::AxisSplit &split : parameter.split) {
      splits[split.dim] = {split.pieces, mesh.position({split.axis}),
                           plan.axisSize(split.axis)};
      contiguous = std::max<size_t>(contiguous, split.dim);
    }
    // Behind the last dimension that is split all elements are consecutive, and
    // so are those of one piece of it.
    for (size_t i = own.size(); i-- > contiguous;)
      run *= i == contiguous ? own[i] / splits[i].pieces : own[i];
  }

  /// Elements from one that starts a run on.
  int64_t runLength() const { return std::max<int64_t>(run, 1); }

  /// Where element `at` of the part is in the parameter.
  int64_t global(int64_t at) const {
    int64_t result = 0, stride = 1;
    for (size_t i = own.size(); i-- > 0;) {
      const int64_t index = at % own[i];
      at /= own[i];
      const Share &share = splits[i];
      const int64_t length = own[i] / share.pieces; // of a piece's part
      const int64_t piece = index / length;
      result += stride * ((piece * share.ranks + share.position) * length +
                          index % length);
      stride *= parameter.shape[i];
    }
    return result;
  }

private:
  struct Share {
    int64_t pieces = 1, position = 0, ranks = 1;
  };
  const plan::Parameter &parameter;
  std::vector<int64_t> own;
  std::vector<Share> splits; // by dimension
  size_t contiguous;         // the last dimension that is split
  int64_t run = 1;
};

} // namespace

std::vector<Piece> piecesOf(const plan::Plan &plan, const plan::Unit &unit,
                            int64_t from, int64_t to, const Mesh &mesh) {
  std::vector<Piece> pieces;
  for (int index : unit.parameters) {
    const plan::Parameter &p = plan.parameters[index];
    const int64_t begin = std::max(p.offset, from);
    const int64_t end = std::min(p.offset + plan::ownNumel(plan, p), to);
    if (begin >= end)
      continue;
    if (p.split.empty()) {
      pieces.push_back({index, begin - p.offset, end - p.offset, begin - from});
      continue;
    }
    const OwnPart part(plan, p, mesh);
    const int64_t run = part.runLength();
    for (int64_t at = begin - p.offset; at < end - p.offset;) {
      const int64_t next = std::min((at / run + 1) * run, end - p.offset);
      const int64_t global = part.global(at);
      pieces.push_back(
          {index, global, global + next - at, at + p.offset - from});
      at = next;
    }
  }
  return pieces;
}

std::vector<std::string> axesOfParts(const plan::Plan &plan,
                                     const plan::Unit &unit) {
  std::vector<std::string> axes;
  for (const plan::Axis &axis : plan.axes)
    if (axis.name != plan::pipelineAxis &&
        (plan::axisRole(axis.name) == plan::AxisRole::Other ||
         plan::isSplitOver(plan, unit, axis.name)))
      axes.push_back(axis.name);
  return axes;
}

bool hasOwnLayout(const plan::StateLayout &state) {
  return plan::hasOwnLayout(state.rule);
}

std::vector<int64_t> stateShape(const plan::StateLayout &state,
                                const plan::Parameter &parameter) {
  std::vector<int64_t> shape = parameter.shape;
  if (state.rule.shape == plan::StateShape::Rows)
    shape.pop_back();
  else if (state.rule.shape == plan::StateShape::Columns)
    shape.erase(shape.end() - 2);
  return shape;
}

std::vector<Piece> piecesOf(const plan::Plan &plan, const UnitStorage &unit,
                            const Mesh &mesh) {
  return piecesOf(plan, unit.unit(), unit.shardBegin(), unit.shardEnd(), mesh);
}

std::vector<Piece> piecesOfState(const plan::Plan &plan,
                                 const UnitStorage &unit, int index,
                                 const Mesh &mesh) {
  const plan::StateLayout &state = unit.stateLayouts()[index];
  const plan::UpdateShape trained = plan::updateShape(plan, unit.unit());
  const std::vector<Piece> held = piecesOf(plan, unit, mesh);
  std::vector<Piece> pieces;
  for (const plan::StatePart &part : state.parts) {
    const int parameter = trained.parameters[part.parameter].index;
    if (state.rule.shape != plan::StateShape::Whole) {
      pieces.push_back({parameter, 0, part.numel, part.offset});
      continue;
    }
    for (Piece piece : held) {
      if (piece.parameter != parameter)
        continue;
      if (!state.sharded)
        piece.offset = part.offset + piece.begin;
      pieces.push_back(piece);
    }
  }
  return pieces;
}

bool writesUnit(const plan::Plan &plan, const plan::Unit &unit,
                const Mesh &mesh) {
  if (unit.copyOf >= 0)
    return false;
  std::vector<std::string> others;
  for (const plan::Axis &axis : plan.axes)
    if (plan::axisRole(axis.name) != plan::AxisRole::Other &&
        !plan::isSplitOver(plan, unit, axis.name) &&
        std::find(unit.shardAxes.begin(), unit.shardAxes.end(), axis.name) ==
            unit.shardAxes.end())
      others.push_back(axis.name);
  return mesh.position(others) == 0;
}

bool writesParameter(const plan::Plan &plan, const plan::Parameter &parameter,
                     const Mesh &mesh) {
  std::vector<std::string> others;
  for (const plan::Axis &axis : plan.axes)
    if (plan::axisRole(axis.name) == plan::AxisRole::Other &&
        axis.name != plan::pipelineAxis &&
        std::none_of(
            parameter.split.begin(), parameter.split.end(),
            [&](const plan::AxisSplit &s) { return s.axis == axis.name; }))
      others.push_back(axis.name);
  return mesh.position(others) == 0;
}

void writeElements(File &file, int64_t fileOffset, plan::DType dtype,
                   const at::Tensor &flat, int64_t begin, int64_t count) {
  const int64_t size = plan::itemSize(dtype);
  if (flat.is_cpu() && flat.scalar_type() == scalarType(dtype)) {
    file.writeAt(fileOffset,
                 static_cast<const char *>(flat.const_data_ptr()) +
                     begin * size,
                 count * size);
    return;
  }
  std::vector<char> buffer(std::min(count, chunkElements) * size);
  for (int64_t at = 0; at < count; at += chunkElements) {
    const int64_t n = std::min(chunkElements, count - at);
    at::from_blob(buffer.data(), {n}, at::TensorOptions(scalarType(dtype)))
        .copy_(flat.narrow(0, begin + at, n));
    file.writeAt(fileOffset + at * size, buffer.data(), n * size);
  }
}

void readElements(const File &file, int64_t fileOffset, plan::DType dtype,
                  const at::Tensor &flat, int64_t begin, int64_t count) {
  const int64_t size = plan::itemSize(dtype);
  if (flat.is_cpu() && flat.scalar_type() == scalarType(dtype)) {
    file.readAt(fileOffset,
                static_cast<char *>(flat.mutable_data_ptr()) + begin * size,
                count * size);
    return;
  }
  std::vector<char> buffer(std::min(count, chunkElements) * size);
  for (int64_t at = 0; at < count; at += chunkElements) {
    const int64_t n = std::min(chunkElements, count - at);
    file.readAt(fileOffset + at * size, buffer.data(), n * size);
    flat.narrow(0, begin + at, n)
        .copy_(at::from_blob(buffer.data(), {n},
                             at::TensorOptions(scalarType(dtype))));
  }
}

} // namespace accel::run
