//===- LowerRandom.cpp - Calls that draw numbers --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/LowerRandom.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;

namespace {

using Maybe = std::optional<Lowering::Results>;

/// Dropout as the runtime draws it. Keys are numbered when functions are cut
/// (numberKeys), so that equal layers stay equal.
Maybe dropout(Lowering &f, const Call &call) {
  Value input = call.tensor(call.at(0));
  auto p = call.number("p");
  // native_dropout's `train` may be None, which means true.
  const bool train = call.isNone("train") || call.flag("train");
  if (!input || !p)
    return std::nullopt;
  if (*p == 0 || !train)
    return Lowering::Results{input};
  return Lowering::Results{f.make<aten::DropoutOp>(
      input, {{"p", f.number(*p)}, {"key", f.integer(0)}})};
}

/// Drops whole channels, which the runtime's dropout cannot.
Maybe featureDropout(Lowering &f, const Call &call) {
  if (drawsNumbers(call))
    return std::nullopt;
  return Lowering::Results{call.tensor(call.at(0))};
}

/// The mask is for a backward, which is written anew.
Maybe nativeDropout(Lowering &f, const Call &call) {
  Maybe result = dropout(f, call);
  if (result)
    result->push_back(Value());
  return result;
}

} // namespace

/// torch.Tag.nondeterministic_seeded of torch 2.15, without in-place variants
/// and backwards.
bool torchexport::drawsNumbers(const Call &call) {
  static const llvm::StringSet<> random = {
      "_cudnn_attention_forward",
      "_cudnn_rnn",
      "_efficient_attention_forward",
      "_flash_attention_forward",
      "_fused_dropout",
      "_lstm_mps",
      "_sample_dirichlet",
      "_scaled_dot_product_attention_math",
      "_scaled_dot_product_attention_math_for_mps",
      "_scaled_dot_product_cudnn_attention",
      "_scaled_dot_product_efficient_attention",
      "_scaled_dot_product_flash_attention",
      "_scaled_dot_product_flash_attention_for_cpu",
      "_scaled_dot_product_fused_attention_overrideable",
      "_standard_gamma",
      "_triton_scaled_dot_attention",
      "alpha_dropout",
      "bernoulli",
      "binomial",
      "cauchy",
      "dropout",
      "exponential",
      "feature_alpha_dropout",
      "feature_dropout",
      "geometric",
      "gru",
      "log_normal",
      "lstm",
      "miopen_rnn",
      "multinomial",
      "native_dropout",
      "normal",
      "normal_functional",
      "poisson",
      "rand",
      "rand_like",
      "randint",
      "randint_like",
      "randn",
      "randn_like",
      "random",
      "randperm",
      "rnn_relu",
      "rnn_tanh",
      "rrelu",
      "rrelu_with_noise",
      "rrelu_with_noise_functional",
      "scaled_dot_product_attention",
      "uniform"};
  StringRef name = call.schema().name;
  name.consume_front("aten::");
  if (!random.contains(name.split('.').first))
    return false;
  // Switched off by a probability of 0, or outside training.
  for (const char *probability : {"p", "dropout_p", "dropout"})
    if (call.number(probability) == 0.0)
      return false;
  for (const char *mode : {"train", "training"})
    if (!call.isNone(mode) && !call.flag(mode))
      return false;
  return true;
}

void torchexport::numberKeys(func::FuncOp function) {
  int64_t next = 0;
  function.walk([&](Operation *op) {
    if (auto dropout = dyn_cast<aten::DropoutOp>(op))
      dropout.setKey(next++);
    auto attention = dyn_cast<aten::ScaledDotProductAttentionOp>(op);
    if (attention && !attention.getDropoutP().isZero())
      attention.setDropoutKey(next++);
  });
}

void torchexport::addRandomRules(llvm::StringMap<Lowering::Rule> &rules) {
  rules["aten::dropout"] = dropout;
  rules["aten::feature_dropout"] = featureDropout;
  rules["aten::native_dropout"] = nativeDropout;
}
