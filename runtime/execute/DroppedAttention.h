//===- DroppedAttention.h - Attention that drops weights --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
//   accel::flash_attention(Tensor query, Tensor key, Tensor value,
//       bool is_causal, float scale, float dropout_p, int[] drawn)
//     -> (Tensor, Tensor)
//   accel::efficient_attention: the same, with Tensor? attn_bias behind value
//   and a _backward of each
//
// PyTorch's kernels of CUDA for scaled_dot_product_attention with dropout: the
// result and the log-sum-exp of each row. They draw by Philox from the seed and
// the offset of the device's generator, from which the kernel and an element's
// place in the scores make the number (Dropout in FlashAttention's dropout.h;
// kernel_forward.h of the memory-efficient one): neither alignment nor the
// blocks of a kernel count. The seed comes from `drawn`, the key's list, so
// that the backward has it again and nothing is kept between them.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_DROPPEDATTENTION_H
#define ACCEL_RUNTIME_EXECUTE_DROPPEDATTENTION_H

#include <torch/library.h>

namespace accel::run {

/// Defines the four operators in the namespace of `library`.
void defineDroppedAttention(torch::Library &library);

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_DROPPEDATTENTION_H
