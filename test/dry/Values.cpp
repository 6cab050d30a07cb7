//===- Values.cpp - What a kernel would have computed ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/dry/Values.h"

#include "test/dry/Dropped.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace accel::dry {

namespace {

using Values = std::vector<c10::IValue>;
thread_local bool unobserved = false;

at::Tensor onHost(const at::Tensor &t) {
  if (!t.defined() || !t.is_cuda())
    return t;
  return at::from_blob(
      const_cast<void *>(t.numel() ? t.const_data_ptr() : nullptr), t.sizes(),
      t.strides(), at::TensorOptions(t.scalar_type()));
}

c10::IValue onHost(const c10::IValue &value) {
  if (value.isTensor())
    return onHost(value.toTensor());
  if (value.isTensorList()) {
    std::vector<at::Tensor> list;
    for (const at::Tensor &t : value.toTensorVector())
      list.push_back(onHost(t));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (auto &&t : value.toOptionalTensorVector())
      list.push_back(t ? std::make_optional(onHost(*t)) : t);
    return list;
  }
  if (value.isDevice())
    return c10::Device(c10::kCPU);
  if (value.isGenerator())
    return c10::IValue();
  return value;
}

/// Into a result that is on the "device"; rows of statistics may be padded.
void put(const c10::IValue &result, const at::Tensor &value) {
  if (!result.isTensor() || !value.defined())
    return;
  const at::Tensor to = result.toTensor();
  if (!to.defined() || !to.is_cuda())
    return;
  if (to.numel() == 0)
    return; // what CPUs alone keep for the backward (log_sigmoid)
  at::Tensor memory = onHost(to);
  if (memory.sizes() == value.sizes())
    memory.copy_(value);
  else if (memory.dim() == value.dim() + 1)
    memory.squeeze(-1).copy_(value);
  else
    memory.slice(-1, 0, value.size(-1)).copy_(value);
}

at::Tensor tensor(const Values &in, size_t i) {
  return i < in.size() && in[i].isTensor() ? in[i].toTensor() : at::Tensor();
}
at::Tensor inF32(const Values &in, size_t i) {
  const at::Tensor t = tensor(in, i);
  return t.defined() ? t.to(at::kFloat) : t;
}
std::optional<double> scale(const Values &in, size_t i) {
  return i < in.size() && in[i].isDouble() ? std::optional(in[i].toDouble())
                                           : std::nullopt;
}
std::optional<at::Tensor> optional(const at::Tensor &t) {
  return t.defined() ? std::optional(t) : std::nullopt;
}
/// A row's statistics without what pads rows.
at::Tensor rows(const at::Tensor &statistics, const at::Tensor &query) {
  at::Tensor flat = statistics.dim() == 4 ? statistics.squeeze(-1) : statistics;
  return flat.slice(-1, 0, query.size(2)).contiguous();
}

/// The CPU's kernel takes values of the queries' head size alone.
bool hasOwnValueSize(const at::Tensor &query, const at::Tensor &value) {
  return query.size(-1) != value.size(-1);
}

/// In fp32, of [B, H, S, D].
at::Tensor scoresOf(const at::Tensor &query, const at::Tensor &key, bool causal,
                    const at::Tensor &mask, double factor) {
  at::Tensor scores =
      at::matmul(query.to(at::kFloat), key.to(at::kFloat).transpose(-1, -2)) *
      factor;
  if (mask.defined())
    scores = scores + mask.to(at::kFloat);
  if (causal)
    scores = scores + at::ones_like(scores).tril().log();
  return scores;
}
double factorOf(std::optional<double> factor, const at::Tensor &query) {
  return factor.value_or(1 / std::sqrt(double(query.size(-1))));
}

void attend(const Values &in, const Values &out, bool causal,
            const at::Tensor &mask, std::optional<double> factor) {
  const at::Tensor query = tensor(in, 0), value = tensor(in, 2);
  if (hasOwnValueSize(query, value)) {
    const at::Tensor scores =
        scoresOf(query, tensor(in, 1), causal, mask, factorOf(factor, query));
    put(out[0], at::matmul(scores.softmax(-1), value.to(at::kFloat)));
    put(out[1], scores.logsumexp(-1));
    return;
  }
  auto [result, statistics] = at::_scaled_dot_product_flash_attention_for_cpu(
      tensor(in, 0), tensor(in, 1), tensor(in, 2), 0, causal, optional(mask),
      factor);
  put(out[0], result);
  put(out[1], statistics);
}

void attendBackward(const Values &out, const at::Tensor &gradient,
                    const at::Tensor &query, const at::Tensor &key,
                    const at::Tensor &value, const at::Tensor &result,
                    const at::Tensor &statistics, bool causal,
                    const at::Tensor &mask, std::optional<double> factor) {
  if (hasOwnValueSize(query, value)) {
    const double by = factorOf(factor, query);
    const at::Tensor weights =
        scoresOf(query, key, causal, mask, by).softmax(-1);
    const at::Tensor given = gradient.to(at::kFloat);
    at::Tensor inner =
        at::matmul(given, value.to(at::kFloat).transpose(-1, -2));
    inner = weights * (inner - (inner * weights).sum(-1, true)) * by;
    put(out[0], at::matmul(inner, key.to(at::kFloat)));
    put(out[1], at::matmul(inner.transpose(-1, -2), query.to(at::kFloat)));
    put(out[2], at::matmul(weights.transpose(-1, -2), given));
    return;
  }
  auto [a, b, c] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      gradient, query, key, value, result, rows(statistics, query), 0, causal,
      optional(mask), factor);
  put(out[0], a);
  put(out[1], b);
  put(out[2], c);
}

