//===- Dropped.cpp - Attention that drops weights -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/dry/Dropped.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstring>
#include <limits>

namespace accel::dry {

namespace {

using Values = std::vector<c10::IValue>;

at::Tensor inF32(const Values &in, size_t i) {
  return in[i].toTensor().to(at::kFloat);
}

/// Drops by position and key, as the CPUs' own operator does: of heads of one
/// rank by their positions among those of all, so that values are those of the
/// CPUs' whole scores.
at::Tensor drop(const at::Tensor &weights, double p, const c10::IValue &drawn) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("accel::dropout", "");
  const std::vector<int64_t> key = drawn.toIntVector();
  const bool ofRank = key.size() == 4;
  const int64_t heads = weights.size(1);
  at::Tensor whole = weights.contiguous();
  if (ofRank) {
    std::vector<int64_t> sizes = weights.sizes().vec();
    sizes[1] *= key[3];
    whole = at::zeros(sizes, weights.options());
    whole.narrow(1, key[2] * heads, heads).copy_(weights);
  }
  torch::jit::Stack stack{whole, p, std::vector<int64_t>{key[0], key[1]}};
  op.callBoxed(stack);
  const at::Tensor dropped = stack.front().toTensor();
  return ofRank ? dropped.narrow(1, key[2] * heads, heads) : dropped;
}

/// Scores of one attention, [B, H, S, T], and what they are made of.
struct Attention {
  at::Tensor query, key, value; // of as many heads as the query has
  int64_t groups;
  double scale;

  Attention(const Values &in, size_t first, double scale)
      : query(inF32(in, first)), key(inF32(in, first + 1)),
        value(inF32(in, first + 2)), groups(query.size(1) / key.size(1)),
        scale(scale) {
    key = key.repeat_interleave(groups, 1);
    value = value.repeat_interleave(groups, 1);
  }

  at::Tensor scores(const c10::IValue &mask, bool isCausal) const {
    at::Tensor made = query.matmul(key.transpose(-2, -1)) * scale;
    if (mask.isTensor() && mask.toTensor().defined())
      made = made + mask.toTensor();
    if (isCausal)
      made = made.masked_fill(
          at::ones({made.size(2), made.size(3)}, at::kBool).triu(1),
          -std::numeric_limits<float>::infinity());
    return made;
  }
  /// Of the heads that share a key head.
  at::Tensor ofGroups(const at::Tensor &gradient) const {
    return gradient
        .view(
            {gradient.size(0), -1, groups, gradient.size(2), gradient.size(3)})
        .sum(2);
  }
};

/// splitmix64's finalizer, of which the runtime makes seeds.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::string expected(uint64_t seed, uint64_t offset, uint64_t wanted) {
  if (seed == wanted && offset == 0)
    return "";
  return " draws by the seed " + std::to_string(seed) + " from " +
         std::to_string(offset) + " on, and its key says " +
         std::to_string(wanted) + " from 0 on";
}

} // namespace

bool isDroppedAttention(const c10::OperatorName &name) {
  return name.name.starts_with("accel::") &&
         name.name.find("_attention") != std::string::npos;
}

std::vector<at::Tensor> droppedAttention(const std::string &name,
                                         const Values &in) {
  const bool backward = name.ends_with("_backward");
  // query, key and value; of a backward, the gradient in front of them and the
  // output and the sums behind; the mask, which flash attention has not.
  const size_t first = backward ? 1 : 0;
  size_t next = backward ? 6 : 3;
  const c10::IValue mask =
      name.starts_with("efficient") ? in[next++] : c10::IValue();
  const bool isCausal = in[next].toBool();
  const double p = in[next + 2].toDouble();
  const c10::IValue &drawn = in[next + 3];
  const Attention attention(in, first, in[next + 1].toDouble());
  const at::Tensor scores = attention.scores(mask, isCausal);
  if (!backward)
    return {drop(scores.softmax(-1), p, drawn).matmul(attention.value),
            scores.logsumexp(-1)};
  const at::Tensor sums =
      in[5].toTensor().slice(-1, 0, scores.size(2)).unsqueeze(-1);
  const at::Tensor weights = (scores - sums).exp();
  const at::Tensor gradient = inF32(in, 0);
  const at::Tensor ofWeights =
      drop(gradient.matmul(attention.value.transpose(-2, -1)), p, drawn);
  const at::Tensor rows = (gradient * inF32(in, 4)).sum(-1, true);
  const at::Tensor ofScores = weights * (ofWeights - rows) * attention.scale;
  return {
      ofScores.matmul(attention.key),
      attention.ofGroups(ofScores.transpose(-2, -1).matmul(attention.query)),
      attention.ofGroups(
          drop(weights, p, drawn).transpose(-2, -1).matmul(gradient))};
}

std::string stateProblem(const c10::OperatorName &name, const Values &inputs,
                         const c10::IValue &drawn) {
  const std::string prefix = "aten::_scaled_dot_product_";
  if (!name.name.starts_with(prefix))
    return "";
  const std::vector<int64_t> key = drawn.toIntVector();
  uint64_t wanted =
      mix(static_cast<uint64_t>(key[0]) ^ mix(static_cast<uint64_t>(key[1])));
  if (key.size() == 4)
    wanted = mix(wanted ^ mix(static_cast<uint64_t>(key[2]) + 1));
  const std::string kernel = name.name.substr(prefix.size());
  auto number = [&](size_t argument, int64_t i) {
    const at::Tensor state = inputs[argument].toTensor();
    uint64_t value = 0; // device memory is the host's
    std::memcpy(&value,
                static_cast<const char *>(state.const_data_ptr()) + 8 * i, 8);
    return value;
  };
  std::string problem;
  if (kernel == "flash_attention_backward") {
    problem = expected(number(12, 0), number(12, 1), wanted);
  } else if (kernel == "efficient_attention_backward") {
    problem = expected(number(7, 0), number(8, 0), wanted);
  } else {
    const at::Generator generator =
        at::globalContext().defaultGenerator(inputs[0].toTensor().device());
    problem =
        expected(generator.current_seed(), generator.get_offset(), wanted);
  }
  return problem.empty() ? "" : name.name + problem;
}

} // namespace accel::dry
