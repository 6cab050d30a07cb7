//===- Safetensors.h - Files of named tensors -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Eight bytes of header length, a JSON header, raw little-endian data.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_SAFETENSORS_H
#define ACCEL_RUNTIME_CHECKPOINT_SAFETENSORS_H

#include "runtime/checkpoint/Files.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <string>
#include <vector>

namespace accel::run {

struct StoredTensor {
  std::string name;
  plan::DType dtype = plan::DType::F32;
  std::vector<int64_t> shape;
  int64_t offset = 0; // of the first byte, in the file
  int64_t numel() const;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors; // in the file's order
  std::map<std::string, std::string> metadata;
  int64_t fileBytes = 0;
};

/// Reads and checks the header: types, shapes, and that each tensor's bytes are
/// inside the file. Throws FileError. Tensors of types that training does not
/// know (I8, F8_E4M3, ...) are left out.
SafetensorsHeader readHeader(const File &file);

/// Lays tensors out one after another (fills their offsets) and returns the
/// file's first bytes.
std::string layOut(SafetensorsHeader &header);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_SAFETENSORS_H
