//===- Saturating.h - Products of sizes that cannot wrap --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_SATURATING_H
#define ACCEL_RUNTIME_PLAN_SATURATING_H

#include <cstdint>
#include <limits>

namespace accel::plan {

/// a * b, or the largest number: a hostile plan must not wrap around to a small
/// buffer. `verify` refuses sizes long before this limit.
inline int64_t saturatingMul(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result)
             ? std::numeric_limits<int64_t>::max()
             : result;
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_SATURATING_H
