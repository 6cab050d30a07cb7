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
#include <memory>

namespace accel::run {

namespace {

std::vector<char> bytesOf(const at::Tensor &tensor) {
  const at::Tensor rows = tensor.contiguous();
  const char *begin = static_cast<const char *>(rows.const_data_ptr());
  return {begin, begin + rows.nbytes()};
}

/// In the dtype of the plan: checkpoints in 16 bits may hold these so too.
std::vector<char> readAs(const File &file, const StoredTensor &tensor,
                         plan::DType dtype) {
  at::Tensor stored = at::empty(tensor.shape, scalarType(tensor.dtype));
  file.readAt(tensor.offset, stored.mutable_data_ptr(),
              static_cast<int64_t>(stored.nbytes()));
  return bytesOf(stored.to(scalarType(dtype)));
}

} // namespace

Buffers::Buffers(const plan::Plan &plan, const std::string &archive,
                 const std::vector<std::string> &weightFiles) {
  if (plan.buffers.empty())
    return;
  const std::vector<std::string> paths =
      archive.empty() ? weightFiles : std::vector<std::string>{archive};
  std::vector<std::unique_ptr<File>> files;
  std::map<std::string, std::pair<size_t, StoredTensor>> stored;
  for (const std::string &path : paths) {
    files.push_back(std::make_unique<File>(path, File::Mode::Read));
    for (StoredTensor &tensor : readTensors(*files.back())) {
      std::string name = tensor.name;
      stored[name] = {files.size() - 1, std::move(tensor)};
    }
  }
  for (const plan::Buffer &buffer : plan.buffers) {
    Value value{buffer, {}};
    const auto found = stored.find(buffer.fqn);
    if (paths.empty()) {
      const StoredTensor zeros{buffer.fqn, buffer.dtype, buffer.shape, 0};
      value.bytes.resize(zeros.numel() * plan::itemSize(buffer.dtype));
    } else if (found == stored.end()) {
      throw FileError(
          paths.front() + ": has no values of buffer '" + buffer.fqn + "'" +
          (archive.empty()
               ? ""
               : "; export the model with them (tools/export-model does)"));
    } else {
      const auto &[file, tensor] = found->second;
      if (tensor.shape != buffer.shape ||
          (tensor.dtype != buffer.dtype && !archive.empty()))
        throw FileError(paths[file] + ": buffer '" + buffer.fqn +
                        "' is of another shape or dtype than in the plan");
      value.bytes = readAs(*files[file], tensor, buffer.dtype);
    }
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

void Buffers::set(const std::string &name, const at::Tensor &from) {
  values.at(name).bytes = bytesOf(from);
}

} // namespace accel::run
