//===- BuildMixture.h - A mixture of experts --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The operators that transformers runs for a router and "grouped_mm" experts,
// in its order (MixtralTopKRouter, Qwen3MoeTopKRouter, integrations/moe.py).
// Of T tokens each goes to k of E experts; the T k rows are sorted by expert,
// multiplied by groups, put back in order and summed over k. So no shape
// depends on what the router chooses, and no token is dropped.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_HUGGINGFACE_BUILDMIXTURE_H
#define ACCEL_FRONTENDS_HUGGINGFACE_BUILDMIXTURE_H

#include "frontends/HuggingFace/FunctionWriter.h"
#include "frontends/HuggingFace/Mixture.h"

namespace accel::huggingface {

struct MixtureValues {
  mlir::Value rows; // [tokens, hidden]
  /// For the load balancing loss, [experts] in fp32: how often each was chosen,
  /// and the sum of its probabilities over the tokens. Null without that loss.
  mlir::Value counts, probabilities;
};

/// The routed experts of `rows` [tokens, hidden], which read `narrow` [tokens,
/// latentSize] where that is not null. `choiceBias`, [experts] in fp32, is that
/// of a router with sigmoids.
MixtureValues writeMixture(FunctionWriter &f, const Mixture &mixture,
                           mlir::Value rows, mlir::Value choiceBias = {},
                           mlir::Value narrow = {});

/// `loss` with the load balancing loss (Switch Transformer, equations 4 to 6)
/// of all layers with experts, given their counts and probabilities.
mlir::Value addBalancingLoss(FunctionWriter &f, const Mixture &mixture,
                             mlir::Value loss, mlir::ValueRange counts,
                             mlir::ValueRange probabilities, int64_t tokens);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_HUGGINGFACE_BUILDMIXTURE_H
