//===- Kernels.cpp - The runtime's own loops over flat buffers ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/tensors/Kernels.h"

#include "runtime/tensors/Parallel.h"

#include <ATen/ops/linalg_vector_norm.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <vector>

namespace accel::run {

namespace {

constexpr int64_t blockSize = 2048;
constexpr int64_t grain = 1 << 16;

/// Calls `body` with a null pointer of the tensor's element type.
template <typename Body> void forFloating(c10::ScalarType type, Body &&body) {
  switch (type) {
  case c10::ScalarType::Double:
    return body(static_cast<double *>(nullptr));
  case c10::ScalarType::Float:
    return body(static_cast<float *>(nullptr));
  case c10::ScalarType::BFloat16:
    return body(static_cast<c10::BFloat16 *>(nullptr));
  case c10::ScalarType::Half:
    return body(static_cast<c10::Half *>(nullptr));
  default:
    TORCH_CHECK(false, "a floating-point buffer expected, not ", type);
  }
}

template <typename To, typename From>
void sumRange(To *to, const std::vector<const From *> &from, bool accumulate,
              int64_t begin, int64_t end) {
  using Acc = std::conditional_t<std::is_same_v<To, double>, double, float>;
  Acc sum[blockSize];
  for (int64_t at = begin; at < end; at += blockSize) {
    const int64_t n = std::min(blockSize, end - at);
    for (int64_t i = 0; i < n; ++i)
      sum[i] = static_cast<Acc>(from[0][at + i]);
    for (size_t slice = 1; slice < from.size(); ++slice) {
      const From *source = from[slice] + at;
      for (int64_t i = 0; i < n; ++i)
        sum[i] += static_cast<Acc>(source[i]);
    }
    if (accumulate)
      for (int64_t i = 0; i < n; ++i)
        to[at + i] = static_cast<To>(static_cast<Acc>(to[at + i]) + sum[i]);
    else
      for (int64_t i = 0; i < n; ++i)
        to[at + i] = static_cast<To>(sum[i]);
  }
}

template <typename T> double squares(const T *values, int64_t n) {
  using Acc = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr int lanes = 16;
  double total = 0;
  for (int64_t at = 0; at < n; at += blockSize) {
    // Few enough terms a lane that f32 loses nothing that matters.
    const int64_t end = std::min(n, at + blockSize);
    Acc sum[lanes] = {};
    int64_t i = at;
    for (; i + lanes <= end; i += lanes)
      for (int lane = 0; lane < lanes; ++lane) {
        Acc value = static_cast<Acc>(values[i + lane]);
        sum[lane] += value * value;
      }
    for (; i < end; ++i) {
      Acc value = static_cast<Acc>(values[i]);
      sum[0] += value * value;
    }
    double block = 0;
    for (Acc lane : sum)
      block += lane;
    total += block;
  }
  return total;
}

} // namespace

void sumSlices(const at::Tensor &to, at::ArrayRef<at::Tensor> slices,
               bool accumulate) {
  const int64_t length = to.numel();
  for (const at::Tensor &slice : slices)
    TORCH_CHECK(slice.numel() == length &&
                    slice.scalar_type() == slices[0].scalar_type(),
                "slices of another length or dtype");
  if (!to.is_cpu()) {
    for (const at::Tensor &slice : slices) {
      if (accumulate)
        to.add_(slice);
      else
        to.copy_(slice);
      accumulate = true;
    }
    return;
  }
  forFloating(to.scalar_type(), [&](auto *target) {
    using To = std::remove_pointer_t<decltype(target)>;
    forFloating(slices[0].scalar_type(), [&](auto *source) {
      using From = std::remove_pointer_t<decltype(source)>;
      To *out = to.mutable_data_ptr<To>();
      std::vector<const From *> in;
      for (const at::Tensor &slice : slices)
        in.push_back(slice.const_data_ptr<From>());
      parallelFor(0, length, grain, [&](int64_t begin, int64_t end) {
        sumRange(out, in, accumulate, begin, end);
      });
    });
  });
}

void addSquares(const at::Tensor &values, const at::Tensor &into) {
  if (!values.is_cpu()) {
    // In f32, as torch's clip_grad_norm_: a result in f64 would first copy all
    // values to f64.
    const at::Tensor norm =
        at::linalg_vector_norm(values, 2, {}, false, c10::ScalarType::Float)
            .to(c10::ScalarType::Double);
    into.addcmul_(norm, norm);
    return;
  }
  forFloating(values.scalar_type(), [&](auto *null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const T *data = values.const_data_ptr<T>();
    const int64_t pieces = (values.numel() + grain - 1) / grain;
    std::vector<double> sums(pieces); // so that threads change no result
    parallelFor(0, pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        sums[i] = squares(data + i * grain,
                          std::min(grain, values.numel() - i * grain));
    });
    double total = 0;
    for (double sum : sums)
      total += sum;
    *into.mutable_data_ptr<double>() += total;
  });
}

