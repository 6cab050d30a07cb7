//===- Tensors.cpp - Plan types as LibTorch's -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/tensors/Tensors.h"

#include <c10/util/Exception.h>

#include <cstdlib>

namespace accel::run {

c10::ScalarType scalarType(plan::DType dtype) {
  switch (dtype) {
  case plan::DType::F64:
    return c10::ScalarType::Double;
  case plan::DType::F32:
    return c10::ScalarType::Float;
  case plan::DType::BF16:
    return c10::ScalarType::BFloat16;
  case plan::DType::F16:
    return c10::ScalarType::Half;
  case plan::DType::I64:
    return c10::ScalarType::Long;
  case plan::DType::I32:
    return c10::ScalarType::Int;
  case plan::DType::I16:
    return c10::ScalarType::Short;
  case plan::DType::U8:
    return c10::ScalarType::Byte;
  case plan::DType::I1:
    return c10::ScalarType::Bool;
  }
  TORCH_CHECK(false, "unknown element type");
}

at::Tensor viewOf(const c10::Storage &storage, plan::DType dtype,
                  int64_t offset, c10::IntArrayRef shape) {
  const bool cuda = storage.device_type() == c10::DeviceType::CUDA;
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage),
      c10::DispatchKeySet(cuda ? c10::DispatchKey::CUDA
                               : c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(scalarType(dtype)));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  tensor.unsafeGetTensorImpl()->set_storage_offset(offset);
  return tensor;
}

at::Tensor hostScalar(double value, c10::ScalarType type) {
  void *memory = std::aligned_alloc(64, 64);
  TORCH_CHECK(memory, "out of memory");
  c10::Storage storage(c10::Storage::use_byte_size_t(), 8,
                       c10::DataPtr(memory, memory, &std::free,
                                    c10::Device(c10::DeviceType::CPU)));
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous({});
  if (type == c10::ScalarType::Double)
    *static_cast<double *>(memory) = value;
  else if (type == c10::ScalarType::Float)
    *static_cast<float *>(memory) = static_cast<float>(value);
  else
    TORCH_CHECK(false, "a host scalar is f32 or f64");
  return tensor;
}

} // namespace accel::run
