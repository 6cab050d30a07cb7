//===- DroppedAttention.cpp - Attention that drops weights ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/DroppedAttention.h"

#include "runtime/execute/Operators.h"

#include <ATen/Context.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace accel::run {

namespace {

/// Torch's kernels of attention draw from the device's own generator, which
/// nothing else in a run does: it is set to what the key says before each call,
/// so that a repetition draws the same.
void seedDevice(const at::Tensor &like, at::IntArrayRef key) {
  at::Generator generator = at::globalContext().defaultGenerator(like.device());
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(deviceSeed(key)); // and the offset 0
}

std::tuple<at::Tensor, at::Tensor>
flashAttention(const at::Tensor &query, const at::Tensor &key,
               const at::Tensor &value, bool isCausal, double scale, double p,
               at::IntArrayRef drawn) {
  seedDevice(query, drawn);
  auto all = at::_scaled_dot_product_flash_attention(
      query, key, value, p, isCausal, /*return_debug_mask=*/false, scale);
  return {std::move(std::get<0>(all)), std::move(std::get<1>(all))};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flashAttentionBackward(
    const at::Tensor &gradOut, const at::Tensor &query, const at::Tensor &key,
    const at::Tensor &value, const at::Tensor &out, const at::Tensor &logsumexp,
    bool isCausal, double scale, double p, at::IntArrayRef drawn) {
  // Seed and offset, which the kernel reads on the device.
  at::Tensor state = at::zeros({2}, query.options().dtype(at::kLong));
  state.select(0, 0).fill_(static_cast<int64_t>(deviceSeed(drawn)));
  return at::_scaled_dot_product_flash_attention_backward(
      gradOut, query, key, value, out, logsumexp, {}, {}, query.size(2),
      key.size(2), p, isCausal, state.view(at::kUInt64), {}, scale);
}

std::tuple<at::Tensor, at::Tensor>
efficientAttention(const at::Tensor &query, const at::Tensor &key,
                   const at::Tensor &value,
                   const std::optional<at::Tensor> &mask, bool isCausal,
                   double scale, double p, at::IntArrayRef drawn) {
  seedDevice(query, drawn);
  auto all = at::_scaled_dot_product_efficient_attention(
      query, key, value, mask, /*compute_log_sumexp=*/true, p, isCausal, scale);
  return {std::move(std::get<0>(all)), std::move(std::get<1>(all))};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor>
efficientAttentionBackward(const at::Tensor &gradOut, const at::Tensor &query,
                           const at::Tensor &key, const at::Tensor &value,
                           const at::Tensor &out, const at::Tensor &logsumexp,
                           const std::optional<at::Tensor> &mask, bool isCausal,
                           double scale, double p, at::IntArrayRef drawn) {
  // Seed and offset, which this kernel's host code reads on the host.
  auto seed = static_cast<int64_t>(deviceSeed(drawn));
  int64_t offset = 0;
  auto number = [](int64_t &value) {
    return at::from_blob(&value, {}, at::TensorOptions(at::kLong));
  };
  auto all = at::_scaled_dot_product_efficient_attention_backward(
      gradOut, query, key, value, mask.value_or(at::Tensor()), out, logsumexp,
      number(seed), number(offset), p, {true, true, true, false}, isCausal,
      scale);
  return {std::move(std::get<0>(all)), std::move(std::get<1>(all)),
          std::move(std::get<2>(all))};
}

} // namespace

void defineDroppedAttention(torch::Library &library) {
  const auto define = [&](const char *name, const std::string &schema,
                          auto *function) {
    library.def((std::string(name) + schema).c_str());
    library.impl(
        name,
        torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, function));
  };
  const std::string inputs = "Tensor query, Tensor key, Tensor value",
                    grads = "(Tensor grad_out, " + inputs +
                            ", Tensor out, Tensor logsumexp",
                    mask = ", Tensor? attn_bias",
                    rest = ", bool is_causal, float scale, float dropout_p, "
                           "int[] drawn) -> ",
                    two = "(Tensor, Tensor)",
                    three = "(Tensor, Tensor, Tensor)";
  define("flash_attention", "(" + inputs + rest + two, &flashAttention);
  define("flash_attention_backward", grads + rest + three,
         &flashAttentionBackward);
  define("efficient_attention", "(" + inputs + mask + rest + two,
         &efficientAttention);
  define("efficient_attention_backward", grads + mask + rest + three,
         &efficientAttentionBackward);
}

} // namespace accel::run
