//===- ModelInfo.cpp - Modules and parameters of a model ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/ModelInfo.h"

using namespace accel;
using namespace accel::huggingface;

int64_t ParameterInfo::numel() const {
  int64_t product = 1;
  for (int64_t size : shape)
    product *= size;
  return product;
}

int64_t ModelInfo::numel() const {
  int64_t sum = 0;
  for (const ParameterInfo &parameter : parameters)
    sum += parameter.numel();
  return sum;
}

void ModelInfo::module(std::string fqn, std::string className) {
  modules.push_back({std::move(fqn), std::move(className)});
}

void ModelInfo::parameter(std::string fqn, std::vector<int64_t> shape,
                          const plan::Initializer &init,
                          std::vector<std::string> stored) {
  parameters.push_back(
      {std::move(fqn), std::move(shape), init, {}, std::move(stored), false});
}

plan::Initializer accel::huggingface::normalInit(double stddev) {
  return {plan::Initializer::Kind::Normal, stddev};
}
plan::Initializer accel::huggingface::onesInit() {
  return {plan::Initializer::Kind::Ones, 0};
}
plan::Initializer accel::huggingface::zerosInit() {
  return {plan::Initializer::Kind::Zeros, 0};
}
plan::Initializer accel::huggingface::truncatedNormalInit(double stddev) {
  return {plan::Initializer::Kind::TruncatedNormal, stddev, -2, 2};
}
plan::Initializer accel::huggingface::uniformInit(double low, double high) {
  return {plan::Initializer::Kind::Uniform, 0, low, high};
}
plan::Initializer accel::huggingface::constantInit(double value) {
  return {plan::Initializer::Kind::Constant, value};
}
plan::Initializer accel::huggingface::sinusoidsInit(double longest) {
  return {plan::Initializer::Kind::Sinusoids, longest};
}
plan::Initializer accel::huggingface::withZeroRow(plan::Initializer init,
                                                  int64_t row) {
  init.zeroRow = row;
  return init;
}
