//===- Activate.cpp - Activation functions as operators -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/Activate.h"

#include <cmath>
#include <numbers>

using namespace accel;
using namespace accel::huggingface;
using namespace accel::aten;
using mlir::Value;

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), operator by operator as
/// transformers' NewGELUActivation.
static Value geluNew(FunctionWriter &f, Value x) {
  Value half = f.op<MulScalarOp>(x, 0.5);
  Value cube = f.op<MulScalarOp>(f.op<PowTensorScalarOp>(x, 3.0), 0.044715);
  Value inside = f.op<MulScalarOp>(f.op<AddTensorOp>(x, cube),
                                   std::sqrt(2.0 / std::numbers::pi));
  Value outer = f.op<AddScalarOp>(f.op<TanhOp>(inside), 1.0);
  return f.op<MulTensorOp>(half, outer);
}

/// 0.5 x (1 + tanh(0.7978845608 x (1 + 0.044715 x x))): FastGELUActivation.
static Value geluFast(FunctionWriter &f, Value x) {
  Value square = f.op<MulTensorOp>(f.op<MulScalarOp>(x, 0.044715), x);
  Value factor = f.op<AddScalarOp>(square, 1.0);
  Value inside = f.op<MulTensorOp>(f.op<MulScalarOp>(x, 0.7978845608), factor);
  Value outer = f.op<AddScalarOp>(f.op<TanhOp>(inside), 1.0);
  return f.op<MulTensorOp>(f.op<MulScalarOp>(x, 0.5), outer);
}

Value accel::huggingface::activate(FunctionWriter &f, Activation activation,
                                   Value x) {
  switch (activation) {
  case Activation::GeluNew:
    return geluNew(f, x);
  case Activation::GeluFast:
    return geluFast(f, x);
  case Activation::Gelu:
    return f.op<GeluOp>(x, "none");
  case Activation::GeluTanh:
    return f.op<GeluOp>(x, "tanh");
  case Activation::QuickGelu:
    return f.op<MulTensorOp>(x, f.op<SigmoidOp>(f.op<MulScalarOp>(x, 1.702)));
  case Activation::Relu:
    return f.op<ReluOp>(x);
  case Activation::Relu2:
    return f.op<PowTensorScalarOp>(f.op<ReluOp>(x), 2.0);
  case Activation::Silu:
  case Activation::Swish:
    return f.op<SiluOp>(x);
  case Activation::Tanh:
    return f.op<TanhOp>(x);
  }
  llvm_unreachable("covered switch");
}