/// What a causal window hides of [S, T] scores: keys that come behind their
/// query, or more than `before` tokens in front of it.
at::Tensor windowMask(const at::Tensor &query, const at::Tensor &key,
                      int64_t before) {
  const at::Tensor ones = at::ones({query.size(2), key.size(2)});
  const at::Tensor seen = ones.tril() - ones.tril(-before - 1);
  return seen.log().to(query.scalar_type()).unsqueeze(0).unsqueeze(0);
}
/// Of kernels that have [B, S, H, D].
at::Tensor byHeads(const Values &in, size_t i) {
  return tensor(in, i).transpose(1, 2);
}

using Compute = std::function<void(const Values &in, const Values &out)>;

/// Argument numbers are those of native_functions.yaml.
const std::map<std::string, Compute> &equivalents() {
  static const std::map<std::string, Compute> table = {
      {"aten::_scaled_dot_product_flash_attention",
       [](const Values &in, const Values &out) {
         attend(in, out, in[4].toBool(), {}, scale(in, 6));
       }},
      {"aten::_scaled_dot_product_efficient_attention",
       [](const Values &in, const Values &out) {
         attend(in, out, in[6].toBool(), tensor(in, 3), scale(in, 7));
       }},
      {"aten::_scaled_dot_product_cudnn_attention",
       [](const Values &in, const Values &out) {
         attend(in, out, in[6].toBool(), tensor(in, 3), scale(in, 8));
       }},
      {"aten::_scaled_dot_product_flash_attention_backward",
       [](const Values &in, const Values &out) {
         attendBackward(out, tensor(in, 0), tensor(in, 1), tensor(in, 2),
                        tensor(in, 3), tensor(in, 4), tensor(in, 5),
                        in[11].toBool(), {}, scale(in, 14));
       }},
      {"aten::_scaled_dot_product_efficient_attention_backward",
       [](const Values &in, const Values &out) {
         attendBackward(out, tensor(in, 0), tensor(in, 1), tensor(in, 2),
                        tensor(in, 3), tensor(in, 5), tensor(in, 6),
                        in[11].toBool(), tensor(in, 4), scale(in, 12));
       }},
      {"aten::_scaled_dot_product_cudnn_attention_backward",
       [](const Values &in, const Values &out) {
         attendBackward(out, tensor(in, 0), tensor(in, 1), tensor(in, 2),
                        tensor(in, 3), tensor(in, 4), tensor(in, 5),
                        in[14].toBool(), tensor(in, 8), scale(in, 15));
       }},
      {"aten::_flash_attention_forward",
       [](const Values &in, const Values &out) {
         const at::Tensor query = byHeads(in, 0), key = byHeads(in, 1);
         auto [result, statistics] =
             at::_scaled_dot_product_flash_attention_for_cpu(
                 query, key, byHeads(in, 2), 0, false,
                 windowMask(query, key, in[11].toInt()), scale(in, 10));
         put(out[0], result.transpose(1, 2));
         put(out[1], statistics);
       }},
      {"aten::_flash_attention_backward",
       [](const Values &in, const Values &out) {
         const at::Tensor query = byHeads(in, 1), key = byHeads(in, 2);
         auto [a, b, c] =
             at::_scaled_dot_product_flash_attention_for_cpu_backward(
                 byHeads(in, 0), query, key, byHeads(in, 3), byHeads(in, 4),
                 tensor(in, 5), 0, false,
                 windowMask(query, key, in[15].toInt()), scale(in, 14));
         put(out[0], a.transpose(1, 2));
         put(out[1], b.transpose(1, 2));
         put(out[2], c.transpose(1, 2));
       }},
      {"aten::_fused_rms_norm",
       [](const Values &in, const Values &out) {
         at::Tensor x = tensor(in, 0).to(at::kFloat);
         at::Tensor r = at::rsqrt(x.pow(2).mean(-1, true) + in[3].toDouble());
         at::Tensor y = x * r;
         if (at::Tensor weight = tensor(in, 2); weight.defined())
           y = y * weight.to(at::kFloat);
         put(out[0], y);
         put(out[1], r);
       }},
      {"aten::_fused_rms_norm_backward",
       [](const Values &in, const Values &out) {
         at::Tensor g = tensor(in, 0).to(at::kFloat);
         at::Tensor x = tensor(in, 1).to(at::kFloat);
         at::Tensor r = tensor(in, 3).to(at::kFloat);
         at::Tensor weight = tensor(in, 4).to(at::kFloat);
         at::Tensor h = x * r, scaled = g * weight;
         put(out[0], (scaled - h * (scaled * h).mean(-1, true)) * r);
         put(out[1], (g * h).reshape({-1, weight.numel()}).sum(0));
       }},
      // Statistics are f32 on GPUs, whatever the values are.
      {"aten::native_layer_norm",
       [](const Values &in, const Values &out) {
         auto [y, mean, rstd] = at::native_layer_norm(
             tensor(in, 0).to(at::kFloat), in[1].toIntVector(),
             optional(inF32(in, 2)), optional(inF32(in, 3)), in[4].toDouble());
         put(out[0], y);
         put(out[1], mean);
         put(out[2], rstd);
       }},
      {"aten::native_layer_norm_backward",
       [](const Values &in, const Values &out) {
         const c10::List<bool> wanted = in[7].toBoolList();
         auto [a, b, c] = at::native_layer_norm_backward(
             inF32(in, 0), inF32(in, 1), in[2].toIntVector(), inF32(in, 3),
             inF32(in, 4), optional(inF32(in, 5)), optional(inF32(in, 6)),
             {wanted[0], wanted[1], wanted[2]});
         put(out[0], a);
         put(out[1], b);
         put(out[2], c);
       }},
      {"aten::log_sigmoid_backward",
       [](const Values &in, const Values &out) {
         put(out[0], tensor(in, 0) * at::sigmoid(tensor(in, 1).neg()));
       }},
      // Integers are counted on GPUs alone.
      {"aten::histc",
       [](const Values &in, const Values &out) {
         put(out[0], at::histc(inF32(in, 0), in[1].toInt(), in[2].toScalar(),
                               in[3].toScalar()));
       }},
      {"aten::mm.dtype_out",
       [](const Values &in, const Values &) {
         tensor(in, 3).copy_(at::mm(tensor(in, 0).to(at::kFloat),
                                    tensor(in, 1).to(at::kFloat)));
       }},
      {"aten::to",
       [](const Values &in, const Values &out) { put(out[0], tensor(in, 0)); }},
      {"aten::_to_copy",
       [](const Values &in, const Values &out) {
         const at::Tensor to = out[0].toTensor(), from = tensor(in, 0);
         // It is made contiguous first, by a kernel.
         if (!to.is_cuda() && !to.is_pinned() && !from.is_contiguous())
           at::Tensor(to).copy_(from);
         put(out[0], from);
       }},
      // Their bytes have been copied.
      {"aten::item", [](const Values &, const Values &) {}},
      {"aten::_local_scalar_dense", [](const Values &, const Values &) {}}};
  return table;
}

} // namespace

