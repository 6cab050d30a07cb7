//===- HostValues.h - A program's values on the host ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_HOSTVALUES_H
#define ACCEL_RUNTIME_EXECUTE_HOSTVALUES_H

#include "runtime/plan/Plan.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

namespace accel::run {

/// What Plan::offload.activations leaves in pinned memory while a micro-batch
/// does not need it. Storages are copied whole, so that a tensor comes back
/// with the strides that it had.
class HostValues {
public:
  explicit HostValues(const plan::Program &program);

  /// Copies what the instruction's inputs hold to `memory`, bytes that all
  /// programs use, on the current stream. Throws PlanError where a storage is
  /// larger than planned.
  void offload(const plan::ProgramInstruction &instruction,
               const std::vector<at::Tensor> &values, at::Tensor &memory);
  /// Makes the instruction's outputs on `device`, which `fetch` then fills.
  void allocate(const plan::ProgramInstruction &instruction,
                std::vector<at::Tensor> &values, c10::Device device) const;
  void fetch(const plan::ProgramInstruction &instruction,
             const std::vector<at::Tensor> &values, at::Tensor &memory) const;

private:
  /// Where in its storage a tensor's elements are.
  struct View {
    std::vector<int64_t> sizes, strides;
    int64_t offset = 0; // elements
  };
  const plan::Program &program;
  std::map<int, int64_t> places; // plan::hostPlaces
  std::map<int, int64_t> bytes;  // of storages, by the value that owns them
  std::map<int, View> views;     // by value
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_HOSTVALUES_H
