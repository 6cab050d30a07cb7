//===- Activate.h - Activation functions as operators -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_ACTIVATE_H
#define ACCEL_FRONTENDS_HUGGINGFACE_ACTIVATE_H

#include "frontends/HuggingFace/Activation.h"
#include "frontends/HuggingFace/FunctionWriter.h"

namespace accel::huggingface {

/// `activation` of `x`, by the operators that transformers runs.
mlir::Value activate(FunctionWriter &f, Activation activation, mlir::Value x);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_ACTIVATE_H
