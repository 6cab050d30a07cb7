//===- Buffers.cpp - Tensors of the model that are not trained ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Buffers.h"

#include "runtime/checkpoint/Pt2.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/ops/empty.h>

#include <cstring>

namespace accel::run {

Buffers::Buffers(const plan::Plan &plan, const std::string &archive) {
  if (plan.buffers.empty())
    return;
  if (archive.empty())
    throw FileError("the plan has buffers, and no archive with their values");
  File file(archive, File::Mode::Read);
  std::map<std::string, StoredTensor> stored;
  for (StoredTensor &tensor : readTensors(file)) {
    std::string name = tensor.name;
    stored[name] = std::move(tensor);
  }
  for (const plan::Buffer &buffer : plan.buffers) {
    auto found = stored.find(buffer.fqn);
    if (found == stored.end())
      throw FileError(
          archive + ": has no values of buffer '" + buffer.fqn +
          "'; export the model with them (tools/export-model does)");
    const StoredTensor &tensor = found->second;
    if (tensor.shape != buffer.shape || tensor.dtype != buffer.dtype)
      throw FileError(archive + ": buffer '" + buffer.fqn +
                      "' is of another shape or dtype than in the plan");
    Value value{buffer, {}};
    value.bytes.resize(tensor.numel() * plan::itemSize(tensor.dtype));
    file.readAt(tensor.offset, value.bytes.data(), int64_t(value.bytes.size()));
    values.emplace(buffer.fqn, std::move(value));
  }
}

at::Tensor Buffers::load(const std::string &name) const {
  const Value &value = values.at(name);
  at::Tensor tensor = at::empty(
      value.buffer.shape, at::TensorOptions(scalarType(value.buffer.dtype)));
  std::memcpy(tensor.mutable_data_ptr(), value.bytes.data(),
              value.bytes.size());
  return tensor;
}

} // namespace accel::run