void addRowSquares(const at::Tensor &matrix, const at::Tensor &into) {
  if (!matrix.is_cpu()) {
    const at::Tensor norms =
        at::linalg_vector_norm(matrix, 2, 1, false, c10::ScalarType::Float);
    into.addcmul_(norms, norms);
    return;
  }
  forFloating(matrix.scalar_type(), [&](auto *null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const T *data = matrix.const_data_ptr<T>();
    float *sums = into.mutable_data_ptr<float>();
    const int64_t columns = matrix.size(1);
    parallelFor(0, matrix.size(0), std::max<int64_t>(1, grain / columns),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row)
                    sums[row] += static_cast<float>(
                        squares(data + row * columns, columns));
                });
  });
}

void addColumnSquares(const at::Tensor &matrix, const at::Tensor &into) {
  if (!matrix.is_cpu()) {
    const at::Tensor norms =
        at::linalg_vector_norm(matrix, 2, 0, false, c10::ScalarType::Float);
    into.addcmul_(norms, norms);
    return;
  }
  forFloating(matrix.scalar_type(), [&](auto *null) {
    using T = std::remove_pointer_t<decltype(null)>;
    constexpr int64_t width = 256;
    const T *data = matrix.const_data_ptr<T>();
    float *sums = into.mutable_data_ptr<float>();
    const int64_t rows = matrix.size(0), columns = matrix.size(1);
    // A thread has whole columns, so that threads change no result.
    parallelFor(0, (columns + width - 1) / width,
                std::max<int64_t>(1, grain / (rows * width)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t block = begin; block < end; ++block) {
                    const int64_t first = block * width;
                    const int64_t n = std::min(width, columns - first);
                    double sum[width] = {};
                    for (int64_t row = 0; row < rows; ++row) {
                      const T *at = data + row * columns + first;
                      for (int64_t i = 0; i < n; ++i)
                        sum[i] += static_cast<double>(at[i]) *
                                  static_cast<double>(at[i]);
                    }
                    for (int64_t i = 0; i < n; ++i)
                      sums[first + i] += static_cast<float>(sum[i]);
                  }
                });
  });
}

void scaleBy(const at::Tensor &values, const at::Tensor &factor) {
  if (!values.is_cpu()) {
    values.mul_(factor);
    return;
  }
  const double by = *factor.const_data_ptr<double>();
  if (by == 1.0)
    return;
  forFloating(values.scalar_type(), [&](auto *null) {
    using T = std::remove_pointer_t<decltype(null)>;
    using Acc = std::conditional_t<std::is_same_v<T, double>, double, float>;
    T *data = values.mutable_data_ptr<T>();
    const Acc scale = static_cast<Acc>(by);
    parallelFor(0, values.numel(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        data[i] = static_cast<T>(static_cast<Acc>(data[i]) * scale);
    });
  });
}

} // namespace accel::run
