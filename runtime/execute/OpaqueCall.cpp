//===- OpaqueCall.cpp - Operators that the compiler does not model --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/OpaqueCall.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>

namespace accel::run {

namespace {

/// The runtime calls operators below autograd; in here they are above it.
class AboveAutograd {
public:
  AboveAutograd()
      : keys(c10::impl::tls_local_dispatch_key_set().included_,
             c10::impl::tls_local_dispatch_key_set().excluded_ -
                 c10::autograd_dispatch_keyset_with_ADInplaceOrView),
        grad(true) {}

private:
  c10::impl::ForceDispatchKeyGuard keys;
  at::AutoGradMode grad;
};

/// Calls `visit` with each tensor among the last `count` values of a stack.
template <typename Visit>
void eachTensor(torch::jit::Stack &stack, size_t count, Visit visit) {
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    if (stack[i].isTensor()) {
      at::Tensor tensor = stack[i].toTensor();
      visit(tensor);
      stack[i] = tensor;
    } else if (stack[i].isTensorList()) {
      std::vector<at::Tensor> list = stack[i].toTensorVector();
      for (at::Tensor &tensor : list)
        visit(tensor);
      stack[i] = list;
    } else if (stack[i].isOptionalTensorList()) {
      auto list = stack[i].toOptionalTensorList();
      for (size_t k = 0; k < list.size(); ++k)
        if (std::optional<at::Tensor> tensor = list.get(k)) {
          visit(*tensor);
          list.set(k, tensor);
        }
    }
  }
}

} // namespace

std::optional<OpaqueBackward> takeBackward(std::vector<plan::Arg> &args) {
  using Kind = plan::Arg::Kind;
  if (args.size() < 3)
    return std::nullopt;
  const plan::Arg &mark = args[args.size() - 3];
  const plan::Arg &gradients = args[args.size() - 2];
  const plan::Arg &wanted = args.back();
  if (mark.kind != Kind::Text || mark.text != "backward" ||
      gradients.kind != Kind::Tensors || wanted.kind != Kind::Ints)
    return std::nullopt;
  OpaqueBackward backward;
  backward.gradients.assign(gradients.ints.begin(), gradients.ints.end());
  backward.wanted = wanted.ints;
  args.resize(args.size() - 3);
  return backward;
}

std::string opaqueProblem(const c10::FunctionSchema &schema) {
  if (schema.is_mutable())
    return "it writes to its arguments; the plan needs the operator that "
           "returns its result instead";
  for (const c10::Argument &result : schema.returns())
    if (!result.type()->isSubtypeOf(*c10::TensorType::get()))
      return "it returns " + result.type()->str() +
             ", and a plan's slots hold tensors";
  return "";
}

void callOpaque(const c10::OperatorHandle &op, torch::jit::Stack &stack) {
  std::vector<c10::StorageImpl *> given;
  eachTensor(stack, stack.size(), [&](at::Tensor &tensor) {
    if (tensor.defined())
      given.push_back(tensor.storage().unsafeGetStorageImpl());
  });
  op.callBoxed(stack);
  eachTensor(stack, stack.size(), [&](at::Tensor &tensor) {
    if (!tensor.defined())
      return;
    auto *storage = tensor.storage().unsafeGetStorageImpl();
    bool shares = std::find(given.begin(), given.end(), storage) != given.end();
    // Two results of one storage (the parts of a split) are two slots.
    if (shares || tensor.storage().nbytes() != tensor.nbytes())
      tensor = tensor.clone(at::MemoryFormat::Contiguous);
    else if (!tensor.is_contiguous())
      tensor = tensor.contiguous();
    given.push_back(tensor.storage().unsafeGetStorageImpl());
  });
}

std::vector<at::Tensor> callBackward(const c10::OperatorHandle &op,
                                     torch::jit::Stack &stack,
                                     const std::vector<int64_t> &wanted,
                                     const std::vector<at::Tensor> &gradients) {
  std::vector<at::Tensor> inputs(wanted.size()), outputs, given, results;
  {
    AboveAutograd above;
    int64_t position = 0;
    eachTensor(stack, stack.size(), [&](at::Tensor &tensor) {
      tensor = tensor.detach();
      for (size_t i = 0; i < wanted.size(); ++i)
        if (wanted[i] == position)
          inputs[i] = tensor.requires_grad_(true);
      ++position;
    });
    op.callBoxed(stack);
    size_t next = 0;
    eachTensor(stack, stack.size(), [&](at::Tensor &tensor) {
      if (!tensor.defined() || !tensor.is_floating_point())
        return;
      TORCH_CHECK(next < gradients.size(), "has more results than the ",
                  gradients.size(), " gradients in the plan");
      if (tensor.requires_grad()) {
        outputs.push_back(tensor);
        given.push_back(gradients[next]);
      }
      ++next;
    });
    stack.clear();
    for (const at::Tensor &input : inputs)
      TORCH_CHECK(input.defined(), "has no tensor at a wanted position");
    if (!outputs.empty())
      results = torch::autograd::grad(outputs, inputs, given,
                                      /*retain_graph=*/false,
                                      /*create_graph=*/false,
                                      /*allow_unused=*/true);
    outputs.clear();
  }
  results.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!results[i].defined())
      results[i] = at::zeros_like(inputs[i], at::MemoryFormat::Contiguous);
    results[i] = results[i].contiguous();
    // A gradient that was passed on as it came is two slots in the plan.
    for (const at::Tensor &gradient : gradients)
      if (results[i].is_alias_of(gradient))
        results[i] = results[i].clone(at::MemoryFormat::Contiguous);
    for (size_t k = 0; k < i; ++k)
      if (results[i].is_alias_of(results[k]))
        results[i] = results[i].clone(at::MemoryFormat::Contiguous);
  }
  return results;
}

} // namespace accel::run
