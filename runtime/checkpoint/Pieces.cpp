//===- Pieces.cpp - Parameters inside of flat shards ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Pieces.h"

#include "runtime/collectives/Groups.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>

namespace accel::run {

namespace {
constexpr int64_t chunkElements = int64_t(1) << 20;
} // namespace

std::vector<Piece> piecesOf(const plan::Plan &plan, const plan::Unit &unit,
                            int64_t from, int64_t to) {
  std::vector<Piece> pieces;
  for (int index : unit.parameters) {
    const plan::Parameter &p = plan.parameters[index];
    const int64_t begin = std::max(p.offset, from);
    const int64_t end = std::min(p.offset + p.numel(), to);
    if (begin < end)
      pieces.push_back({index, begin - p.offset, end - p.offset, begin - from});
  }
  return pieces;
}

bool writesUnit(const plan::Plan &plan, const plan::Unit &unit,
                const Mesh &mesh) {
  std::vector<std::string> others;
  for (const plan::Axis &axis : plan.axes)
    if (std::find(unit.shardAxes.begin(), unit.shardAxes.end(), axis.name) ==
        unit.shardAxes.end())
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
