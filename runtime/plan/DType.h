//===- DType.h - Element types and their sizes ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_DTYPE_H
#define ACCEL_RUNTIME_PLAN_DTYPE_H

#include <cstdint>
#include <optional>
#include <string>

namespace accel::plan {

/// Tensors start at multiples of this many bytes, in flat buffers and in the
/// memory model alike (c10's CPU allocator aligns to 64).
constexpr int64_t alignmentBytes = 64;

enum class DType { F64, F32, BF16, F16, I64, I32, I16, U8, I1 };
/// Bytes of one element.
int64_t itemSize(DType dtype);
/// "f32", "bf16", ...: the spelling in MLIR text and in plan.json.
const char *toString(DType dtype);
std::optional<DType> parseDType(const std::string &text);
/// `bytes` rounded up to `alignmentBytes`.
int64_t alignedBytes(int64_t bytes);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_DTYPE_H