Unobserved::Unobserved() : before(unobserved) { unobserved = true; }
Unobserved::~Unobserved() { unobserved = before; }
bool Unobserved::active() { return unobserved; }

void computeOnHost(const c10::OperatorName &name, const Values &arguments,
                   const Values &results) {
  Unobserved own;
  auto handle = c10::Dispatcher::singleton().findSchema(name);
  TORCH_CHECK(handle, "no operator of this name");
  const bool writes = handle->schema().is_mutable();
  if (results.empty() && !writes)
    return; // it threw
  // A copy to the host is made when the host has waited for it.
  if (name.name == "aten::copy_") {
    const at::Tensor to = arguments[0].toTensor();
    const at::Tensor from = arguments[1].toTensor();
    if (!to.is_cuda() && to.scalar_type() == from.scalar_type())
      return;
    // One from it has copied the bytes that are there by then.
    if (!from.is_cuda() && to.scalar_type() == from.scalar_type() &&
        to.is_contiguous() && from.is_contiguous() &&
        to.sizes() == from.sizes())
      return;
  }
  Values in;
  for (const c10::IValue &argument : arguments)
    in.push_back(onHost(argument));
  const auto &table = equivalents();
  auto at = table.find(
      name.overload_name == "dtype_out" ? name.name + ".dtype_out" : name.name);
  if (at != table.end())
    return at->second(in, results);
  if (isDroppedAttention(name)) {
    const std::vector<at::Tensor> made =
        droppedAttention(name.name.substr(name.name.find("::") + 2), in);
    for (size_t i = 0; i < made.size(); ++i)
      put(results[i], made[i]);
    return;
  }
  torch::jit::Stack stack(in.begin(), in.end());
  handle->callBoxed(stack);
  if (writes)
    return;
  for (size_t i = 0; i < results.size() && i < stack.size(); ++i) {
    if (stack[i].isTensor()) {
      put(results[i], stack[i].toTensor());
    } else if (stack[i].isTensorList()) {
      auto to = results[i].toTensorVector(), from = stack[i].toTensorVector();
      for (size_t k = 0; k < to.size(); ++k)
        put(to[k], from[k]);
    }
  }
}

bool sizeDependsOnValues(const c10::OperatorName &name) {
  return name.name == "aten::nonzero" ||
         name.name == "aten::unique_consecutive" ||
         (name.name == "aten::repeat_interleave" &&
          name.overload_name == "Tensor");
}

int64_t resultSize(const c10::OperatorName &name, const Values &arguments) {
  Unobserved own;
  const at::Tensor values = onHost(arguments[0].toTensor());
  if (name.name == "aten::nonzero")
    return at::nonzero(values).size(0);
  if (name.name == "aten::repeat_interleave")
    return values.sum().item<int64_t>();
  return std::get<0>(at::unique_consecutive(values)).size(0);
}

} // namespace accel::dry
