//===- Buffers.h - Tensors of the model that are not trained ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_BUFFERS_H
#define ACCEL_RUNTIME_CHECKPOINT_BUFFERS_H

#include "runtime/plan/Plan.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace accel::run {

/// The values of Plan::buffers, read once from the model's archive, or, where
/// there is none, from its weight files; without either they are zeros. A
/// checkpoint's replace them. They stay outside of the counting allocator; a
/// rank's programs share one copy of each, which nothing changes.
class Buffers {
public:
  Buffers() = default;
  /// Throws FileError where a buffer is missing or has another shape.
  Buffers(const plan::Plan &plan, const std::string &archive,
          const std::vector<std::string> &weightFiles);
  bool has(const std::string &name) const { return values.count(name) != 0; }
  at::Tensor load(const std::string &name) const;
  /// Takes `values` of the plan's shape and dtype in place of its own.
  void set(const std::string &name, const at::Tensor &values);
  /// As they lie in memory.
  const std::vector<char> &bytes(const std::string &name) const {
    return values.at(name).bytes;
  }

private:
  struct Value {
    plan::Buffer buffer;
    std::vector<char> bytes;
  };
  std::map<std::string, Value> values;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_BUFFERS_H
