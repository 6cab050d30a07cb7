//===- ExportDType.h - torch.export's numbers of dtypes ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_EXPORTDTYPE_H
#define ACCEL_RUNTIME_PLAN_EXPORTDTYPE_H

#include "runtime/plan/Plan.h"

#include <optional>

namespace accel::plan {

/// ScalarType of torch/_export/serde/schema.py (schema 8). Nothing for numbers
/// that are none and for dtypes that plans have not (int8, complex, unsigned,
/// float8).
inline std::optional<DType> dtypeOfExport(int64_t code) {
  switch (code) {
  case 1:
    return DType::U8;
  case 3:
    return DType::I16;
  case 4:
    return DType::I32;
  case 5:
    return DType::I64;
  case 6:
    return DType::F16;
  case 7:
    return DType::F32;
  case 8:
    return DType::F64;
  case 12:
    return DType::I1;
  case 13:
    return DType::BF16;
  default:
    return std::nullopt;
  }
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_EXPORTDTYPE_H
