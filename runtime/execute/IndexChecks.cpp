//===- IndexChecks.cpp - Indices that kernels trust -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/IndexChecks.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace accel::run {

namespace {

using Stack = torch::jit::Stack;

void checkRange(const at::Tensor &indices, const char *argument,
                int64_t bound) {
  // Of other types the operator complains itself.
  if (!indices.defined() || indices.numel() == 0 ||
      !c10::isIntegralType(indices.scalar_type(), /*includeBool=*/false))
    return;
  const auto [least, most] = at::aminmax(indices);
  for (const at::Tensor &end : {least, most})
    if (const int64_t index = end.item<int64_t>(); index < 0 || index >= bound)
      throw std::out_of_range(
          "index " + std::to_string(index) + " of argument '" + argument +
          "' is out of bounds: expected 0 to " + std::to_string(bound - 1));
}

/// (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
void checkEmbeddingBackward(const Stack &arguments) {
  // Without the count of each index the kernel looks at the bounds.
  if (arguments[4].toBool())
    checkRange(arguments[1].toTensor(), "indices", arguments[2].toInt());
}

/// (grad_output, self, ..., indices): places in the last dimensions of self.
template <size_t position, int64_t dimensions>
void checkPoolBackward(const Stack &arguments) {
  const at::Tensor &self = arguments[1].toTensor();
  if (self.dim() < dimensions)
    return;
  int64_t places = 1;
  for (int64_t d = 1; d <= dimensions; ++d)
    places *= self.size(-d);
  checkRange(arguments[position].toTensor(), "indices", places);
}

/// (grad_output, self, target, weight, reduction, ignore_index, total_weight)
void checkLossBackward(const Stack &arguments) {
  if (arguments[4].toInt() != 0) // with a sum or a mean it looks itself
    return;
  const at::Tensor &self = arguments[1].toTensor();
  const at::Tensor &target = arguments[2].toTensor();
  if (self.dim() > 0)
    checkRange(target.masked_select(target.ne(arguments[5].toInt())), "target",
               self.size(self.dim() == 1 ? 0 : 1));
}

/// (log_probs, targets, input_lengths, target_lengths, ...)
void checkCtc(const Stack &arguments) {
  const at::Tensor &probabilities = arguments[0].toTensor();
  at::Tensor targets = arguments[1].toTensor();
  const at::Tensor lengths =
      (arguments[3].isTensor() ? arguments[3].toTensor()
                               : at::tensor(arguments[3].toIntVector(),
                                            at::TensorOptions(at::kLong)))
          .flatten();
  if (probabilities.dim() == 0)
    return;
  // Behind the lengths, which the operator checks, nothing is read.
  if (targets.dim() == 2 && targets.size(0) == lengths.size(0))
    targets = targets.masked_select(
        at::arange(targets.size(1), at::TensorOptions(at::kLong))
            .unsqueeze(0)
            .lt(lengths.unsqueeze(1)));
  else if (targets.dim() == 1)
    targets = targets.slice(
        0, 0, std::max<int64_t>(lengths.sum().item<int64_t>(), 0));
  checkRange(targets, "targets", probabilities.size(-1));
}

} // namespace

IndexCheck indexCheckOf(const std::string &name) {
  static const std::map<std::string, IndexCheck> checks = {
      {"aten::embedding_dense_backward", checkEmbeddingBackward},
      {"aten::max_pool2d_with_indices_backward", checkPoolBackward<7, 2>},
      {"aten::max_pool3d_with_indices_backward", checkPoolBackward<7, 3>},
      {"aten::adaptive_max_pool2d_backward", checkPoolBackward<2, 2>},
      {"aten::adaptive_max_pool3d_backward", checkPoolBackward<2, 3>},
      {"aten::nll_loss_backward", checkLossBackward},
      {"aten::nll_loss2d_backward", checkLossBackward},
      {"aten::_ctc_loss", checkCtc},
      {"aten::ctc_loss", checkCtc},
  };
  const auto found = checks.find(name);
  return found == checks.end() ? nullptr : found->second;
}

} // namespace accel::run
