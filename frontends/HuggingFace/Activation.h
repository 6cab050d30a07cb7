//===- Activation.h - Activation functions by name --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_ACTIVATION_H
#define ACCEL_FRONTENDS_HUGGINGFACE_ACTIVATION_H

#include <optional>
#include <string>

namespace accel::huggingface {

/// transformers' ACT2FN, as far as the aten dialect has it.
enum class Activation {
  GeluNew,  // by tanh, from its parts
  GeluFast, // the same, multiplied in another order
  Gelu,
  GeluTanh,  // by tanh, as one kernel
  QuickGelu, // x sigmoid(1.702 x)
  Relu,
  Relu2, // squared
  Silu,
  Swish, // the same function in another class
  Tanh
};
std::optional<Activation> parseActivation(const std::string &name);
/// The class of the module: "NewGELUActivation".
const char *moduleClass(Activation activation);
/// Every name that `parseActivation` knows, for messages.
std::string activationNames();

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_ACTIVATION_H
