//===- Operators.h - Operators that ATen does not have ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
//   accel::add_(Tensor(a!) self, Tensor other) -> Tensor(a!)
//
// self += other, which may have another dtype: rounded once, and without a copy
// of `other` in the dtype of `self` where both are contiguous.
//
//   accel::dropout(Tensor self, float p, int[] key) -> Tensor
//
// `self` / (1 - p) where the draw keeps an element, else 0; contiguous. Which
// elements stay depends on the key (Draw::list) and on their position alone:
// not on the dtype, the layout, the number of threads or what ran before. On
// CPUs the numbers are Philox 4x32-10 (Salmon et al., SC 2011), word i % 4 of
// block i / 4 for element i, and no mask is made; other devices fill a boolean
// mask with their own generator. Attention that drops weights on CUDA is in
// DroppedAttention.h.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_OPERATORS_H
#define ACCEL_RUNTIME_EXECUTE_OPERATORS_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace accel::run {

/// What a call draws by. Draws with another micro-batch, call or key of one
/// seed never share a number.
struct Draw {
  uint64_t seed = 0;
  int64_t microBatch = 0; // number in the run, over all ranks and slots
  int64_t call = 0;       // plan::ProgramInstruction::draw
  /// The list that an operator with `key` takes: Philox's key, and the upper
  /// half of its counter.
  std::vector<int64_t> list(int64_t key) const;
};

/// The seed for a generator of another device than CPUs, of a key's list.
/// Behind it may stand the rank's place among those that draw otherwise, and
/// how many these are.
uint64_t deviceSeed(at::IntArrayRef key);

/// Makes the operators known to the dispatcher, once.
void registerOperators();

/// `accel::dropout` on any device, by the generator of that device.
at::Tensor dropoutByGenerator(const at::Tensor &self, double p,
                              at::IntArrayRef key);

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_OPERATORS_H
