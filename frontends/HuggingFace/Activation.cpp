//===- Activation.cpp - Activation functions by name ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/Activation.h"

using namespace accel::huggingface;

namespace {

struct ActivationName {
  const char *name;
  Activation activation;
  const char *className;
};
constexpr ActivationName activations[] = {
    {"gelu_new", Activation::GeluNew, "NewGELUActivation"},
    {"gelu_fast", Activation::GeluFast, "FastGELUActivation"},
    {"gelu", Activation::Gelu, "GELUActivation"},
    {"gelu_pytorch_tanh", Activation::GeluTanh, "GELUTanh"},
    {"quick_gelu", Activation::QuickGelu, "QuickGELUActivation"},
    {"relu", Activation::Relu, "ReLU"},
    {"relu2", Activation::Relu2, "ReLUSquaredActivation"},
    {"silu", Activation::Silu, "SiLUActivation"},
    {"swish", Activation::Swish, "SiLU"},
    {"tanh", Activation::Tanh, "Tanh"},
};

} // namespace

std::optional<Activation>
accel::huggingface::parseActivation(const std::string &name) {
  for (const ActivationName &entry : activations)
    if (name == entry.name)
      return entry.activation;
  return std::nullopt;
}

const char *accel::huggingface::moduleClass(Activation activation) {
  for (const ActivationName &entry : activations)
    if (activation == entry.activation)
      return entry.className;
  return "";
}

std::string accel::huggingface::activationNames() {
  std::string names;
  for (const ActivationName &entry : activations)
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}
