//===- HostValues.cpp - A program's values on the host --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/HostValues.h"

#include "runtime/execute/FunctionRunner.h"
#include "runtime/plan/Timeline.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/ops/empty.h>

#include <set>

namespace accel::run {

/// All bytes of the tensor's storage.
static at::Tensor bytesOf(const at::Tensor &tensor) {
  const auto size = static_cast<int64_t>(tensor.storage().nbytes());
  return viewOf(tensor.storage(), plan::DType::U8, 0, {size});
}

HostValues::HostValues(const plan::Program &program)
    : program(program), places(plan::hostPlaces(program)) {}

void HostValues::offload(const plan::ProgramInstruction &instruction,
                         const std::vector<at::Tensor> &values,
                         at::Tensor &memory) {
  std::set<int> copied;
  for (int value : instruction.inputs) {
    const at::Tensor &tensor = values[value];
    views[value] = {tensor.sizes().vec(), tensor.strides().vec(),
                    tensor.storage_offset()};
    const int root = plan::rootOf(program, value);
    if (!copied.insert(root).second)
      continue;
    const at::Tensor from = bytesOf(tensor);
    if (from.numel() > program.values[root].bytes)
      throw PlanError("program '" + program.name + "': value '" +
                      program.values[value].name + "' has " +
                      std::to_string(from.numel()) + " bytes, the plan has " +
                      std::to_string(program.values[root].bytes));
    bytes[root] = from.numel();
    memory.narrow(0, places.at(root), from.numel())
        .copy_(from, /*non_blocking=*/true);
  }
}

void HostValues::allocate(const plan::ProgramInstruction &instruction,
                          std::vector<at::Tensor> &values,
                          c10::Device device) const {
  std::map<int, c10::Storage> storages; // by what they were
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    const int from = instruction.inputs[i], to = instruction.outputs[i];
    const int root = plan::rootOf(program, from);
    auto storage = storages.find(root);
    if (storage == storages.end())
      storage =
          storages
              .emplace(
                  root,
                  at::empty(
                      {bytes.at(root)},
                      at::TensorOptions(c10::ScalarType::Byte).device(device))
                      .storage())
              .first;
    const View &view = views.at(from);
    values[to] =
        viewOf(storage->second, program.values[to].dtype, view.offset, {0});
    values[to].unsafeGetTensorImpl()->set_sizes_and_strides(view.sizes,
                                                            view.strides);
  }
}

void HostValues::fetch(const plan::ProgramInstruction &instruction,
                       const std::vector<at::Tensor> &values,
                       at::Tensor &memory) const {
  std::set<int> copied;
  for (size_t i = 0; i < instruction.inputs.size(); ++i)
    if (const int root = plan::rootOf(program, instruction.inputs[i]);
        copied.insert(root).second) {
      at::Tensor to = bytesOf(values[instruction.outputs[i]]);
      to.copy_(memory.narrow(0, places.at(root), to.numel()),
               /*non_blocking=*/true);
    }
}

} // namespace accel::run
